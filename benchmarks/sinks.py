"""A whole table into an upsert topic, beside Flink's upsert-kafka sink, as whole processes."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame

from benchmarks import flink, paimon
from benchmarks.goals import Outcome
from benchmarks.ground import Ground
from benchmarks.jobs import JobError, run
from benchmarks.oracle import digest, same
from benchmarks.publish import COLUMNS, Bench
from benchmarks.results import Entry
from benchmarks.rounds import compared, in_turn

_FLINK = "Paimon → Flink's upsert-kafka"
_KEY = "PRIMARY KEY (order_id) NOT ENFORCED"
_PRODUCER = {"compression.type": "lz4", "linger.ms": "20", "batch.size": "1000000", "acks": "all"}
"""The bridge's defaults; Flink's own wait for nothing and compress nothing."""


def outcomes(
    ground: Ground,
    bench: Bench,
    table: tuple[int, int],
    rounds: int,
    rows: Callable[[str], DataFrame],
) -> list[Outcome]:
    """Flink reads the same rows from a Paimon table. `table` is the digest of the rows, `rows` reads a topic."""
    what = f"publish of a table of {table[0]:,} rows, whole process"
    peer = flink.found()
    place = ground.place()
    numbers = itertools.count()
    warehouse = place / "table"
    if peer is not None:
        filled = _fill(ground.broker.bootstrap, bench.publish("snapshot", "at-least-once"), warehouse)
        subprocess.run(peer.command(place / "fill", filled, paimon.BATCH), check=True, capture_output=True)

    def played(system: str, command: Callable[[str, Path], list[str]]) -> Entry:
        topic, folder = bench.new_topic(), place / f"run-{next(numbers)}"
        try:
            given = command(topic, folder / "job")
            ran = run(given, folder=folder / "run", table=folder, spark=False, beside=ground.serving)
        except JobError as error:
            ground.say(str(error))
            return ground.added(Entry(what, system, table[0], None, str(error).splitlines()[-1]))
        wrong = same(table, digest(rows(topic)))
        return ground.added(Entry(what, system, table[0], ran, wrong, ground.tolerance))

    def bridge(topic: str, _: Path) -> list[str]:
        bench.definition(topic, "at-least-once")
        return [sys.executable, "-m", "bridge", "publish", str(bench.folder / f"{topic}.yaml")]

    def beside(topic: str, folder: Path) -> list[str]:
        assert peer is not None
        return peer.command(folder, _send(ground.broker.bootstrap, topic, warehouse), paimon.BATCH)

    own, theirs = in_turn(
        rounds,
        [lambda: played("bridge", bridge), lambda: played(_FLINK, beside) if peer else None],
    )
    assert own is not None
    return [compared(f"{what}, beside {_FLINK}", "records/s", lambda e: e.rate, 1.0, theirs, own)]


def _fill(bootstrap: str, topic: str, warehouse: Path) -> list[str]:
    """The rows of a topic into a new Paimon table."""
    source = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": bootstrap,
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        "format": "json",
    }
    return [
        *paimon.catalog(warehouse),
        f"CREATE TABLE {paimon.TABLE} ({COLUMNS}, {_KEY}) WITH ('bucket' = '4')",
        f"CREATE TEMPORARY TABLE source ({COLUMNS}) WITH ({paimon.shown(source)})",
        f"INSERT INTO {paimon.TABLE} SELECT * FROM source",
    ]


def _send(bootstrap: str, topic: str, warehouse: Path) -> list[str]:
    """The rows of the Paimon table into a topic."""
    sink = {
        "connector": "upsert-kafka",
        "topic": topic,
        "properties.bootstrap.servers": bootstrap,
        "key.format": "json",
        "value.format": "json",
        **{f"properties.{key}": value for key, value in _PRODUCER.items()},
    }
    return [
        *paimon.catalog(warehouse),
        f"CREATE TEMPORARY TABLE sink ({COLUMNS}, {_KEY}) WITH ({paimon.shown(sink)})",
        f"INSERT INTO sink SELECT * FROM {paimon.TABLE}",
    ]
