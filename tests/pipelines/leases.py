"""A pipeline whose lease file is in the hands of a test."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge import config
from bridge.definition import Definition
from bridge.pipelines.runtime import lease
from bridge.pipelines.runtime.lease import acquire_lease
from bridge.pipelines.runtime.lease_owner import LeaseOwner, current_process

EVERY = 0.2
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
    """A pipeline, and its lease file in our hands."""

    spark: SparkSession
    definition: Definition
    file: Path

    def other(self, **told: Any) -> LeaseOwner:
        """Write a lease of somebody else; by default of this very process, which lives."""
        mine = current_process("orders", "ingest", "other-run", since="2026-01-01 00:00:00 UTC", every=EVERY)
        found = replace(mine, **told)
        self.put(found.to_json())
        return found

    def put(self, text: str) -> None:
        self.file.parent.mkdir(exist_ok=True)
        scratch = self.file.with_suffix(".new")
        scratch.write_text(text)
        scratch.rename(self.file)
        self.file.with_name(f".{self.file.name}.crc").unlink(missing_ok=True)  # Hadoop's, of what was there

    def there(self) -> LeaseOwner:
        deadline = time.monotonic() + 20
        while (found := LeaseOwner.from_json(self.file.read_text())) is None:  # half of a write
            assert time.monotonic() < deadline
        return found

    def taken(self) -> tuple[float, str | None]:
        """Take and give back: how long it took, and the warning."""
        began = time.monotonic()
        with acquire_lease(self.spark, self.definition, "ingest") as ours:
            assert self.there().run != "other-run"
            return time.monotonic() - began, ours.warning


def at_work(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> Desk:
    """A pipeline whose checkpoint is on the local disk or on another file system, and whose runs beat fast."""
    monkeypatch.setattr(lease, "_EVERY_SECONDS", EVERY)
    monkeypatch.setattr(lease, "_EVERY_SECONDS_REMOTE", EVERY)
    monkeypatch.setattr(lease, "_LOOK_SECONDS", 0.02)
    (lake / "p.yaml").write_text(FILE)
    definition = config.load(lake / "p.yaml")
    if where != "local disk":
        spark.conf.set("fs.viewfs.impl.disable.cache", "true")
        spark.conf.set("fs.viewfs.mounttable.default.link./lake", lake.as_uri())
        run = replace(definition.run, checkpoint="viewfs:///lake/checkpoint/")
        definition = replace(definition, run=run)
    return Desk(spark, definition, lake / "checkpoint" / "ingest.lease.json")
