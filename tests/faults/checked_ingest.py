"""Runs an ingest in this process, with the writer and the checker of the rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bridge.definition import Engine, MergeSettings
from bridge.embedded.broker import Broker
from bridge.metrics import Summary
from bridge.pipelines.ingest.run import ingest
from tests.faults.appended import judge_appends
from tests.faults.checker import Verdict, judge
from tests.faults.reading import AppendObserver, Observer
from tests.faults.writer import Writer
from tests.pipelines.world import World

_VALUE = "id BIGINT, seq BIGINT, writer STRING, seed BIGINT"
_COLUMNS = f"{_VALUE}, PRIMARY KEY (id) NOT ENFORCED"
_ROWS_COLUMNS = f"{_VALUE}, p INT METADATA FROM 'partition' VIRTUAL, o BIGINT METADATA FROM 'offset' VIRTUAL"
_ROWS = {"connector": "kafka", "key.format": None, "scan.startup.mode": "earliest-offset"}


class CheckedIngest:
    """A World whose topic has one writer with a ledger. `appends`: its table has no key."""

    def __init__(
        self,
        spark: SparkSession,
        broker: Broker,
        lake: Path,
        unique: Callable[[str], str],
        *,
        appends: bool = False,
        **more: Any,
    ):
        self._appends = appends
        more |= {"columns": _ROWS_COLUMNS, "options": _ROWS} if appends else {"columns": _COLUMNS}
        self.world = World.make(spark, broker, lake, unique, **more)
        self.ledger = lake / "ledger.jsonl"
        self._writer = Writer(broker.bootstrap, self.world.topic, 7, self.ledger)

    def write(self, bursts: int) -> None:
        """Writes bursts of changes; some are transactions, and some of these are aborted."""
        for _ in range(bursts):
            self._writer.burst()

    def ingest(self, name: str = "orders", max_offsets: int | None = None, engine: str = "auto") -> Summary:
        run = {} if max_offsets is None else {"max-offsets-per-batch": max_offsets}
        definition = replace(self.world.definition(name, run=run), merge=MergeSettings(Engine(engine)))
        return ingest(self.world.spark, definition)

    def check(self) -> Verdict:
        """Checks the topic, the table and its log."""
        path = self.world.folder / "table"
        given = self.world.broker.bootstrap, [self.world.topic], path, self.ledger
        if self._appends:
            return judge_appends(AppendObserver(*given).appends(), drained=False)
        return judge(Observer(*given).look(), drained=False)

    def feed_rows(self) -> int:
        """Returns the number of rows of the change data feed over all versions."""
        reader = self.world.spark.read.format("delta").option("readChangeFeed", "true")
        return reader.option("startingVersion", 0).load(str(self.world.folder / "table")).count()
