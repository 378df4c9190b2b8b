"""`bridge check`: output, options and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as XML

import pytest
from pyspark.sql import SparkSession

from bridge.cli.app import main
from bridge.cli.check_command import failure_threshold
from tests.config.files import WHOLE, loaded
from tests.metrics.openlineage import events_in
from tests.pipelines.scripts.scripts import MakeScript
from tests.pipelines.world import Make, upsert

CONSTANTS = """
SET 'bridge.events' = 'events.jsonl';
SET 'bridge.lineage' = 'lineage.jsonl';
CREATE TABLE letters (id BIGINT, letter STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-l');
INSERT INTO letters VALUES (1, 'x'), (2, 'y');
"""

SUITE = {
    "name": "orders",
    "expectations": [
        {"type": "expect_key_to_be_unique", "kwargs": {"column_list": ["id"]}},
        {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "name"}, "severity": "warning"},
    ],
}


def test_check_from_init_to_failure(
    make: Make, spark: SparkSession, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A warning fails the check only with `--fail-on warn`; a duplicate does always; lag and changes are reported."""
    (lake / "orders.json").write_text(json.dumps(SUITE))
    world = make(sections="quality: {suite: orders.json}\n")
    world.send([upsert(1, "a"), upsert(2, None)])
    world.definition()
    file, junit, summary = str(lake / "orders.yaml"), lake / "junit.xml", lake / "ci" / "summary.md"
    assert main(["ingest", file, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["check", file, "--junit", str(junit), "--data-docs", str(lake / "docs")]) == 0
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if "met" in line]
    assert "! not met (warning)" in lines[0] and "1 of 2 values fails" in lines[0]
    assert "✓ met" in lines[1] and "e.g. id = 2" in out
    assert (
        "Passed with warnings: 1 of 2 expectations is not met. Checked 2 rows. The table is up to date" in out
    )
    assert XML.parse(junit).getroot().attrib["skipped"] == "1"
    assert (lake / "docs" / "index.html").is_file()

    world.send([upsert(n, "b") for n in (3, 4, 5)])
    spark.sql(f"INSERT INTO delta.`{lake}/table` VALUES (1, 'again', 2.0)")
    arguments = ["--fail-on", "warn", "--markdown", str(summary), "--json", "--scheduled"]
    assert main(["check", file, *arguments]) == 3
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["state"], found["row_count"], found["subject"]["trigger"]) == ("failed", 3, "schedule")
    assert "2 of 2 expectations failed; see " in err
    assert summary.read_text(encoding="utf-8").startswith(
        "## orders: Failed: 2 of 2 expectations are not met\n"
    )
    assert "is 3 records behind its topic" in summary.read_text(encoding="utf-8")
    rows = spark.read.format("delta").load(f"{lake}/table_quality").where("trigger = 'schedule'").collect()
    assert {(r["lag"], r["inserted"], r["updated"], r["deleted"]) for r in rows} == {(3, 1, 0, 0)}
    assert json.loads(rows[0]["offsets"])[world.topic]


def test_a_result_of_a_script_is_checked(
    script_of: MakeScript, spark: SparkSession, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--init proposes a suite beside the script; results are in the folder of the state."""
    script = script_of(CONSTANTS)
    script.run()
    file, suite = str(lake / "script.sql"), lake / "expectations" / "script.results-letters.json"
    assert main(["check", file, "--insert", "letters", "--init"]) == 0
    assert "expect_key_to_be_unique" in suite.read_text()
    capsys.readouterr()
    assert main(["check", file]) == 0
    assert "Passed" in capsys.readouterr().out
    results = spark.read.format("delta").load(f"{lake}/bridge-state/script/quality")
    assert {row["pipeline"] for row in results.collect()} == {"script.results-letters"}
    assert "script.results-letters" in (lake / "events.jsonl").read_text().splitlines()[-1]
    last = events_in(lake / "lineage.jsonl")[-1]
    assert last["job"]["name"] == "script.results-letters.check"
    assert [d["name"] for d in last["inputs"]] == [f"{lake}/bridge-state/script/results/letters"]


@pytest.mark.parametrize(
    ("on_failure", "fail_on", "level"),
    [
        ("fail", None, "error"),
        ("warn", None, None),
        ("warn", "error", "error"),
        ("warn", "warn", "warn"),
        ("fail", "warn", "warn"),
    ],
)
def test_fail_on_overrides_the_file(
    tmp_path: Path, on_failure: str, fail_on: str | None, level: str | None
) -> None:
    section = f"quality: {{suite: s.json, on-failure: {on_failure}}}\n"
    assert failure_threshold(loaded(tmp_path, WHOLE + section), fail_on) == level


def test_an_illegal_level_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "absent.yaml", "--fail-on", "info"]) == 2
    assert "--fail-on info: legal values are error, warn" in capsys.readouterr().err


def test_a_suite_is_exported_without_a_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "orders.json").write_text(json.dumps(SUITE))
    loaded(tmp_path, WHOLE + "quality: {suite: orders.json}\n")
    (file,) = tmp_path.glob("*.yaml")
    made = tmp_path / "made" / "expectations.py"
    assert main(["check", str(file), "--export-dp", str(made), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["exported"], len(found["not_exported"])) == (1, 1)
    assert '@dp.expect("name values must never be null.", "`name` IS NOT NULL")' in made.read_text()
    assert main(["check", str(file), "--export-dp", str(made), "--init"]) == 2
    assert "--init runs no check: leave out" in capsys.readouterr().err
