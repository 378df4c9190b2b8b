"""The runner of acceptance cases reports every difference, and no others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from tests.cases.__main__ import main, most_unsupported
from tests.cases.bench import World
from tests.cases.case import Case, Part, load
from tests.cases.divergences import FILE, Divergence, read
from tests.cases.judge import Judge
from tests.cases.outcome import Kind, Outcome, too_many
from tests.cases.pipeline import create_table, options_of

INGEST: Mapping[str, Any] = {
    "connector": "upsert-kafka",
    "format": "json",
    "columns": [{"name": "id", "type": "INT"}, {"name": "v", "type": "STRING"}],
    "primary_key": ["id"],
    "records": [
        {"key": '{"id":1}', "value": '{"id":1,"v":"a"}', "partition": 0},
        {"key": '{"id":1}', "value": '{"id":1,"v":"b"}', "partition": 0},
        {"key": '{"id":2}', "value": '{"id":2,"v":"c"}', "partition": 0},
        {"key": '{"id":2}', "value": None, "partition": 0},
    ],
    "expected_table": [[1, "b"]],
}
EGRESS: Mapping[str, Any] = {
    **{k: INGEST[k] for k in ("connector", "format", "columns", "primary_key")},
    "changes": [["+I", 1, "a"], ["-U", 1, "a"], ["+U", 1, "b"], ["-D", 1, "b"]],
    "expected_records": [
        {"key": '{"id":1}', "value": '{"id":1,"v":"a"}'},
        {"key": '{"id":1}', "value": '{"id":1,"v":"b"}'},
        {"key": '{"id":1}', "value": None},
    ],
}
REFUSED: Mapping[str, Any] = {
    **{k: INGEST[k] for k in ("connector", "format", "columns")},
    "primary_key": [],
    "expected_error": {"when": "ddl", "message_contains": "require to define a PRIMARY KEY constraint"},
}
VECTORS: Mapping[str, Any] = {
    "format": "json",
    "vectors": [
        {"column": "id INT", "value": '{"id":"7"}', "row": [7]},
        {
            "column": "id INT",
            "value": '{"id":"x"}',
            "error_contains": "Failed",
            "with_ignore_parse_errors": [None],
        },
    ],
}


def case(kind: str, data: Mapping[str, Any], **changed: Any) -> Case:
    return Case("T1", "tiny", kind, {"id": "T1", "name": "tiny", "kind": kind, **data, **changed})


@pytest.fixture(scope="module")
def world(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(spark, broker, tmp_path_factory.mktemp("cases"))


@pytest.fixture
def judge(world: World) -> Judge:
    return Judge(world)


@pytest.mark.slow  # `make cases` runs the acceptance cases, which are right
def test_what_is_right_passes(judge: Judge) -> None:
    assert judge.verdict(case("ingest", INGEST)) == Outcome(Kind.PASS)
    assert judge.verdict(case("egress", EGRESS)) == Outcome(Kind.PASS)
    assert judge.verdict(case("validate", REFUSED)) == Outcome(Kind.PASS)
    assert judge.verdict(case("vectors", VECTORS)) == Outcome(Kind.PASS)


def test_a_list_of_headers_is_written_and_compared(judge: Judge) -> None:
    """Headers in order, with a repeated name and a null value."""
    rows = [["a", {"utf8": "x"}], ["b", None], ["a", {"hex": "00"}]]
    data = {
        "columns": "id INT, h ARRAY<ROW<key STRING, value BYTES>>",
        "metadata_columns": {"h": "header-list"},
        "changes": [["+I", 1, rows]],
        "expected_records": [{"key": '{"id":1}', "value": '{"id":1}', "headers": rows}],
    }
    assert judge.verdict(case("egress", EGRESS, **data)) == Outcome(Kind.PASS)


@pytest.mark.slow
def test_headers_in_another_order_are_another_list(judge: Judge) -> None:
    rows = [["a", {"utf8": "x"}], ["b", None]]
    data = {
        "columns": "id INT, h ARRAY<ROW<key STRING, value BYTES>>",
        "metadata_columns": {"h": "header-list"},
        "changes": [["+I", 1, rows]],
        "expected_records": [{"key": '{"id":1}', "value": '{"id":1}', "headers": rows}],
    }
    turned = [{**data["expected_records"][0], "headers": rows[::-1]}]  # type: ignore[index]
    assert judge.verdict(case("egress", EGRESS, **{**data, "expected_records": turned})).kind is Kind.FAIL


@pytest.mark.parametrize(
    ("kind", "data", "wrong", "words"),
    [
        ("ingest", INGEST, {"expected_table": [[1, "a"]]}, "table: missing (1, 'a'), unexpected (1, 'b')"),
        (
            "ingest",
            INGEST,
            {"expected_table": [[1, "b"], [2, "c"]]},
            "table: missing (2, 'c') (1 missing, 0 un",
        ),
        pytest.param(
            "ingest",
            INGEST,
            {"expected_changelog": [["+I", 1, "a"], ["+U", 1, "b"]]},
            "changelog, at 1",
            marks=pytest.mark.slow,
        ),
        ("ingest", INGEST, {"expected_error": {"when": "decode"}}, "it was accepted"),
        ("egress", EGRESS, {"expected_records": EGRESS["expected_records"][:2]}, "wanted 2, there are 3"),
        ("validate", REFUSED, {"primary_key": ["id"]}, "accepted, but should be refused"),
        ("validate", REFUSED, {"columns": "id FROB"}, "refused for another reason"),
        (
            "vectors",
            {"format": "json"},
            {"vectors": [{"column": "i INT", "value": '{"i":7}', "row": [8]}]},
            "rows:",
        ),
    ],
)
def test_what_is_wrong_fails_with_the_first_difference(
    judge: Judge, kind: str, data: Mapping[str, Any], wrong: Mapping[str, Any], words: str
) -> None:
    found = judge.verdict(case(kind, data, **wrong))
    assert found.kind is Kind.FAIL
    assert words in found.words


@pytest.mark.parametrize(
    ("kind", "data", "more", "words"),
    [
        ("ingest", INGEST, {"expected_moon": "full"}, "case key expected_moon"),
        (
            "ingest",
            INGEST,
            {"steps": [{"records": [], "expected_tide": 1, "expected_table": []}]},
            "steps.expected_tide",
        ),
        ("ingest", {**INGEST, "produce": "as many as you like"}, {}, "described as"),
        ("dance", INGEST, {}, "case kind 'dance'"),
        ("validate", {"vectors": [{"ddl": "as nobody ever wrote it", "error_contains": "x"}]}, {}, "prose"),
    ],
)
def test_what_is_not_there_yet_is_named(
    judge: Judge, kind: str, data: Mapping[str, Any], more: Mapping[str, Any], words: str
) -> None:
    found = judge.verdict(case(kind, data, **more))
    assert found.kind is Kind.UNSUPPORTED
    assert words in found.words


def test_a_divergence_holds_only_as_it_is_written(world: World) -> None:
    vector = {"column": "i INT", "value": '{"i":7}'}
    wrong = case(
        "vectors", {"format": "json", "vectors": [{**vector, "row": [7]}, {**vector, "error_contains": ""}]}
    )
    known = Divergence("T1", "tiny", 7, "seven is right", 1, ["error_contains"], {"row": [7]})
    judge = Judge(world, [known])
    assert judge.verdict(wrong) == Outcome(Kind.DIVERGENCE, "[1] divergence: ADR 028, rule 7: seven is right")
    passing = judge.verdict(known.applied(wrong))
    assert passing.kind is Kind.FAIL and "divergence no longer holds" in passing.words
    unlike = Divergence("T1", "tiny", "ADR 001", "eight is right", 1, ["error_contains"], {"row": [8]})
    otherwise = Judge(world, [unlike]).verdict(wrong)
    assert otherwise.kind is Kind.FAIL and "differs, but not as ADR 001: eight is right" in otherwise.words
    stranger = Case("T1", "another", "vectors", wrong.data)
    assert judge.verdict(stranger).kind is Kind.FAIL


def test_a_divergence_may_be_about_a_step() -> None:
    steps = case("ingest", {"steps": [{"expected_table": []}, {"expected_error": {}, "records": []}]})
    known = Divergence("T1", "tiny", 1, "", drop=["steps.1.expected_error"], instead={"steps.1.records": [1]})
    assert known.applied(steps).data["steps"] == [{"expected_table": []}, {"records": [1]}]
    assert steps.data["steps"][1] == {"expected_error": {}, "records": []}


def test_a_case_that_takes_too_long_fails_and_the_next_one_runs(world: World) -> None:
    assert "not finished after 0.01 s" in Judge(world, seconds=0.01).verdict(case("ingest", INGEST)).words
    assert Judge(world).verdict(case("validate", REFUSED)).kind is Kind.PASS


def test_a_crash_is_a_failure_of_its_case(judge: Judge) -> None:
    found = judge.verdict(case("ingest", INGEST, records=[17]))
    assert found.kind is Kind.FAIL and found.words.startswith("AttributeError")


def test_files_are_taken_by_content(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps({"id": "B", "name": "b", "kind": "ingest"}))
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "README.md").write_text("no case")
    found = list(load(tmp_path))
    assert [c.id for c in found] == ["a", "B"]
    assert found[0].problem.startswith("not a case file") and not found[1].problem


def test_without_a_folder_nothing_is_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BRIDGE_CASES_DIR", "/no/such/folder")
    assert main([]) == 2
    assert "BRIDGE_CASES_DIR must name a folder" in capsys.readouterr().err


def test_columns_that_a_computed_one_reads_are_declared() -> None:
    part = Part(
        {"columns": [{"name": "n", "type": "STRING"}], "computed_columns": {"n": "a || 'b c' || upper(`d`)"}}
    )
    statement = create_table(part, {"connector": "upsert-kafka"})
    assert "`n` AS a || 'b c' || upper(`d`)" in statement
    assert "`a` STRING" in statement and "`d` STRING" in statement
    assert "`b`" not in statement and "`upper`" not in statement


def test_options_follow_the_connector() -> None:
    upsert = Part(
        {"connector": "upsert-kafka", "format": "json", "options": {"json.ignore-parse-errors": "true"}}
    )
    assert options_of(upsert, "t", "h:1") == {
        "connector": "upsert-kafka",
        "topic": "t",
        "properties.bootstrap.servers": "h:1",
        "key.format": "json",
        "value.format": "json",
        "value.json.ignore-parse-errors": "true",
    }
    kafka = Part({"connector": "kafka + PRIMARY KEY", "format": "debezium-json", "options": {"note": "n"}})
    assert options_of(kafka, "t", "h:1")["format"] == "debezium-json"
    never = options_of(Part({"options": {"sink.buffer-flush.interval": "never (Long.MAX)"}}), "t", "h:1")
    assert never["sink.buffer-flush.interval"] == "9223372036854775807 ms"


def test_a_case_about_a_pattern_and_a_topic_has_both() -> None:
    """Without a topic of the case, the pattern matches the runner's topic."""
    both = Part({"connector": "kafka", "options": {"topic": "a", "topic-pattern": "a.*"}})
    assert {k: v for k, v in options_of(both, "t", "h:1").items() if k.startswith("topic")} == {
        "topic": "a",
        "topic-pattern": "a.*",
    }
    alone = options_of(Part({"connector": "kafka", "options": {"topic-pattern": "a.*"}}), "t", "h:1")
    assert "topic" not in alone
    assert "topic" not in options_of(Part({"connector": "kafka", "options": {"topic": ""}}), "t", "h:1")


