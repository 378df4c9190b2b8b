"""The ground that rounds are played on: a broker, two topics, a table between them, a writer, and the two jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import IsolationLevel
from confluent_kafka.admin import AdminClient

from bridge.kafka.broker import Broker
from tests.faults.jobs import Job, Mark
from tests.faults.reading import Observer, Stall, ends, rows_of

__all__ = ["Ground", "ground"]

TOPICS = ("faults-in", "faults-out")
PARTITIONS = 3
_RATE = 60
_FILE = """\
version: 1
name: {name}
topic:
  ddl: |
    CREATE TABLE t (id BIGINT, seq BIGINT, writer STRING, seed BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{bootstrap}',
      'key.format' = 'json', 'value.format' = 'json'{options})
delta: {{path: table}}
run: {{checkpoint: {name}, trigger: 2 s}}
{sections}"""
_EXACTLY_ONCE = """,
      'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'faults', 'sink.parallelism' = '2'"""


class Ground:
    """Everything there is; see `ground`. One thread plays, and tends the jobs while it waits."""

    def __init__(self, folder: Path, seed: int, broker: Broker, spark: Any) -> None:
        self.folder, self.broker, self.spark = folder, broker, spark
        self.table = folder / "table"
        self.stall = Stall()
        for topic in TOPICS:
            broker.create_topic(topic, PARTITIONS, {"cleanup.policy": "compact"})
        self._files()
        self.jobs = {
            verb: Job(verb, folder / f"{verb}.yaml", folder / "jobs", mark)
            for verb, mark in (("ingest", self._ingested), ("publish", self._published))
        }
        ledger = folder / "ledger.jsonl"
        self.observer = Observer(broker.bootstrap, TOPICS, self.table, ledger, rows_of(spark, self.table))
        self._version, self._newest = -1, Mark()
        command = [sys.executable, "-m", "tests.faults.writer", broker.bootstrap, TOPICS[0], str(seed)]
        self._writer = subprocess.Popen([*command, str(ledger), str(_RATE)])

    def _files(self) -> None:
        for verb, topic, options, sections in (
            ("ingest", TOPICS[0], "", ""),
            ("publish", TOPICS[1], _EXACTLY_ONCE, "publish: {start: 'version:0', transaction-rows: 10}\n"),
        ):
            told = dict(bootstrap=self.broker.bootstrap, topic=topic, options=options, sections=sections)
            (self.folder / f"{verb}.yaml").write_text(_FILE.format(name=f"{verb}s", **told))

    def begin(self, seconds: float) -> None:
        """Both jobs run, and have made progress. The publish needs a table to start on.

        A first ingest leaves an archive of Java classes, from which all later JVMs start: a round is mostly that.
        """
        archive = self.folder / "classes.jsa"
        for verb, java in (
            ("ingest", f"-XX:ArchiveClassesAtExit={archive}"),
            ("ingest", f"-XX:SharedArchiveFile={archive}"),
            ("publish", f"-XX:SharedArchiveFile={archive}"),
        ):
            job = self.jobs[verb]
            if job.process is not None:
                ended, job.process = job.process, None
                os.kill(ended.pid, signal.SIGTERM)
                self.until(lambda: not ended.pids(), seconds, "the first ingest ends")  # noqa: B023
            job.java = java
            job.is_hit("first start")
            self.until(lambda job=job: not job.recovering, seconds, f"{verb} makes its first progress")  # type: ignore[misc]

    def until(self, condition: Callable[[], object], seconds: float, what: str) -> None:
        """Wait for it, and tend the jobs that have been started meanwhile. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                said = [
                    f"{j.verb}: {j.process.said[-600:] if j.process else 'down'}" for j in self.jobs.values()
                ]
                raise TimeoutError(f"not within {seconds:.0f} s: {what}; {'; '.join(said)}")
            for job in self.jobs.values():
                if job.process is not None or job.recovering:
                    job.tend()
            time.sleep(0.05)

    def rest(self, seconds: float) -> None:
        """Let time pass."""
        until = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= until, seconds + 60, "time passes")

    def drain(self, seconds: float) -> None:
        """The writer ends, the jobs bring everything over."""
        self._writer.send_signal(signal.SIGTERM)
        assert self._writer.wait(60) == 0, "the writer failed"
        self.until(lambda: self._ingested().caught_up, seconds, "the ingest catches up")
        self.until(lambda: self._published().caught_up, seconds, "the publish catches up")

    def _ingested(self) -> Mark:
        """From the table's log, as it grows."""
        while (file := self.table / "_delta_log" / f"{self._version + 1:020}.json").exists():
            self._version += 1
            for action in map(json.loads, file.read_text().splitlines()):
                text = action.get("commitInfo", {}).get("userMetadata", "")
                if text.startswith('{"bridge"'):
                    self._told = json.loads(text)["bridge"]
                    self._newest = Mark(self._told["run"], self._version)
        if self._writer.poll() is None or self._newest.run is None:
            return self._newest
        reached = {int(p): offset for p, offset in self._told["offsets"][TOPICS[0]].items()}
        return self._newest._replace(
            caught_up=reached == self._ends(TOPICS[0], IsolationLevel.READ_COMMITTED)
        )

    def _published(self) -> Mark:
        """From the publish's own log."""
        files = sorted((self.folder / "publishs" / "publish").glob("*.json"))
        try:
            told = json.loads(files[-1].read_text())["bridge"]
        except (IndexError, ValueError, OSError):
            return Mark()
        self._ingested()
        return Mark(told["run"], told["version"], told["open"] is None and told["version"] >= self._version)

    def _ends(self, topic: str, isolation: IsolationLevel) -> dict[int, int]:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        return ends(admin, topic, range(PARTITIONS), isolation)

    def watch(self, over: threading.Event) -> None:
        """Measure `stall`, until it is over; in a thread of its own."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        while not over.wait(0.2):
            try:
                seen = ends(admin, TOPICS[1], range(PARTITIONS), IsolationLevel.READ_COMMITTED)
                there = ends(admin, TOPICS[1], range(PARTITIONS), IsolationLevel.READ_UNCOMMITTED)
            except Exception:  # the broker is down: whoever waits goes on waiting
                continue
            self.stall.look(time.monotonic(), seen, there)

    def end(self) -> None:
        """Leave no process behind."""
        for job in self.jobs.values():
            job.kill()
        self._writer.kill()
        self._writer.wait()


@contextmanager
def ground(folder: Path, seed: int) -> Iterator[Ground]:
    """Start it, in an empty folder; whatever happens, no process is left."""
    os.environ["BRIDGE_LOG"] = str(folder / "bridge.log")
    from bridge.session import build_session

    with ExitStack() as stack:
        broker = stack.enter_context(Broker(folder / "broker"))
        spark = build_session(
            "faults",
            master="local[1]",
            conf={
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM's tasks
            },
        )
        stack.callback(spark.sparkContext.stop)
        made = Ground(folder, seed, broker, spark)
        stack.callback(made.end)
        over = threading.Event()
        watching = threading.Thread(target=made.watch, args=(over,), daemon=True)
        watching.start()
        stack.callback(over.set)
        yield made
