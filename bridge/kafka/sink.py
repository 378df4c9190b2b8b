"""Records -> topic: every task sends its share with a producer of its own, keys never change tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from bridge.definition import DeliveryGuarantee, Topic
from bridge.errors import KafkaError, UnsupportedError
from bridge.kafka.properties import for_librdkafka
from bridge.kafka.writer import Buffer, Records, Writer, producer_settings
from bridge.partitioners import BUILT_IN, opened

__all__ = ["ProduceResult", "produce"]

_COUNTS = "records bigint, tombstones bigint, bytes bigint, lost bigint"
_OURS = re.compile(r"bridge\.errors\.KafkaError: (.*)")


@dataclass(frozen=True)
class ProduceResult:
    """What went out: records, how many of them tombstones, bytes of keys and values before compression.

    `lost` counts deliveries that failed; it can only be above 0 with sink.delivery-guarantee none.
    """

    records: int = 0
    tombstones: int = 0
    bytes: int = 0
    lost: int = 0


@dataclass(frozen=True)
class _Task:
    """All a task needs, as plain values. Holds secrets in clear: never shown, so no repr of its fields."""

    settings: Mapping[str, Any]
    topics: tuple[str, ...]
    pattern: str | None
    checked: bool
    buffer_rows: int
    buffer_interval_ms: int
    partitioner: str = "default"
    tasks: int = 1
    """How many tasks send; what a partitioner may want to know."""

    def __repr__(self) -> str:
        return f"_Task({self.pattern or ', '.join(self.topics)})"

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        context = TaskContext.get()
        partitioner = opened(self.partitioner, context.partitionId() if context else 0, self.tasks)
        with Writer(self.settings, checked=self.checked, partitioner=partitioner) as writer:
            if self.buffer_rows:
                buffer = Buffer(writer.send, max_rows=self.buffer_rows, interval_ms=self.buffer_interval_ms)
                for batch in batches:
                    buffer.add(self._records(batch))
                buffer.flush()
            else:
                for batch in batches:
                    writer.send(self._records(batch))
        sent = writer.sent
        counts = {
            "records": sent.records,
            "tombstones": sent.tombstones,
            "bytes": sent.bytes,
            "lost": sent.lost,
        }
        yield pa.RecordBatch.from_pydict({name: [count] for name, count in counts.items()})

    def _records(self, batch: pa.RecordBatch) -> Records:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        records = Records(
            topics=self._topics(columns.get("topic"), batch.num_rows),
            keys=columns["key"].to_pylist(),
            values=columns["value"].to_pylist(),
        )
        if "timestamp" in columns:
            # Spark's timestamps arrive as microseconds since 1970, Kafka's are milliseconds.
            records.timestamps = pc.divide(columns["timestamp"].cast(pa.int64()), 1000).to_pylist()
        if "headers" in columns:
            headers = columns["headers"].to_pylist()
            records.headers = [h and [(x["key"], x["value"]) for x in h] for h in headers]
        return records

    def _topics(self, column: pa.Array | None, rows: int) -> list[str]:
        """Each row's topic. Where there is only one, rows need not name it (Flink: the column is not looked at)."""
        if column is None or (len(self.topics) == 1 and self.pattern is None):
            return [self.topics[0]] * rows
        for name in column.unique().to_pylist():
            if self.pattern is not None:
                legal, expected = name and re.fullmatch(self.pattern, name), f"to match: {self.pattern}"
            else:
                legal, expected = name in self.topics, f"to be in: [{', '.join(self.topics)}]"
            if not legal:
                raise KafkaError(
                    "The topic of the sink record is not valid. Expected topic "
                    f"{expected} but was: {'null' if name is None else name}"
                )
        names: list[str] = column.to_pylist()
        return names


def produce(records: DataFrame, topic: Topic, *, order_by: Sequence[str] = ()) -> ProduceResult:
    """Send `records` (key, value; optional timestamp, headers, topic; columns of `order_by`) and wait for it.

    All records of a key go out from one task in the order of `order_by`, to the partition that Java's default
    partitioner (or `sink.partitioner`) gives it; without a key format any task sends any record. With
    at-least-once it returns after the broker has acknowledged every record; a repeated task sends its records
    again, in order. Buffering (`sink.buffer-flush.*`) keeps a key's last record per task and flush. Raises
    KafkaError when a record cannot be delivered, naming topic, partition and reason; the rest may then have
    been sent or not.
    """
    guarantee = topic.sink.delivery_guarantee
    if guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        raise UnsupportedError(
            "'sink.delivery-guarantee' = 'exactly-once' needs transactions, which this sink does not use; "
            "at-least-once gives the same last value per key",
            "exactly-once",
        )
    spark = records.sparkSession
    if str(spark.conf.get("spark.speculation", "false")).lower() == "true":
        raise KafkaError(
            "spark.speculation must be false: a second attempt of a task sends old values behind new ones"
        )
    checked = guarantee is DeliveryGuarantee.AT_LEAST_ONCE
    tasks = topic.sink.parallelism or spark.sparkContext.defaultParallelism
    task = _Task(
        settings=producer_settings(for_librdkafka(topic.properties, "producer"), checked=checked),
        topics=topic.names,
        pattern=topic.pattern,
        checked=checked,
        buffer_rows=topic.sink.buffer_rows,
        buffer_interval_ms=topic.sink.buffer_interval_ms,
        partitioner=topic.sink.partitioner,
        tasks=tasks,
    )
    parted = records
    if topic.key is not None:
        parted = records.repartition(tasks, "key")
    elif topic.sink.parallelism or topic.sink.partitioner not in BUILT_IN:
        parted = records.repartition(tasks)  # a partitioner is told how many tasks there are
    if order_by:
        parted = parted.sortWithinPartitions(*order_by)
    sent = [c for c in ("key", "value", "timestamp", "headers", "topic") if c in records.columns]
    try:
        # One row of counts per task; collected, since an aggregate would need a second stage.
        counts = parted.select(*sent).mapInArrow(task.run, _COUNTS).collect()
    except (PySparkException, Py4JJavaError) as failed:
        ours = _OURS.search(str(failed))
        if ours is None:
            raise
        raise KafkaError(ours[1]) from None
    return ProduceResult(*(sum(row[i] for row in counts) for i in range(4)))