def test_headers_are_written_from_the_column_that_a_case_has() -> None:
    listed = "ARRAY<ROW<key STRING, value BYTES>>"
    own = Part({"columns": f"h {listed}", "metadata_columns": {"h": "header-list"}})
    assert f"`h` {listed} METADATA FROM 'header-list'\n" in create_table(own, {"connector": "kafka"})
    both = Part(
        {
            "columns": f"m MAP<STRING, BYTES>, h {listed}",
            "metadata_columns": {"m": "headers", "h": "header-list"},
        }
    )
    statement = create_table(both, {"connector": "kafka"})
    assert "METADATA FROM 'headers',\n" in statement and "METADATA FROM 'header-list' VIRTUAL" in statement


def test_too_many_unsupported_cases_fail_the_run() -> None:
    passed, waits = Outcome(Kind.PASS), Outcome(Kind.UNSUPPORTED, "csv")
    assert too_many([passed, waits, waits], 2) is None
    assert "3 cases are unsupported, and tests/cases/unsupported.yaml allows 2" in str(
        too_many([waits] * 3, 2)
    )
    assert most_unsupported() >= 0


def test_the_list_of_divergences_can_be_read_and_names_each_place_once() -> None:
    places = [(d.case, d.name, d.vector) for d in read(FILE)]
    assert places and len(places) == len(set(places))
