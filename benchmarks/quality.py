"""Compares the gate with no gate and with Great Expectations on each batch, in one run.

    python -m benchmarks.quality [--rows N] [--batch N] [--rounds N] [--out FILE]

Starts its own broker. Prints a table, and with --out a JSON line per comparison. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from benchmarks.formats import table
from benchmarks.measure import Line, line
from bridge import config
from bridge.definition import Definition
from bridge.embedded.broker import Broker
from bridge.encode import encode
from bridge.metrics import BatchReport
from bridge.pipelines.changes.batch_stats import BatchStats, collect_batch_stats
from bridge.pipelines.changes.good_changes import sets_row
from bridge.pipelines.ingest import batch
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.quality.run import run
from bridge.quality.suite import Suite, load

ROWS, BATCH = 1_000_000, 200_000
GOAL = 1 / 1.15
"""A gate may add 15 % to the time of a batch."""

_COLUMNS = (
    "order_id BIGINT, customer STRING, status STRING, amount DECIMAL(10, 2), quantity INT, placed_at TIMESTAMP(3), "
    "updated_at TIMESTAMP(3), note STRING"
)
_SELECT = (
    "id AS order_id, concat('customer-', id % 5000) AS customer, "
    "elt(1 + id % 4, 'NEW', 'PAID', 'SENT', 'DONE') AS status, "
    "CAST(id % 100000 / 100 AS DECIMAL(10, 2)) AS amount, CAST(1 + id % 90 AS INT) AS quantity, "
    "CAST(timestamp_millis(1700000000000 + id * 1000) AS TIMESTAMP_NTZ) AS placed_at, "
    "CAST(timestamp_millis(1700000090000 + id * 1000) AS TIMESTAMP_NTZ) AS updated_at, "
    "IF(id % 4 = 0, 'please leave it at the door', NULL) AS note"
)


def _expect(type: str, **kwargs: object) -> dict[str, object]:
    return {"type": f"expect_{type}", "kwargs": kwargs}


SUITE = [
    *(
        _expect("column_values_to_not_be_null", column=name)
        for name in ("order_id", "customer", "status", "amount", "placed_at")
    ),
    _expect("column_values_to_be_in_set", column="status", value_set=["NEW", "PAID", "SENT", "DONE"]),
    _expect("column_values_to_be_between", column="amount", min_value=0, max_value=100000),
    _expect("column_values_to_be_between", column="quantity", min_value=1, max_value=100, mostly=0.99),
    _expect("column_values_to_match_regex", column="customer", regex="^customer-[0-9]+$"),
    _expect("column_value_lengths_to_be_between", column="note", min_value=1, max_value=200),
    _expect(
        "column_pair_values_a_to_be_greater_than_b",
        column_A="updated_at",
        column_B="placed_at",
        or_equal=True,
    ),
    _expect(
        "column_values_to_be_between",
        column="amount",
        min_value=0,
        row_condition="status = 'PAID'",
        condition_parser="spark",
    ),
]


@dataclass
class Bench:
    """A topic and a table of orders; every run writes to a table or topic of its own."""

    spark: SparkSession
    broker: Broker
    folder: Path
    rows: int
    batch: int
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        suite = json.dumps({"name": "orders", "expectations": SUITE})
        (self.folder / "suite.json").write_text(suite)
        self.suite = load(self.folder / "suite.json")
        self.broker.create_topic("orders", partitions=2, config={"cleanup.policy": "compact"})
        self.spark.range(self.rows).createOrReplaceTempView("bench_ids")
        made = self.spark.sql(f"SELECT {_SELECT} FROM bench_ids")
        path = self.folder / "source"
        made.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(path))
        changes = made.selectExpr("*", "'+I' AS __kind", "named_struct('version', 0L) AS __position")
        records = encode(changes, self.definition("off").topic).select("key", "value")
        writer = records.write.format("kafka").option("kafka.bootstrap.servers", self.broker.bootstrap)
        writer.option("topic", "orders").save()

    def lines(self, *, rounds: int) -> list[Line]:
        """Runs all comparisons by the shortest of the rounds; the first round does not count."""
        ways: dict[str, Callable[[], float]] = {
            "none": lambda: self._ingest("off"),
            "warn": lambda: self._ingest("warn"),
            "fail": lambda: self._ingest("fail"),
            "quarantine": lambda: self._ingest("quarantine"),
            "gx": lambda: self._ingest("off", plain=True),
            "sent": lambda: self._publish("off"),
            "sent warn": lambda: self._publish("warn"),
        }
        found: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(rounds + 1):
            for name, way in ways.items():
                seconds = way()
                print(f"round {turn} of {rounds}: {name}: {seconds:.1f} s", file=sys.stderr, flush=True)
                if turn:
                    found[name].append(seconds)
        best = {name: min(seconds) for name, seconds in found.items()}
        count = self.rows - self.batch
        return [
            line("ingest: gate warn / no gate", count, best["none"], best["warn"], GOAL),
            line("ingest: gate fail / no gate", count, best["none"], best["fail"], GOAL),
            line("ingest: gate quarantine / no gate", count, best["none"], best["quarantine"], 0.0),
            line(
                "ingest: gate warn / Great Expectations on each batch", count, best["gx"], best["warn"], 1.0
            ),
            line("ingest: Great Expectations on each batch / no gate", count, best["none"], best["gx"], 0.0),
            line("publish: gate warn / no gate", self.rows, best["sent"], best["sent warn"], GOAL),
        ]

    def definition(self, gate: str, *, topic: str = "orders", table: str = "source") -> Definition:
        """Returns the pipeline between `topic` and `table`."""
        file = self.folder / f"{topic}-{table}-{gate}.yaml"
        file.write_text(
            f"version: 1\nname: {topic}-{table}\ntopic:\n  ddl: |\n    CREATE TABLE t ({_COLUMNS}, PRIMARY KEY "
            f"(order_id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = '{topic}', "
            f"'properties.bootstrap.servers' = '{self.broker.bootstrap}', 'key.format' = 'json', "
            f"'value.format' = 'json')\ndelta: {{path: {table}}}\n"
            f"run: {{checkpoint: checkpoints/{topic}-{table}, max-offsets-per-batch: {self.batch}}}\n"
            f"quality: {{suite: suite.json, gate: {gate}}}\n"
        )
        return config.load(file)

    def _ingest(self, gate: str, *, plain: bool = False) -> float:
        """Returns the seconds of all batches but the first, which loads classes for the others."""
        definition = self.definition(gate, table=f"table{next(self._numbers)}")
        reports: list[BatchReport] = []
        judging: AbstractContextManager[object] = nullcontext()
        if plain:
            judging = patch.object(
                batch, "collect_batch_stats", lambda d, changes: _surveyed(d, changes, self.suite)
            )
        with judging:
            done = ingest(self.spark, definition, listener=reports.append)
        assert (done.records_in, done.unexpected_rows) == (self.rows, 0), done
        return sum(report.seconds for report in reports[1:])

    def _publish(self, gate: str) -> float:
        topic = f"sent{next(self._numbers)}"
        self.broker.create_topic(topic, partitions=2, config={"cleanup.policy": "compact"})
        reports: list[BatchReport] = []
        done = publish(self.spark, self.definition(gate, topic=topic), listener=reports.append)
        assert (done.records_out, done.unexpected_rows) == (self.rows, 0), done
        return sum(report.seconds for report in reports)


def _surveyed(definition: Definition, changes: DataFrame, suite: Suite) -> BatchStats:
    """Runs Great Expectations on the decoded rows in memory, as a user would."""
    found = collect_batch_stats(definition, changes)
    verdict = run(changes.where(sets_row()), suite)
    assert verdict.success, verdict.failed
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs and prints the benchmark; returns 0 when every goal is met, otherwise 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rows", type=int, default=int(os.environ.get("ROWS") or ROWS))
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, help="file for a JSON line per comparison")
    chosen = parser.parse_args(arguments)
    if chosen.rows < 2 * chosen.batch:
        parser.error(
            f"--rows {chosen.rows}: the first batch does not count, so the rows must fill at least two batches"
        )
    from bridge.session import build_session

    spark = build_session("bridge-benchmarks")
    try:
        with (
            tempfile.TemporaryDirectory(prefix="bench-quality-") as name,
            Broker(Path(name) / "broker") as broker,
        ):
            bench = Bench(spark, broker, Path(name), chosen.rows, chosen.batch)
            lines = bench.lines(rounds=chosen.rounds)
    finally:
        spark.sparkContext.stop()
    Console(width=120).print(table(lines, "baseline"))
    if chosen.out:
        chosen.out.write_text("".join(json.dumps(line.json()) + "\n" for line in lines))
    return 0 if all(line.held for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
