"""A pipeline whose lease file a test reads and writes."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bridge import config
from bridge.definition import Definition
from bridge.lease_owner import LeaseOwner, current_process
from bridge.pipelines.runtime.lease import Lease, LeaseTiming, acquire_lease

EVERY = 0.2
FAST = LeaseTiming(heartbeat_seconds=EVERY, remote_heartbeat_seconds=EVERY, poll_seconds=0.02)
FILE = """\
version: 1
name: orders
topic:
  ddl: |
    CREATE TABLE t (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9',
      'key.format' = 'json', 'value.format' = 'json')
delta: {path: table}
run: {checkpoint: checkpoint}
"""


@dataclass
class Desk:
    """A pipeline, its lease file, and how often its runs beat."""

    spark: SparkSession
    definition: Definition
    file: Path
    timing: LeaseTiming = FAST

    def acquire(self, side: str = "ingest", verb: str | None = None) -> AbstractContextManager[Lease]:
        return acquire_lease(self.spark, self.definition, side, verb=verb, timing=self.timing)

    def other(self, **fields: Any) -> LeaseOwner:
        """Write the lease of another run; by default of one in this very process, which lives."""
        here = current_process("orders", "ingest", "other-run", since="2026-01-01 00:00:00 UTC", every=EVERY)
        owner = replace(here, **fields)
        self.put(owner.to_json())
        return owner

    def put(self, text: str) -> None:
        self.file.parent.mkdir(exist_ok=True)
        scratch = self.file.with_suffix(".new")
        scratch.write_text(text)
        scratch.rename(self.file)
        self.file.with_name(f".{self.file.name}.crc").unlink(missing_ok=True)  # Hadoop's, of what was there

    def owner(self) -> LeaseOwner:
        deadline = time.monotonic() + 20
        while (owner := LeaseOwner.from_json(self.file.read_text())) is None:  # half of a write
            assert time.monotonic() < deadline
        return owner

    def taken(self) -> tuple[float, str | None]:
        """Acquire and release the lease: how long it took, and the warning."""
        began = time.monotonic()
        with self.acquire() as lease:
            assert self.owner().run != "other-run"
            return time.monotonic() - began, lease.warning


def at_work(spark: SparkSession, lake: Path, where: str) -> Desk:
    """A pipeline whose checkpoint is on the local disk or on another file system, and whose runs beat fast."""
    (lake / "p.yaml").write_text(FILE)
    definition = config.load(lake / "p.yaml")
    if where != "local disk":
        spark.conf.set("fs.viewfs.impl.disable.cache", "true")
        spark.conf.set("fs.viewfs.mounttable.default.link./lake", lake.as_uri())
        run = replace(definition.run, checkpoint="viewfs:///lake/checkpoint/")
        definition = replace(definition, run=run)
    return Desk(spark, definition, lake / "checkpoint" / "ingest.lease.json")
