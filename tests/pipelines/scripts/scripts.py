"""A script with topics of its own for one test: sends documents, runs it, reads what it sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.metrics import BatchReport
from bridge.pipelines.scripts.run import ScriptSummary, run_script
from bridge.sql import Script, load_script
from tests.reader import messages

_ANY_PARTITION = -1
"""librdkafka chooses the partition, by the key."""


@dataclass
class ScriptRun:
    """`text` has `{prefix}` in the names of topics, and `{kafka}` and `{upsert}` for the options of a table."""

    spark: SparkSession
    broker: Broker
    folder: Path
    prefix: str
    text: str
    reports: list[BatchReport] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    _places: dict[str, dict[int, int]] = field(default_factory=dict)

    def topic(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def script(self) -> Script:
        servers = f"'properties.bootstrap.servers' = '{self.broker.bootstrap}'"
        upsert = f"'connector' = 'upsert-kafka', {servers}, 'key.format' = 'json', 'value.format' = 'json'"
        kafka = (
            f"'connector' = 'kafka', {servers}, 'format' = 'json', 'scan.startup.mode' = 'earliest-offset'"
        )
        text = (
            self.text.replace("{upsert}", upsert).replace("{kafka}", kafka).replace("{prefix}", self.prefix)
        )
        file = self.folder / "script.sql"
        file.write_text(text)
        return load_script(file)

    def create(self, *names: str, partitions: int = 2) -> None:
        for name in names:
            self.broker.create_topic(self.topic(name), partitions=partitions)

    def send(
        self, name: str, documents: Iterable[tuple[dict[str, Any] | None, dict[str, Any] | None]]
    ) -> None:
        """Send (key, value) pairs; None is a record without a key, or a tombstone."""
        self.send_to(name, _ANY_PARTITION, documents)

    def send_to(
        self,
        name: str,
        partition: int,
        documents: Iterable[tuple[dict[str, Any] | None, dict[str, Any] | None]],
    ) -> None:
        """The same into one partition."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "partitioner": "murmur2_random"})
        for key, value in documents:
            producer.produce(self.topic(name), key=_json(key), value=_json(value), partition=partition)
        assert producer.flush(30) == 0

    def run(self, **more: Any) -> ScriptSummary:
        """Run until there is nothing new; `reports` and `printed` are those of this run."""
        self.reports, self.printed = [], []
        return run_script(
            self.spark,
            self.script(),
            listener=self.reports.append,
            out=lambda line, _: self.printed.append(line),
            **more,
        )

    def received(self, name: str) -> list[tuple[Any, Any]]:
        """Keys and values that were sent to a topic since the last call."""
        found = messages(self.broker.bootstrap, self.topic(name), self._places.setdefault(name, {}))
        return [(_parsed(m.key()), _parsed(m.value())) for m in found]


def _json(document: dict[str, Any] | None) -> bytes | None:
    return None if document is None else json.dumps(document).encode()


def _parsed(text: bytes | None) -> Any:
    return None if text is None else json.loads(text)


MakeScript = Callable[[str], ScriptRun]
"""`ScriptRun` with the fixtures of a test: what the fixture `script_of` is."""
