"""Each comparison is a row, a metric, an event and, if rows differ, an alert; errors do not end a standing run."""

from __future__ import annotations

import json
import re
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.definition import Definition, DeltaTarget
from bridge.delta.result_table import LEDGER_COLUMNS, VERIFY_LEDGER
from bridge.errors import BridgeError, DefinitionError, DifferenceError
from bridge.metrics.monitoring import Monitoring
from bridge.pipelines.compare.reconciliation import reconcile
from bridge.pipelines.compare.verify import Proof
from bridge.pipelines.ingest.run import ingest
from tests.metrics.openlineage import edges, events_in
from tests.metrics.test_prometheus import gateway
from tests.pipelines.world import Make, World, upsert


@pytest.fixture
def world(make: Make, spark: SparkSession) -> World:
    made = make()
    made.send([upsert(n, f"n{n}") for n in range(3)])
    ingest(spark, made.definition())
    return made


def monitored(world: World, folder: Path, url: str) -> Definition:
    made = world.definition()
    lineage = str(folder / "lineage.jsonl")
    monitoring = Monitoring.of(None, str(folder / "events.jsonl"), url, lineage=lineage)
    return replace(made, run=replace(made.run, monitoring=monitoring))


def test_a_standing_comparison(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal; then a row is gone; then the table is gone, which no comparison survives; then it is back."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table, away = Path(world.folder, "table"), tmp_path / "away"
    ledger, stop = DeltaTarget(path=f"{world.folder}/ledger"), threading.Event()
    results: list[bool] = []
    failures: list[str] = []

    def compared(proof: Proof) -> None:
        results.append(proof.equal)
        if len(results) == 1:
            world.spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 2")
        elif len(results) == 2:
            shutil.move(table, away)
        else:
            stop.set()

    def failed(error: BridgeError) -> None:
        failures.append(type(error).__name__)
        shutil.move(away, table)

    with (
        gateway() as (url, told),
        pytest.raises(DifferenceError, match=r'1 keys missing .* example \{"id":2\}'),
    ):
        reconcile(
            world.spark, monitored(world, tmp_path, url), direction="ingest", ledger=ledger,
            metrics=str(tmp_path / "verify.prom"), every_seconds=0.01, stop=stop, compared=compared, failed=failed,
        )  # fmt: skip
    assert results == [True, False, False] and failures == ["TableError"]
    frame = VERIFY_LEDGER.stored(world.spark, ledger)
    assert frame is not None and frame.columns == list(LEDGER_COLUMNS)
    rows = frame.orderBy("started").collect()
    assert [row.result for row in rows] == ["equal", "different", "failed", "different"]
    equal, different, lost, _ = rows
    assert equal.topic_checksum == equal.table_checksum and equal.topic_rows == equal.table_rows == 3
    assert (different.missing_in_table, different.table_rows, different.direction) == (1, 2, "ingest")
    assert json.loads(different.offsets) and different.version == equal.version + 1
    assert lost.error.startswith("TableError: ") and lost.version is None
    assert [json.loads(body.partition("\n")[2])["cause"] for body in told] == ["different", "failed"]
    shown = (tmp_path / "verify.prom").read_text()
    samples = re.findall(r'^(bridge_\w+)\{.*?(?:result="(\w+)",)?topic=.* (\S+)$', shown, re.MULTILINE)
    assert {("bridge_differing_keys", "", "1.0"), ("bridge_verifications_total", "compared", "3.0"),
            ("bridge_verifications_total", "failed", "1.0")} <= set(samples)  # fmt: skip
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [e["event"] for e in events] == [
        "started", "batch", "batch", "batch", "failed", "batch", "failed"
    ]  # fmt: skip
    batches = [e for e in events if e["event"] == "batch"]
    assert [(e["differing_keys"], e["failed_comparisons"]) for e in batches] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (1, 0),
    ]
    assert [e["error"] for e in events if e["event"] == "failed"] == ["TableError", "DifferenceError"]
    sent = events_in(tmp_path / "lineage.jsonl")
    assert sent[-1]["eventType"] == "FAIL"
    assert sent[-1]["run"]["facets"]["errorMessage"]["message"] == "DifferenceError"
    assert edges(sent) == {
        (world.topic, "orders.verify"),
        (str(table), "orders.verify"),
        ("orders.verify", str(ledger)),
    }


def test_what_no_later_comparison_can_mend_ends_it(world: World) -> None:
    def unexpected(_: object) -> None:
        raise AssertionError

    with pytest.raises(DefinitionError, match="nothing to verify"):
        reconcile(
            world.spark, world.definition(), direction="publish", every_seconds=0.01, compared=unexpected,
            failed=unexpected,
        )  # fmt: skip
