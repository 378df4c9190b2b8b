"""Writes the log of a table commit by commit, as its writers do, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.ingest_progress import IngestProgress
from bridge.lake.local_store import LocalStore
from bridge.lake.store import Store
from bridge.log_layout import commit_path
from bridge.offsets import Offsets

START_MS = 1_795_800_000_000
"""27 November 2026, 17:20:00 UTC."""


@dataclass
class Log:
    """The log of a table in `store`."""

    store: Store
    version: int = -1
    batches: int = 0

    @classmethod
    def at(cls, folder: Path) -> Log:
        return cls(LocalStore(str(folder)))

    def write(self, *actions: Mapping[str, Any]) -> int:
        """The next version, of these actions."""
        self.version += 1
        text = "".join(json.dumps(action) + "\n" for action in actions)
        assert self.store.put_if_absent(commit_path(self.version), text.encode())
        return self.version

    def commit(self, operation: str, *, files: Sequence[int] = (), **info: Any) -> int:
        """A commit of `operation` that adds files of these sizes; a minute after the one before unless `info` has a
        `timestamp`."""
        about = {"timestamp": START_MS + 60_000 * (self.version + 1), "operation": operation, **info}
        adds = [
            {"add": {"path": f"{n}-{self.version}.parquet", "size": size}} for n, size in enumerate(files)
        ]
        return self.write({"commitInfo": about}, *adds)

    def batch(
        self,
        *offsets: int,
        pipeline: str = "orders",
        topic: str = "orders",
        counts: tuple[int, int, int] = (0, 0, 0),
        newest: int | None = None,
        engine: str = "driver",
        batch: int | None = None,
        starts: bool = False,
        **more: Any,
    ) -> int:
        """A commit of a batch that ends at these offsets of the partitions, in order."""
        ends = Offsets.of((topic, partition, offset) for partition, offset in enumerate(offsets))
        number = self.batches if batch is None else batch
        self.batches = number + 1
        progress = json.loads(
            IngestProgress(pipeline, "a-run", number, ends, engine=engine, starts=starts).to_json("the-table")
        )
        if newest is not None:
            progress["bridge"]["newest"] = newest
        names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
        metrics = {name: str(count) for name, count in zip(names, counts, strict=True)}
        metadata = json.dumps(progress)
        return self.commit("MERGE", operationMetrics=metrics, userMetadata=metadata, **more)
