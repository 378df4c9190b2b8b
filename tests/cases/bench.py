"""Provides the environment of a case: topics and a table of its own, on the session and broker of the run."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from bridge.columns import col
from bridge.definition import Definition
from bridge.embedded.broker import Broker
from bridge.schema import DataType
from tests.cases import pipeline
from tests.cases.case import Part
from tests.cases.schemas import Schemas
from tests.cases.values import comparable, payload
from tests.reader import messages

_SECONDS = 20.0
_count = itertools.count(1)


@dataclass(frozen=True)
class World:
    """Resources that all cases of a run share."""

    spark: SparkSession
    broker: Broker
    folder: Path
    schemas: Schemas = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schemas", Schemas(self.spark, self.folder / "schemas"))


@dataclass(frozen=True)
class Wire:
    """A record as read by a plain consumer."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass
class Bench:
    """The environment of one case. Topics are named after `label`, uniquely."""

    world: World
    label: str
    name: str = field(init=False)
    folder: Path = field(init=False)
    schemas: dict[str, Any] = field(init=False, default_factory=dict)
    """Avro schemas by the names in the case's records."""

    def __post_init__(self) -> None:
        self.name = f"{re.sub(r'[^A-Za-z0-9]+', '-', self.label).lower()}-{next(_count)}"
        self.folder = self.world.folder / self.name

    def topic(self, partitions: int = 1, suffix: str = "") -> str:
        """Creates a topic without retention, since cases have old timestamps, and returns its name."""
        name = f"{self.name}{suffix}"
        kept = {"retention.ms": "-1", "message.timestamp.before.max.ms": "9223372036854775807"}
        self.world.broker.create_topic(name, partitions=partitions, config=kept)
        return name

    def define(
        self,
        part: Part,
        topic: str,
        *,
        name: str = "case",
        writes: bool = False,
        cut: int | None = None,
        sections: str = "",
        follows: bool = False,
    ) -> Definition:
        """Writes the case's pipeline file for `topic` and loads it; raises what config.load raises."""
        options = self.reachable(pipeline.options_of(part, topic, self.world.broker.bootstrap))
        statement = pipeline.create_table(part, options, writes=writes)
        more: dict[str, Any] = {"cut": cut, "sections": sections, "follows": follows}
        return pipeline.write(self.folder, f"{self.name}-{name}", statement, delta=part.take("delta"), **more)

    def reachable(self, options: dict[str, str]) -> dict[str, str]:
        """Returns `options` with the URL of the run's schema registry in place of the placeholder."""
        return {k: self.world.schemas.url if v == pipeline.REGISTRY else v for k, v in options.items()}

    def learn_schemas(self, part: Part) -> None:
        """Reads the schemas of a case: those that its records name, and those that need a given id."""
        self.schemas = part.take("schemas") or {}
        for entry in part.take("schema_registry") or []:
            self.world.schemas.place(entry["id"], entry["subject"], entry["schema"])

    def produce(self, topic: str, records: Iterable[dict[str, Any]]) -> None:
        """Sends records in order, each to its partition (by default murmur2 of the key), and waits."""
        producer = Producer(
            {"bootstrap.servers": self.world.broker.bootstrap, "partitioner": "murmur2_random"}
        )
        errors: list[Any] = []
        for record in records:
            more: dict[str, Any] = {}
            if record.get("partition") is not None:
                more["partition"] = record["partition"]
            if record.get("timestamp") is not None:
                more["timestamp"] = record["timestamp"]
            if record.get("headers"):
                more["headers"] = [(k, payload(v)) for k, v in record["headers"]]
            producer.produce(
                topic,
                key=self._bytes(record.get("key"), f"{topic}-key"),
                value=self._bytes(record.get("value"), f"{topic}-value"),
                on_delivery=lambda error, _: errors.append(error) if error else None,
                **more,
            )
        if producer.flush(_SECONDS) or errors:
            raise RuntimeError(f"cannot write to topic {topic!r}: {errors[:1]}")

    def _bytes(self, given: Any, subject: str) -> bytes | None:
        if isinstance(given, dict) and "avro" in given:
            return self.world.schemas.framed(given, self.schemas, subject)
        return payload(given)

    def consume(self, topic: str) -> list[Wire]:
        """Reads all records of the topic, partition by partition, with a plain consumer."""
        return [_wire(message) for message in messages(self.world.broker.bootstrap, topic)]

    def delete_records(self, topic: str, before: dict[str, int]) -> None:
        """Deletes the records before the given offset of each partition."""
        admin = AdminClient({"bootstrap.servers": self.world.broker.bootstrap})
        wanted = [TopicPartition(topic, int(number), offset) for number, offset in before.items()]
        for future in admin.delete_records(wanted, request_timeout=_SECONDS).values():
            future.result()

    def table(self, definition: Definition) -> DataFrame:
        """Reads the newest version of the Delta table with plain Spark."""
        return self.world.spark.read.format("delta").load(str(definition.delta.path))

    def rows(self, definition: Definition, shape: Sequence[tuple[str, DataType]]) -> list[tuple[Any, ...]]:
        """Returns the table's rows with the columns of `shape`, in comparable form."""
        return rows_of(self.table(definition), shape)


def rows_of(frame: DataFrame, shape: Sequence[tuple[str, DataType]]) -> list[tuple[Any, ...]]:
    """Returns a frame's rows with the columns of `shape`, in comparable form."""
    found = frame.select(*[col(name) for name, _ in shape]).collect()
    return [tuple(comparable(v, t) for v, (_, t) in zip(row, shape, strict=True)) for row in found]


def _wire(message: Message) -> Wire:
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    headers = tuple((str(pair[0]), payload(pair[1])) for pair in message.headers() or [])
    return Wire(partition, offset, message.key(), message.value(), message.timestamp()[1], headers)
