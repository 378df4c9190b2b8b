"""Runs the demo of scripts: a writer of page views, conf/pageviews.sql, and a reader of the counts that it sends."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from bridge.console import Screen, duration
from bridge.demo.run import prepare_folder
from bridge.embedded.broker import Broker
from bridge.errors import DefinitionError, DifferenceError
from bridge.metrics import BatchReport
from bridge.pipelines.scripts.run import run_script
from bridge.sql import load_script

_SCRIPT = Path("conf/pageviews.sql")
_VIEWS, _RATE = 40_000, 1_000
_REGIONS, _USERS = 12, 2_000
_SHOWN = 5
_INTERVAL_SECONDS = 1.0
_WAIT_SECONDS = 30.0

Counts = dict[str, tuple[int, int]]
"""Views and visitors of each region."""


class Views:
    """Draws page views, and counts them by itself: what the script must come to."""

    def __init__(self, seed: int = 7) -> None:
        self._draw = random.Random(seed)
        self._views: dict[str, int] = defaultdict(int)
        self._users: dict[str, set[int]] = defaultdict(set)

    def next(self) -> bytes:
        """Returns the document of the next view."""
        # Few regions have most of the views.
        region = f"region_{min(int(self._draw.expovariate(0.4)), _REGIONS - 1):02}"
        user = self._draw.randrange(_USERS)
        self._views[region] += 1
        self._users[region].add(user)
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        view = {"user_id": user, "page_id": self._draw.randrange(100), "viewtime": now, "user_region": region}
        return json.dumps(view).encode()

    @property
    def counts(self) -> Counts:
        return {region: (views, len(self._users[region])) for region, views in self._views.items()}


def run(spark: SparkSession, folder: Path, screen: Screen, stop: threading.Event) -> None:
    """Runs the demo in `folder`, which is emptied first.

    Raises DifferenceError when the counts that were sent are not those of the writer, and DefinitionError for a folder
    with contents that no demo created.
    """
    started = time.monotonic()
    if not _SCRIPT.is_file():
        raise DefinitionError(f"the demo uses {_SCRIPT}: run it in a checkout of the project")
    prepare_folder(folder)
    with screen.busy("starting Kafka (a real broker, KRaft, one process)"):
        broker = Broker(folder / "broker")
        broker.start()
    try:
        for topic, policy in (("pageviews", "delete"), ("pageviews_per_region", "compact")):
            broker.create_topic(topic, partitions=2, config={"cleanup.policy": policy})
        environ = {
            **os.environ,
            "KAFKA": broker.bootstrap,
            "BRIDGE_STATE": str((folder / "state").absolute()),
        }
        script = load_script(_SCRIPT, environ=environ)
        views, reader = Views(), _Reader(broker.bootstrap)
        written = threading.Event()

        def listen(report: BatchReport) -> None:
            screen.batch(report)
            if report.verb == "publish":
                screen.info(_line(reader.read()))

        # Shared by threads: events and `views`, whose numbers one thread adds up. The producer is the writer's alone,
        # the consumer of `reader` that of the thread that runs the script.
        with (
            closing(reader),
            ThreadPoolExecutor(1) as pool,
            screen.busy("page views → topic → Delta → counts → topic, concurrently"),
        ):
            writer = pool.submit(_write, broker.bootstrap, views, written, stop)
            run_script(spark, script, every_seconds=_INTERVAL_SECONDS, listener=listen, stop=written)
            writer.result()
            summary = run_script(spark, script, listener=listen)
            sent = reader.read()
        if stop.is_set():
            return
        screen.table(
            "the demo",
            {
                "views written": f"{sum(n for n, _ in views.counts.values()):,} of {len(views.counts)} regions",
                "records sent": f"{reader.records:,}: only regions whose counts changed, batch by batch",
                "verified": "equal to the writer's own counts" if sent == views.counts else "DIFFERENT",
                "last run": f"{summary.rounds} round in {duration(summary.seconds)}",
                "tables are in": os.path.relpath(folder / "state"),
                "demo took": duration(time.monotonic() - started),
            },
        )
    finally:
        broker.stop()
    if sent != views.counts:
        raise DifferenceError("the counts that were sent are not those of the views that were written")


def _write(bootstrap: str, views: Views, written: threading.Event, stop: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    try:
        for number in range(_VIEWS):
            if stop.is_set():
                return
            producer.produce("pageviews", views.next())
            if number % (_RATE // 10) == 0:
                producer.poll(0)
                time.sleep(0.1)
    finally:
        producer.flush(_WAIT_SECONDS)
        written.set()


class _Reader:
    """Reads the sink with a plain consumer, and keeps the last value of each region."""

    def __init__(self, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "demo", "enable.partition.eof": True}
        self._consumer = Consumer(settings)
        self._places = {0: 0, 1: 0}
        self._counts: Counts = {}
        self.records = 0

    def read(self) -> Counts:
        """Returns the counts after all records that the topic has."""
        for partition, offset in self._places.items():
            self._consumer.assign([TopicPartition("pageviews_per_region", partition, offset)])
            while (message := self._consumer.poll(_WAIT_SECONDS)) is not None and not message.error():
                self._places[partition] = (message.offset() or 0) + 1
                self.records += 1
                self._counts |= region_counts(message.value())
        return dict(self._counts)

    def close(self) -> None:
        self._consumer.close()


def region_counts(value: bytes | None) -> Counts:
    """Parses a record of the sink. Regions are never deleted here, as views are only added."""
    row = json.loads(value or b"{}")
    return {row["user_region"]: (row["pv"], row["uv"])}


def _line(counts: Mapping[str, tuple[int, int]]) -> str:
    largest = sorted(counts.items(), key=lambda x: -x[1][0])[:_SHOWN]
    shown = "   ".join(f"{region} {views:,} by {users:,}" for region, (views, users) in largest)
    return f"  views by visitors: {shown}"
