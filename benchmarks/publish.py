"""Compares publishing with both guarantees to a bare producer loop and to Spark's sink, in one run.

    python -m benchmarks.publish [--rows N] [--rounds N] [--out FILE]

Starts its own broker. Prints a table, and with --out a JSON line per comparison. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from benchmarks.formats import table
from benchmarks.measure import Line, line, race
from bridge import config
from bridge.definition import Definition, Topic
from bridge.embedded.broker import Broker
from bridge.encode import encode
from bridge.kafka.sink import produce
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish

ROWS = 1_000_000
TABLE, INGESTED = "table", "ingested"
COLUMNS = (
    "order_id BIGINT, customer STRING, status STRING, amount DECIMAL(10, 2), "
    "updated_at TIMESTAMP(3), note STRING"
)
_SELECT = (
    "id AS order_id, concat('customer-', id % 5000) AS customer, "
    "elt(1 + id % 4, 'NEW', 'PAID', 'SENT', 'DONE') AS status, "
    "CAST(id % 100000 / 100 AS DECIMAL(10, 2)) AS amount, "
    "CAST(timestamp_millis(1700000000000 + id * 1000) AS TIMESTAMP_NTZ) AS updated_at, "
    "IF(id % 4 = 0, 'please leave it at the door', NULL) AS note"
)
_PARTITIONS = 4


@dataclass
class Bench:
    """A table, its records as bytes, and the ways to send them; every run writes to a new topic."""

    spark: SparkSession
    broker: Broker
    folder: Path
    rows: int
    _names: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        path = self.folder / TABLE
        self.spark.range(self.rows).createOrReplaceTempView("bench_ids")
        made = self.spark.sql(f"SELECT {_SELECT} FROM bench_ids")
        made.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(path))
        # Version 1: each row has a row before and after in the feed.
        self.spark.sql(f"UPDATE delta.`{path}` SET customer = concat(customer, '-x')")

    def ingested(self) -> str:
        """Creates a second table by an ingest of a topic with all rows before and then after the update. Returns the
        start of the latter changes, for `publish.start`."""
        topic = self.new_topic()
        definition = self.definition(topic, "at-least-once", table=INGESTED)
        for version in (0, 1):
            began = self._versions(INGESTED)
            self._own_sink(self._records(version), definition.topic)
            ingest(self.spark, definition)
        return f"version:{began}"

    def _versions(self, table: str) -> int:
        return len(list((self.folder / table / "_delta_log").glob("*.json")))

    def lines(self, *, rounds: int, warm: int) -> list[Line]:
        """Runs all comparisons; the first `warm` runs of each do not count."""
        records = self._records().localCheckpoint()
        plain = _plain(records)
        topic = self.definition("unused", "at-least-once").topic
        tasks = self.spark.sparkContext.defaultParallelism
        ways: list[Callable[[], object]] = [
            lambda: self.loop(plain),
            lambda: self._spark_sink(records),
            lambda: self._spark_sink(records.repartition(tasks, "key").sortWithinPartitions("key")),
            lambda: self._own_sink(records, replace(topic, names=(self.new_topic(),))),
        ]
        kinds = list(itertools.product(("snapshot", "version:1"), ("at-least-once", "exactly-once")))
        ways += [partial(self.publish, start, guarantee) for start, guarantee in kinds]
        loop, sink, sink_by_key, own, *published = race(ways, rounds=rounds, warm=warm)
        seconds = dict(zip(kinds, published, strict=True))
        lines = [
            line("the sink alone / Spark's sink", self.rows, sink, own, 0.0),
            line("the sink alone / Spark's sink, partitioned by key", self.rows, sink_by_key, own, 0.0),
        ]
        for start, what in (("snapshot", "a snapshot"), ("version:1", "updates of all rows")):
            some, once = seconds[start, "at-least-once"], seconds[start, "exactly-once"]
            lines += [
                line(f"{what}: exactly-once / at-least-once", self.rows, some, once, 0.8),
                line(f"{what}: at-least-once / a bare produce loop", self.rows, loop, some, 0.0),
                line(f"{what}: exactly-once / a bare produce loop", self.rows, loop, once, 0.0),
            ]
        return lines

    def definition(
        self, topic: str, guarantee: str, start: str = "snapshot", table: str = TABLE
    ) -> Definition:
        """Returns the pipeline between the table and `topic`."""
        options = {
            "connector": "upsert-kafka",
            "topic": topic,
            "properties.bootstrap.servers": self.broker.bootstrap,
            "key.format": "json",
            "value.format": "json",
            "sink.delivery-guarantee": guarantee,
            **({"sink.transactional-id-prefix": topic} if guarantee == "exactly-once" else {}),
        }
        shown = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
        file = self.folder / f"{topic}.yaml"
        file.write_text(
            f"version: 1\nname: {topic}\ntopic:\n  ddl: |\n    CREATE TABLE t ({COLUMNS}, PRIMARY KEY (order_id) NOT "
            f"ENFORCED) WITH ({shown})\ndelta: {{path: {table}}}\nrun: {{checkpoint: checkpoints/{topic}}}\n"
            f"publish: {{start: '{start}'}}\n"
        )
        return config.load(file)

    def new_topic(self) -> str:
        """Creates a compacted topic."""
        name = f"bench-{next(self._names)}"
        self.broker.create_topic(name, partitions=_PARTITIONS, config={"cleanup.policy": "compact"})
        return name

    def _records(self, version: int = 1) -> DataFrame:
        rows = self.spark.read.format("delta").load(str(self.folder / TABLE), versionAsOf=version)
        changes = rows.selectExpr("*", "'+I' AS __kind", "named_struct('version', 0L) AS __position")
        return encode(changes, self.definition("unused", "at-least-once").topic).select("key", "value")

    def plain(self, rows: int) -> list[tuple[bytes, bytes]]:
        """Returns the records of up to `rows` rows of the table."""
        return _plain(self._records().limit(rows))

    def loop(self, plain: Iterable[tuple[bytes, bytes]]) -> None:
        """Sends records with a bare producer."""
        producer = Producer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 20,
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": 500_000,
                "partitioner": "murmur2_random",
            }
        )
        topic, produce = self.new_topic(), producer.produce
        for key, value in plain:
            while True:
                try:
                    produce(topic, value, key)
                    break
                except BufferError:
                    producer.poll(0.05)
        assert producer.flush(120) == 0

    def _spark_sink(self, records: DataFrame) -> None:
        writer = records.write.format("kafka").option("kafka.bootstrap.servers", self.broker.bootstrap)
        writer.option("kafka.compression.type", "lz4").option("kafka.linger.ms", "20").option(
            "topic", self.new_topic()
        ).save()

    def _own_sink(self, records: DataFrame, topic: Topic) -> None:
        sent = produce(records, topic, order_by=["key"])
        assert sent.records == self.rows, sent

    def publish(self, start: str, guarantee: str, table: str = TABLE) -> str:
        """Publishes a table and returns the new topic."""
        topic = self.new_topic()
        done = publish(self.spark, self.definition(topic, guarantee, start, table))
        assert done.records_out == self.rows, done
        return topic


def _plain(records: DataFrame) -> list[tuple[bytes, bytes]]:
    return [(bytes(row["key"]), bytes(row["value"])) for row in records.collect()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs and prints the benchmark; returns 0 when every goal is met, otherwise 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.publish", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rows", type=int, default=int(os.environ.get("ROWS") or ROWS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="file for a JSON line per comparison")
    chosen = parser.parse_args(arguments)
    from bridge.session import build_session

    spark = build_session("bridge-benchmarks")
    try:
        with (
            tempfile.TemporaryDirectory(prefix="bench-publish-") as name,
            Broker(Path(name) / "broker") as broker,
        ):
            bench = Bench(spark, broker, Path(name), chosen.rows)
            lines = bench.lines(rounds=chosen.rounds, warm=1)
    finally:
        spark.sparkContext.stop()
    Console(width=120).print(table(lines, "baseline"))
    if chosen.out:
        chosen.out.write_text("".join(json.dumps(line.json()) + "\n" for line in lines))
    return 0 if all(line.held for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
