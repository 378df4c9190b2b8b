"""How far a pipeline has got.

An ingest writes a line of JSON into the userMetadata of the very commit that holds the rows. A publish keeps a
log of its own, see `publish_log`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Row

from bridge.delta.delta_errors import table_errors
from bridge.delta.table import Table
from bridge.delta.table_checks import PIPELINE_PROPERTY
from bridge.errors import REBUILD, GapError, TableError
from bridge.offsets import Offsets

__all__ = [
    "IngestProgress",
    "app_id",
    "committed_by",
    "history",
    "last_batch",
    "merged_by",
    "read_progress",
]

_FORMAT = 1
_HISTORY_LIMITS = (1, 20, 400, None)
"""How many commits are asked for at a time: the newest is nearly always the one."""


@dataclass(frozen=True)
class IngestProgress:
    """The state of an ingest after one batch. A table holds at most one commit per (pipeline, batch)."""

    pipeline: str
    run: str
    """Names the process that made the commit, so that two runs can tell each other apart."""
    batch: int
    """Counts up by one per commit, over restarts, and never down: Delta skips a number it has seen."""
    offsets: Offsets
    """The next offset of every partition; the table is the fold of everything before."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Kafka's id of each topic: a recreated topic has another."""
    engine: str = field(default="", compare=False)
    """What wrote the commit, and why that; for people."""
    resync: bool = field(default=False, compare=False)
    """The commit is a resync's: a key that stood twice has a row taken away and one added in it."""
    key: tuple[str, ...] | None = field(default=None, compare=False)
    """The PRIMARY KEY by which the commit's rows were merged, so it holds one change per key; () for appended rows,
    None where an older bridge did not say."""

    def to_json(self, table_id: str) -> str:
        """The text for userMetadata of a commit to the table with that id."""
        return json.dumps(
            {
                "bridge": {
                    "format": _FORMAT,
                    "pipeline": self.pipeline,
                    "run": self.run,
                    "batch": self.batch,
                    "offsets": json.loads(self.offsets.to_json()),
                    "topic_ids": dict(self.topic_ids),
                    "table": table_id,
                    **({"engine": self.engine} if self.engine else {}),
                    **({"resync": True} if self.resync else {}),
                    **({"key": self.key} if self.key is not None else {}),
                }
            }
        )

    @classmethod
    def from_json(cls, text: str | None) -> tuple[IngestProgress, str] | None:
        """(progress, table id) as written by `to_json`; None for any text that is not the bridge's.

        Raises TableError for a text of a newer bridge.
        """
        try:
            found = json.loads(text or "")["bridge"]
            written = found["format"]
        except (ValueError, TypeError, KeyError):
            return None
        if written != _FORMAT:
            raise TableError(
                f"progress is written in format {written}, this bridge reads {_FORMAT}: use the newer bridge"
            )
        offsets = Offsets.from_json(json.dumps(found["offsets"]))
        key = found.get("key")
        progress = cls(
            found["pipeline"],
            found["run"],
            found["batch"],
            offsets,
            found["topic_ids"],
            found.get("engine", ""),
            found.get("resync", False),
            None if key is None else tuple(key),
        )
        return progress, found["table"]


def app_id(pipeline: str) -> str:
    """What Delta knows the commits of a pipeline by."""
    return f"bridge/{pipeline}"


def read_progress(table: Table, pipeline: str) -> tuple[IngestProgress, int] | None:
    """The newest progress of `pipeline` in the table's history and the version that holds it; None before the first,
    and in a table that another pipeline keeps.

    Commits of others (OPTIMIZE, a user's UPDATE) may lie on top. After a RESTORE it is the progress that goes
    with the restored rows, so the ingest takes up there; `batch` still is the highest ever used. Offsets are empty
    when the table was restored to a version before the first batch.

    Raises GapError when progress cannot be known: the log has been cleaned past it, the table was replaced, cloned
    or restored by timestamp.
    """
    if table.properties.get(PIPELINE_PROPERTY, pipeline) != pipeline:
        return None
    newest: IngestProgress | None = None
    restored_to: int | None = None
    oldest = None
    for commit in history(table):
        oldest = commit
        found = IngestProgress.from_json(commit["userMetadata"])
        if found and found[0].pipeline == pipeline:
            progress, table_id = found
            if table_id != table.id:
                raise _gap(table, f"it was replaced by another table after version {commit['version']}")
            newest = newest or progress
            if restored_to is None or commit["version"] <= restored_to:
                return replace(progress, batch=newest.batch), commit["version"]
        elif commit["operation"] == "RESTORE" and (restored_to is None or commit["version"] <= restored_to):
            restored_to = _restored_to(table, commit)
    assert oldest is not None
    if oldest["version"] == 0 and newest is not None:
        return replace(newest, offsets=Offsets(), topic_ids={}), 0
    if PIPELINE_PROPERTY in table.properties or newest is not None:
        if oldest["version"] > 0:
            raise _gap(table, f"its log begins at version {oldest['version']} and holds no progress any more")
        if oldest["operation"] == "CLONE":
            raise _gap(table, "it is a clone, and a clone's log starts without the progress of its source")
    return None


def last_batch(table: Table, pipeline: str) -> int:
    """The highest batch number that Delta knows of `pipeline`, -1 for none: also where the log no longer tells the
    progress that went with it. Reads the newest snapshot's own list."""
    with table_errors(table):
        log = table.delta()._jdt.deltaLog()
    jvm = table.spark._jvm
    assert jvm is not None
    none = jvm.scala.Option.empty()
    known = log.update(False, none, none).transactions().get(app_id(pipeline))
    return int(known.get()) if known.isDefined() else -1


def committed_by(table: Table, pipeline: str, run: str) -> bool:
    """True when the log holds a commit that this run of the pipeline made. Reads as much of the log as it must."""
    for commit in history(table):
        found = IngestProgress.from_json(commit["userMetadata"])
        if found and (found[0].pipeline, found[0].run) == (pipeline, run):
            return True
    return False


def merged_by(text: str | None) -> frozenset[str] | None:
    """The columns of which a commit has one change for each value, and changes none: the key by which an ingest or
    replay of the bridge merged it. By its userMetadata, of whatever format; None where that does not say so, as in a
    resync's, an older bridge's, and those of others."""
    try:
        found = json.loads(text or "")["bridge"]
        return None if found.get("resync") else frozenset(found["key"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def history(table: Table) -> Iterator[Row]:
    """Commits from the newest to the oldest the log keeps, each once."""
    below: int | None = None
    for limit in _HISTORY_LIMITS:
        with table_errors(table):
            commits = (
                table.delta()
                .history(limit)
                .select("version", "operation", "operationParameters", "operationMetrics", "userMetadata")
                .collect()
            )
        for commit in commits:
            if below is None or commit["version"] < below:
                below = commit["version"]
                yield commit
        if limit is None or len(commits) < limit:
            return


def _restored_to(table: Table, commit: Row) -> int:
    version = (commit["operationParameters"] or {}).get("version")
    if version is None:
        raise _gap(
            table, f"version {commit['version']} restored it by timestamp, which progress cannot follow"
        )
    return int(version)


def _gap(table: Table, reason: str) -> GapError:
    return GapError(f"table {table}: how far it follows the topic is not known: {reason}; {REBUILD}")
