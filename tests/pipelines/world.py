"""A topic, a table and a pipeline file for one test; records as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from bridge import config
from bridge.definition import Definition
from bridge.embedded.broker import Broker
from bridge.metrics import BatchReport
from tests.config.files import pipeline_text
from tests.reader import messages

COLUMNS = "id BIGINT, name STRING, amount DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED"

ONE = Decimal("1.00")
"""The amount of `value`."""
ROWS = {"connector": "kafka", "key.format": None, "scan.startup.mode": "earliest-offset"}
"""Options of a topic whose records are rows to append."""
DEBEZIUM = {**ROWS, "value.format": "debezium-json"}

Record = tuple[str | bytes | None, str | bytes | None]


@dataclass
class World:
    """One pipeline: sends records, and reads the table and the topic."""

    spark: SparkSession
    broker: Broker
    folder: Path
    topic: str
    columns: str = COLUMNS
    options: Mapping[str, str | None] = field(default_factory=dict)
    """Added to those of a plain upsert topic; None removes one."""
    sections: str = ""
    delta: str = "path: table"

    @classmethod
    def make(
        cls, spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str], **more: Any
    ) -> World:
        """A world with a fresh topic of three partitions, compacted (such a topic takes no null keys).

        `folder` is below `lake`: worlds of one test with tables of their own have different ones.
        """
        folder = lake / more.pop("folder", ".")
        folder.mkdir(exist_ok=True)
        topic = unique("topic")
        config = {"cleanup.policy": more.pop("cleanup", "compact")}
        broker.create_topic(topic, partitions=more.pop("partitions", 3), config=config)
        return cls(spark, broker, folder, topic, **more)

    def definition(self, name: str = "orders", run: Mapping[str, object] | None = None) -> Definition:
        """Load the pipeline file this world describes; None in `run` removes a key."""
        topic = {"topic": self.topic, "properties.bootstrap.servers": self.broker.bootstrap}
        run = {"checkpoint": "checkpoint", "trigger": "available-now", **(run or {})}
        file = self.folder / f"{name}.yaml"
        file.write_text(
            pipeline_text(
                self.columns,
                {**topic, **self.options},
                name=name,
                delta=self.delta,
                run=", ".join(f"{key}: {value}" for key, value in run.items() if value is not None),
                sections=self.sections,
            )
        )
        return config.load(file)

    def send(
        self, records: Iterable[Record], *, partition: int | None = None, timestamp: int | None = None
    ) -> None:
        """Produce and wait until every record is acknowledged; `timestamp` in milliseconds."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "partitioner": "murmur2_random"})
        given = {"partition": partition, "timestamp": timestamp}
        where: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        failed: list[object] = []
        for key, value in records:
            producer.produce(
                self.topic,
                key=key,
                value=value,
                on_delivery=lambda error, _: failed.append(error) if error else None,
                **where,
            )
        assert producer.flush(30) == 0 and not failed, failed

    def batches(self, run: Mapping[str, object] | None = None) -> list[BatchReport]:
        """Ingest what the topic has, with these settings of `run`, and return the reports of the batches."""
        from bridge.pipelines.ingest.run import ingest

        reports: list[BatchReport] = []
        ingest(self.spark, self.definition(run=run), listener=reports.append)
        return reports

    def recreate_topic(self) -> None:
        """Delete the topic and create one of the same name, with one partition."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        admin.delete_topics([self.topic])[self.topic].result(30)
        self.broker.create_topic(self.topic, partitions=1)

    def table(self, version: int | None = None) -> DataFrame:
        """The Delta table as Spark reads it."""
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(str(self.folder / "table"))

    def create_table(self, properties: str = "") -> None:
        """Create the table that a publish sends, empty; `properties` are added to a change data feed."""
        self.sql(
            "CREATE TABLE t (id BIGINT, name STRING, amount DECIMAL(10, 2)) USING delta "
            f"TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true'{properties})"
        )

    def sql(self, *statements: str) -> None:
        """Run statements on the table, written as `t`."""
        for statement in statements:
            self.spark.sql(statement.replace(" t ", f" delta.`{self.folder}/table` "))

    def rows(self) -> list[tuple[Any, ...]]:
        """The table's rows, sorted by their text."""
        return sorted((tuple(row) for row in self.table().collect()), key=str)

    def history(self) -> list[dict[str, Any]]:
        """The table's commits, newest first."""
        from delta.tables import DeltaTable

        found = DeltaTable.forPath(self.spark, str(self.folder / "table")).history()
        return [row.asDict() for row in found.orderBy("version", ascending=False).collect()]

    def received(self, topic: str | None = None) -> list[tuple[bytes | None, bytes | None]]:
        """All records of the topic, partition by partition, read by a plain consumer."""
        found = messages(self.broker.bootstrap, topic or self.topic)
        return [(message.key(), message.value()) for message in found]


Make = Callable[..., World]
"""`World.make` with the fixtures of a test: what the fixture `make` is."""


def making(*, with_table: bool = False, **settings: Any) -> Any:
    """A fixture `make` for a module: its worlds have these settings where a test gives no others, and a table."""

    @pytest.fixture
    def made(make: Make) -> Make:
        def world(**more: Any) -> World:
            new: World = make(**{**settings, **more})
            if with_table:
                new.create_table()
            return new

        return world

    return made


def readers(reports: Iterable[BatchReport]) -> list[str]:
    """What has read each batch, without the reason."""
    return [(report.reader or "").partition(" ")[0] for report in reports]


def key(id: int) -> str:
    """The key document of `COLUMNS`."""
    return f'{{"id":{id}}}'


def value(id: int, name: str | None, amount: str = "1.00") -> str:
    """The value document of `COLUMNS`."""
    quoted = "null" if name is None else f'"{name}"'
    return f'{{"id":{id},"name":{quoted},"amount":{amount}}}'


def upsert(id: int, name: str | None, amount: str = "1.00") -> Record:
    """A record that sets a row."""
    return key(id), value(id, name, amount)


def tombstone(id: int) -> Record:
    """A record that deletes a row."""
    return key(id), None
