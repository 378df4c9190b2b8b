"""The verbs that operate a pipeline: output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.cli.app import main
from tests.pipelines.world import Make, upsert


def test_status_verify_and_resync(
    make: Make, spark: SparkSession, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ingest, status, verify; then a difference, which verify reports with exit code 4 and resync repairs."""
    world = make()
    world.send([upsert(1, "a"), upsert(2, "b")])
    world.definition()
    file = str(lake / "orders.yaml")
    assert main(["ingest", file]) == 0
    out = capsys.readouterr().out
    assert "ingest orders  batch 0" in out and "+I 2" in out
    assert main(["status", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pending_records"] == 0
    assert main(["verify", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["equal"] is True
    assert main(["doctor", file]) == 0
    out = capsys.readouterr().out
    assert "doctor ingest orders" in out and "batch 0; 0 records are pending" in out
    assert main(["doctor", file, "--direction", "publish", "--json"]) == 0
    assert {found["outcome"] for found in json.loads(capsys.readouterr().out)} == {"fine"}

    spark.sql(f"DELETE FROM delta.`{lake}/table` WHERE id = 2")
    world.send([upsert(1, "a")])
    assert main(["ingest", file, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["verify", file, "--ledger", f"{lake}/ledger"]) == 4
    out, err = capsys.readouterr()
    assert "1 keys missing in the table" in err and '{"id":2}' in err
    assert "missing in table; topic: " in out and " at offset " in out and '"name"' not in out

    assert main(["resync", file, "--dry-run"]) == 0
    assert "resync of orders, dry run" in capsys.readouterr().out
    assert main(["resync", file, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["direction"], found["inserted"], found["unchanged"]) == ("ingest", 1, 1)
    assert main(["verify", file, "--quiet", "--ledger", f"{lake}/ledger"]) == 0
    ledger = spark.read.format("delta").load(f"{lake}/ledger").orderBy("started")
    assert [row.result for row in ledger.collect()] == ["different", "equal"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verify", "--log-format", "xml"], "--log-format xml: legal values are text, json"),
        (["check", "--metrics", "9464"], "--metrics 9464: `bridge check` ends as soon as it has a result"),
        (
            ["verify", "--metrics", "9464"],
            "name a file (.prom) or the URL of a push gateway, or verify with --every",
        ),
        (["verify", "--direction", "both"], "--direction both: legal values are ingest, publish"),
        (["doctor", "--direction", "both"], "--direction both: legal values are ingest, publish"),
        (["resync", "--missing", "perhaps"], "--missing perhaps: legal values are delete, keep"),
    ],
)
def test_an_illegal_choice_is_rejected(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([arguments[0], "absent.yaml", *arguments[1:]]) == 2
    assert words in capsys.readouterr().err
