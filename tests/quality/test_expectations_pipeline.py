"""Expectations about facts are evaluated by the fact, and fail where it is unknown."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.errors import DefinitionError, GapError
from bridge.quality.facts import NO_FACTS, Facts, KeySplit, Moment, Ratio, RowDifferences
from bridge.quality.run import run
from bridge.quality.suite import load, parse
from bridge.quality.verdict import Outcome

EQUAL = RowDifferences("version 3", 10, 10, "aa", "aa", 0)
DIFFERENT = RowDifferences("version 3", 10, 9, "aa", "bb", 1, ({"id": 7},))


def outcome(spark: SparkSession, facts: Facts, type: str, **kwargs: Any) -> Outcome:
    """The outcome of one expectation on a table with the key `id`."""
    text = json.dumps({"name": "one", "expectations": [{"type": type, "kwargs": kwargs}]})
    frame = spark.createDataFrame([(7,)], "id bigint")
    (result,) = run(frame, parse(text, "one.json"), key=["id"], facts=facts).expectations
    return result


@pytest.mark.parametrize(
    ("type", "kwargs", "fact", "good", "bad", "observed", "title"),
    [
        (
            "expect_table_to_equal_topic",
            {"direction": "ingest"},
            "equality",
            EQUAL,
            DIFFERENT,
            "1 key differs: topic 10 rows, checksum aa; table 9 rows, checksum bb (version 3)",
            "The table holds the rows that its topic says.",
        ),
        (
            "expect_change_feed_to_give_table",
            {"last_versions": 5},
            "feed",
            EQUAL,
            DIFFERENT,
            "1 key differs: replayed 10 rows, checksum aa; table 9 rows, checksum bb (version 3)",
            "Replaying the change feed over the table of 5 versions ago gives the table.",
        ),
        (
            "expect_keys_to_stay_in_their_partition",
            {},
            "partitions",
            KeySplit(4, 0),
            KeySplit(4, 1, ({"id": 7},)),
            "1 key in more than one partition",
            "All records of a key are in one partition.",
        ),
    ],
)
def test_differing_rows_and_split_keys_are_reported(
    spark: SparkSession,
    type: str,
    kwargs: dict[str, Any],
    fact: str,
    good: object,
    bad: object,
    observed: str,
    title: str,
) -> None:
    requests: list[Mapping[str, Any]] = []

    def answer(result: object) -> Facts:
        def provider(arguments: Mapping[str, Any]) -> object:
            requests.append(arguments)
            return result

        return Facts({fact: provider})

    assert outcome(spark, answer(good), type, **kwargs).success
    failed = outcome(spark, answer(bad), type, **kwargs)
    assert (failed.success, failed.observed, failed.title) == (False, observed, title)
    assert failed.example_keys == ({"id": 7},) and failed.unexpected_count == 1
    assert requests[0] == kwargs
    assert len(requests) == 2, "a fact is computed once per check"


@pytest.mark.parametrize(
    ("of", "old", "success", "observed"),
    [
        ("record", 600, True, "10 minutes"),
        ("commit", 7500, False, "2 hours 5 minutes old"),
        ("record", -3600, False, "in the future"),
        ("record", None, False, "no record"),
    ],
)
def test_arrival_is_compared_with_the_current_time(
    spark: SparkSession, of: str, old: float | None, success: bool, observed: str
) -> None:
    newest = Moment(None if old is None else int((time.time() - old) * 1000))
    result = outcome(
        spark, Facts({"arrival": lambda _: newest}), "expect_arrival_to_be_fresh", max_age_seconds=3600, of=of
    )
    assert (result.success, result.reason, result.expected) == (success, None, "at most 1 hour old")
    assert observed in result.observed
    assert result.title == f"The newest {of} is at most 1 hour old."


@pytest.mark.parametrize(
    ("share", "success", "observed"),
    [
        (Ratio(1, 10), True, "10 % (1 of 10 records)"),
        (Ratio(5, 10), False, "50 % (5 of 10 records)"),
        (Ratio(0, 0), True, "0 % (0 of 0 records)"),
    ],
)
def test_tombstone_ratio(spark: SparkSession, share: Ratio, success: bool, observed: str) -> None:
    result = outcome(
        spark, Facts({"tombstones": lambda _: share}), "expect_tombstone_ratio_to_be_between", max_ratio=0.2
    )
    assert (result.success, result.observed, result.expected) == (success, observed, "0 % to 20 %")
    assert result.title == "Between 0 % and 20 % of the records of the topic are deletes."


def test_an_unknown_fact_fails_with_the_reason(spark: SparkSession) -> None:
    def gone(_: Mapping[str, Any]) -> object:
        raise GapError("the log no longer reaches back")

    def broken(_: Mapping[str, Any]) -> object:
        raise ValueError("a payload")

    outcomes = [
        outcome(spark, facts, "expect_table_to_equal_topic")
        for facts in (NO_FACTS, Facts({"equality": gone}), Facts({"equality": broken}))
    ]
    assert not any(o.success for o in outcomes)
    assert [o.reason for o in outcomes] == [
        "it needs the pipeline's topic and table: run it with `bridge check`",
        "the log no longer reaches back",
        "its fact could not be computed: ValueError",
    ]


ORDERS = [(1, 1, "a"), (2, 1, "x"), (3, None, "zz"), (4, 2, None), (5, 9, "a")]


def refer(spark: SparkSession, tmp_path: Path, facts: Facts, **kwargs: Any) -> Outcome:
    """What the rows of ORDERS, which refer by (c, r), say of the customers (1, a) and (2, b)."""
    folder = tmp_path / "customers"
    if not folder.exists():
        frame = spark.createDataFrame([(1, "a"), (1, "a"), (2, "b"), (None, "zz")], "cid int, region string")
        frame.write.format("delta").save(str(folder))
    given = {"column_list": ["c", "r"], "other_column_list": ["cid", "region"], "other_path": "customers"}
    text = json.dumps(
        {
            "name": "one",
            "expectations": [{"type": "expect_rows_to_refer_to_table", "kwargs": {**given, **kwargs}}],
        }
    )
    orders = spark.createDataFrame(ORDERS, "id int, c int, r string")
    (result,) = run(orders, parse(text, str(tmp_path / "s.json")), key=["id"], facts=facts).expectations
    return result


def test_references_match_simple(spark: SparkSession, tmp_path: Path) -> None:
    facts = Facts(base_folder=str(tmp_path))
    failed = refer(spark, tmp_path, facts)
    assert (failed.success, failed.observed) == (False, "2 of 3 rows have no matching row")
    assert sorted(k["id"] for k in failed.example_keys) == [2, 5]
    assert failed.title == "c, r refer to cid, region of a row in customers."
    missing = refer(spark, tmp_path, facts, other_path="nowhere")
    assert not missing.success and "PATH_NOT_FOUND" in str(missing.reason)
    assert "relative to a pipeline file" in str(refer(spark, tmp_path, NO_FACTS).reason)
    unknown = refer(spark, tmp_path, facts, other_column_list=["cid", "land"])
    assert unknown.reason == "the other table has no column 'land'; it has cid, region"
    spark.createDataFrame([(1, "x"), (9, "a")], "cid int, region string").write.format("delta").mode(
        "append"
    ).save(str(tmp_path / "customers"))
    assert refer(spark, tmp_path, facts).success


@pytest.mark.parametrize(
    ("type", "kwargs", "why"),
    [
        (
            "expect_rows_to_refer_to_table",
            {"column_list": ["a"]},
            "exactly one of other_path and other_table",
        ),
        (
            "expect_rows_to_refer_to_table",
            {"column_list": ["a"], "other_path": "x", "other_column_list": ["a", "b"]},
            "as many columns as column_list",
        ),
        ("expect_tombstone_ratio_to_be_between", {"max_ratio": 2}, "max_ratio: must be between 0 and 1"),
        ("expect_table_to_equal_topic", {"direction": "up"}, "permitted: 'ingest', 'publish'"),
        ("expect_change_feed_to_give_table", {"last_versions": 0}, "must be 1 version or more"),
        ("expect_arrival_to_be_fresh", {"max_age_seconds": 5, "of": "x"}, "permitted: 'record', 'commit'"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(type: str, kwargs: dict[str, Any], why: str) -> None:
    text = json.dumps({"name": "one", "expectations": [{"type": type, "kwargs": kwargs}]})
    with pytest.raises(DefinitionError, match=why):
        parse(text, "one.json")


def test_the_documented_examples_load(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "expectations.md").read_text(encoding="utf-8")
    blocks = [part.split("```")[0] for part in text.split("```json\n")[1:]]
    shown = set()
    for number, block in enumerate(blocks):
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps({"name": "docs", "expectations": [json.loads(block)]}))
        shown |= {e.configuration.type for e in load(file).expectations}
    assert shown >= {
        "expect_arrival_to_be_fresh",
        "expect_change_feed_to_give_table",
        "expect_history_to_be_whole",
        "expect_key_to_be_unique",
        "expect_keys_to_stay_in_their_partition",
        "expect_rows_to_refer_to_table",
        "expect_table_to_be_fresh",
        "expect_table_to_equal_topic",
        "expect_tombstone_ratio_to_be_between",
    }
