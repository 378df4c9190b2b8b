"""Finds the progress of an ingest in the table's own commits. A publish has a log of its own, see `publish_log`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Row

from bridge.delta.delta_errors import table_errors
from bridge.delta.log_description import newest_commits
from bridge.delta.newest_snapshot import newest_snapshot
from bridge.delta.table import Table
from bridge.delta.table_checks import PIPELINE_PROPERTY, belongs_to
from bridge.errors import REBUILD, GapError
from bridge.ingest_progress import IngestProgress, app_id
from bridge.offsets import Offsets
from bridge.spark_versions import or_public

_HISTORY_LIMITS = (1, 20, 400, None)
"""How many commits are read at a time: the newest is nearly always enough."""


def read_progress(table: Table, pipeline: str) -> tuple[IngestProgress, int] | None:
    """Read the newest progress of `pipeline` in the table's history, and the version that contains it.

    None before the first batch, and for a table that belongs to another pipeline. Commits of others (OPTIMIZE, a user's
    UPDATE) may be newer. After a RESTORE it is the progress of the restored rows, so that the ingest continues there;
    `batch` is still the highest ever used, and `after` the newest version. Offsets are empty if the table was restored
    to a version before the first batch, or those at which a first run started that did not begin at the earliest ones.
    A commit whose batch began before a RESTORE and that is after it does not count (see `IngestProgress.after`).

    Raises GapError when progress is not known: the log has been cleaned past it, the table was replaced, cloned or
    restored by timestamp, or rows were appended by a commit that does not count.
    """
    if table.properties.get(PIPELINE_PROPERTY, pipeline) != pipeline:
        return None
    newest: IngestProgress | None = None
    """Of all commits, those that a RESTORE took back included."""
    first: IngestProgress | None = None
    restored_to: int | None = None
    found: tuple[IngestProgress, int] | None = None
    """The progress, unless a RESTORE lies between its version and its `after`."""
    last, oldest = None, None
    for commit in newest_first(table):
        version, oldest = commit["version"], commit
        last = version if last is None else last
        if found is not None and version <= (found[0].after or 0):
            break
        parsed = IngestProgress.from_json(commit["userMetadata"])
        is_present = restored_to is None or version <= restored_to
        if parsed and parsed[0].pipeline == pipeline:
            first, table_id = parsed
            if table_id != table.id:
                raise _gap(table, f"it was replaced by another table after version {version}")
            newest = newest or first
            if found is not None:
                break
            if is_present:
                found = first, version
                if first.after is None or first.after >= version - 1:
                    break
        elif commit["operation"] == "RESTORE" and is_present:
            if found is not None and found[0].key == ():
                raise _gap(
                    table,
                    f"version {found[1]} appended rows that were read before version {version} restored it; RESTORE "
                    f"it to version {found[1] - 1} and start again",
                )
            restored_to, found = _restored_to(table, commit), None
    assert oldest is not None
    if found is not None and newest is not None:
        return replace(found[0], batch=newest.batch, after=last, starts=False), found[1]
    if oldest["version"] == 0 and newest is not None and first is not None:
        begin = first if first.starts else replace(first, offsets=Offsets(), topic_ids={}, reaches=None)
        return replace(begin, batch=newest.batch, run=newest.run, key=None, after=last, starts=False), 0
    if _has_ingested(table, pipeline) or newest is not None:
        if oldest["version"] > 0:
            raise _gap(table, f"its log begins at version {oldest['version']} and has no progress any more")
        if oldest["operation"] == "CLONE":
            raise _gap(table, "it is a clone, and a clone's log starts without the progress of its source")
    return None


def _has_ingested(table: Table, pipeline: str) -> bool:
    """Whether the pipeline, of which the log has no progress, may have committed a batch."""
    if PIPELINE_PROPERTY in table.properties:
        return True
    # Another pipeline may have joined a table with a long history, whose log does not begin at version 0 any more.
    return belongs_to(table.properties, pipeline) and last_batch(table, pipeline) >= 0


def last_batch(table: Table, pipeline: str) -> int:
    """Return the highest batch number of `pipeline` in the newest snapshot of the table; -1 for none.

    Delta keeps it even where the log no longer has the progress of that batch. Where Delta is closed to Python, it is
    the highest number in the history, which is as long as the log.
    """
    with table_errors(table):
        return or_public(lambda: _last_transaction(table, pipeline), lambda: _last_in_log(table, pipeline))


def _last_transaction(table: Table, pipeline: str) -> int:
    batch = newest_snapshot(table.spark, table.delta()).transactions().get(app_id(pipeline))
    return int(batch.get()) if batch.isDefined() else -1


def _last_in_log(table: Table, pipeline: str) -> int:
    found = (IngestProgress.from_json(commit["userMetadata"]) for commit in history(table))
    return max((parsed[0].batch for parsed in found if parsed and parsed[0].pipeline == pipeline), default=-1)


def committed_by(table: Table, pipeline: str, run: str) -> bool:
    """Whether the table has a commit of this run of the pipeline, which no RESTORE took back.

    Reads only as much of the log as necessary. Raises GapError for a RESTORE by timestamp."""
    restored_to: int | None = None
    for commit in newest_first(table):
        if restored_to is not None and commit["version"] > restored_to:
            continue
        parsed = IngestProgress.from_json(commit["userMetadata"])
        if parsed and (parsed[0].pipeline, parsed[0].run) == (pipeline, run):
            return True
        if commit["operation"] == "RESTORE":
            restored_to = _restored_to(table, commit)
    return False


def history(table: Table) -> Iterator[Row]:
    """Yield the commits in the log, from the newest to the oldest, each once."""
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


def newest_first(table: Table) -> Iterator[Mapping[str, Any]]:
    """Yield the commits as `history` does; the newest without asking Delta, where that is possible: with numbers among
    their `operationParameters` and `operationMetrics` where their writer wrote some."""
    below = None
    for commit in newest_commits(table.spark, table.target):
        below = commit["version"]
        yield commit
    if below != 0:
        yield from (c.asDict() for c in history(table) if below is None or c["version"] < below)


def _restored_to(table: Table, commit: Mapping[str, Any]) -> int:
    version = (commit["operationParameters"] or {}).get("version")
    if version is None:
        raise _gap(
            table, f"version {commit['version']} restored it by timestamp, which progress cannot follow"
        )
    return int(version)


def _gap(table: Table, reason: str) -> GapError:
    return GapError(f"table {table}: its progress in the topic is not known: {reason}; {REBUILD}")
