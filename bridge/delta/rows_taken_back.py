"""Finds commits of others that took rows of a table back: a RESTORE, above all.

The rows are then not those that a run's progress describes. So each engine compares the version that the run knows with
the one into which it merges, and the run reads its progress anew where such a commit lies between (docs/adr/054).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bridge.delta import log_description
from bridge.delta.delta_errors import replaced_error, table_errors
from bridge.delta.ingest_progress import newest_first
from bridge.delta.merge_contract import MergeResult
from bridge.delta.newest_snapshot import newest_snapshot
from bridge.delta.table import Table, newest_in_history
from bridge.errors import REBUILD, TableError
from bridge.ingest_progress import IngestProgress
from bridge.spark_versions import or_public

_RESTORE = "RESTORE"
_REPLACES = ("CREATE OR REPLACE TABLE", "REPLACE TABLE", "CLONE")
"""How the operations begin that put another table into the place of one."""
_EVERY_ROW = (None, "", "[]", '["true"]')
"""The predicates of a DELETE of all rows."""


class RowsTakenBack(TableError):
    """Raised if another writer took rows back since the progress was read; nothing of the batch counts as applied."""

    def __init__(self, table: Table, version: int, operation: str) -> None:
        self.version, self.operation = version, operation
        super().__init__(
            f"table {table}: version {version} ({operation}) took rows back or replaced all rows while this run was at "
            "work; start it again: it continues from the table"
        )

    def notice(self, table: Table) -> str:
        """What a run reports that has read its progress anew."""
        if self.operation == _RESTORE:
            return (
                f"table {table}: version {self.version} restored it while this run was at work: the run has gone back "
                "to the offsets of the restored rows, and applies all records from there"
            )
        return overwritten(table, self.version, self.operation)


def overwritten(table: Table, version: int, operation: str) -> str:
    """The warning about a table of which another writer has replaced or deleted all rows."""
    return (
        f"table {table}: version {version} ({operation}) of another writer replaced or deleted all rows. The ingest "
        f"goes on from its offsets, so rows whose keys get no new record stay as that writer left them; {REBUILD}"
    )


def following(table: Table, progress: IngestProgress, version: int | None = None) -> IngestProgress:
    """Return the progress of a commit that merges into `version`, by default the newest one.

    Raises RowsTakenBack if a commit between `progress.after` and that version took rows back, TableError if another
    table is at this place.
    """
    if version is None:
        version = log_description.newest_version(table.spark, table.target)
        if version is None or version != progress.after:
            version = newest_version(table)
    refuse_taken_back(table, progress, version)
    return replace(progress, after=version)


def checked(table: Table, progress: IngestProgress, result: MergeResult) -> MergeResult:
    """Return `result`, a commit of `progress`. Raises RowsTakenBack if others took rows back between `progress.after`
    and this commit: then `read_progress` does not count it."""
    if progress.after is not None and result.version > progress.after:
        refuse_taken_back(table, progress, result.version - 1)
    return result


def refuse_taken_back(table: Table, progress: IngestProgress, version: int) -> None:
    """Raise RowsTakenBack if a commit after `progress.after`, up to `version`, took rows back.

    A commit that only replaces or deletes all rows counts for a table with a key: its rows are those of the topic.
    """
    if progress.after is None or version == progress.after:
        return
    if version < progress.after:
        raise RowsTakenBack(table, version, "older files of its log")
    for commit in newest_first(table):
        if commit["version"] <= progress.after:
            break
        if commit["version"] <= version and _takes_back(commit, appends=progress.key == ()):
            raise RowsTakenBack(table, commit["version"], commit["operation"])


def overwrites(table: Table, after: int) -> list[str]:
    """Warnings about the newest commit after version `after` that replaced or deleted all rows, if there is one."""
    for commit in newest_first(table):
        if commit["version"] <= after or commit["operation"] == _RESTORE:
            break
        if _takes_back(commit, appends=False):
            return [overwritten(table, commit["version"], commit["operation"])]
    return []


def newest_version(table: Table) -> int:
    """The newest version as Delta knows it. Raises TableError if the table is gone, or another one is in its place."""

    def of_snapshot() -> int:
        snapshot = newest_snapshot(table.spark, table.delta())
        if snapshot.metadata().id() != table.id:
            raise replaced_error(table)
        return int(snapshot.version())

    def of_history() -> int:
        return newest_in_history(table.delta())

    with table_errors(table):
        return or_public(of_snapshot, of_history)


def _takes_back(commit: Mapping[str, Any], *, appends: bool) -> bool:
    operation, parameters = str(commit["operation"]), commit["operationParameters"] or {}
    if operation == _RESTORE or operation.startswith(_REPLACES):
        return True
    if appends:
        return False
    is_whole = parameters.get("predicate") in _EVERY_ROW
    return is_whole and (
        operation in ("DELETE", "TRUNCATE")
        or (operation == "WRITE" and parameters.get("mode") == "Overwrite")
    )
