"""Maintains a table: OPTIMIZE, and VACUUM of files that no registered publish still needs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from bridge.console import duration
from bridge.definition import Definition, Maintenance
from bridge.delta import optimize_vacuum
from bridge.delta.delete_memory import DeleteMemory
from bridge.delta.delta_errors import error_names
from bridge.delta.feed_consumers import MARGIN_SECONDS, FeedConsumers, Lag, lags
from bridge.delta.file_statistics import repair_statistics
from bridge.delta.ingest_progress import read_progress
from bridge.delta.table import Table
from bridge.errors import BridgeError, DefinitionError
from bridge.metrics import now_ms
from bridge.pipelines.runtime.preflight import open_whole_table, refuse_other_semantics
from bridge.pipelines.runtime.retention_warnings import log_retention_warnings
from bridge.pipelines.runtime.storage_checks import check_storage_locations


@dataclass(frozen=True)
class Maintained:
    """What a maintenance of a table did."""

    table: str
    files_compacted: int | None = None
    """Small files that OPTIMIZE replaced; None if it did not run."""
    files_written: int | None = None
    files_deleted: int | None = None
    """Files that VACUUM deleted; None if it did not run."""
    retained_hours: float | None = None
    """The retention that VACUUM used."""
    held_back: str | None = None
    """The publish that needs a longer retention than requested, and why; None if there is none."""
    consumers: tuple[str, ...] = ()
    """A line for each registered publish."""
    forgotten: str | None = None
    warning: str | None = None


def maintain(spark: SparkSession, definition: Definition, *, forget: str | None = None) -> Maintained:
    """Run the section `maintenance` once, whether or not it is due; without the section, OPTIMIZE and VACUUM. Deletions
    that are older than `delta.delete-memory` are forgotten.

    `forget` unregisters a publish that will not run again, so that VACUUM no longer keeps files for it. Safe beside a
    running ingest and publish: a conflict is tried again. Raises DefinitionError for a publish that is not registered,
    and if another storage location of the pipeline is in the table's folder (VACUUM would empty it); TableError if
    VACUUM is refused or OPTIMIZE lost against other writers, and if the changes of the table have another order.
    """
    check_storage_locations(spark, definition)
    table = open_whole_table(spark, definition)
    if definition.delta.sequence_by:
        refuse_other_semantics(table, definition)
    consumers = FeedConsumers(table)
    if forget is not None and not consumers.forget(forget):
        registered = ", ".join(c.pipeline for c in consumers.all()) or "none"
        raise DefinitionError(
            f"--forget-consumer {forget}: no such publish is registered at {table}; registered: {registered}"
        )
    done = replace(
        maintain_table(table, definition.maintenance or Maintenance(), consumers), forgotten=forget
    )
    if not definition.delta.sequence_by:
        return done
    if (found := read_progress(table, definition.name)) is None:
        return done
    memory, reached_ms = DeleteMemory.open(table, definition.primary_key), found[0].newest_ms
    warnings = (done.warning, memory.forget(reached_ms))
    for other in memory.others():
        other.forget(reached_ms)
    return replace(done, warning="; ".join(filter(None, warnings)) or None)


def maintain_table(table: Table, settings: Maintenance, consumers: FeedConsumers) -> Maintained:
    """Run OPTIMIZE and VACUUM by `settings`, after the repair of wrong statistics (`repair_statistics`).

    VACUUM keeps at least the files that a registered publish still needs: change files of versions that it has not
    published, and the files of a snapshot that it is sending.
    """
    statistics = repair_statistics(table)
    optimized = optimize_vacuum.optimize(table) if settings.optimize else None
    consumer_lags = lags(table, consumers.all())
    deleted = retained = held_back = None
    if settings.vacuum:
        retain_seconds = settings.retain_seconds
        if retain_seconds is None:
            retain_seconds = optimize_vacuum.retention_seconds(table, optimize_vacuum.FILE_RETENTION)
        retained, held_back = _retention(retain_seconds, consumer_lags, now_ms())
        deleted = optimize_vacuum.vacuum(table, retained)
    return Maintained(
        table=str(table),
        files_compacted=None if optimized is None else optimized.removed,
        files_written=None if optimized is None else optimized.added,
        files_deleted=deleted,
        retained_hours=None if retained is None else round(retained / 3600, 2),
        held_back=held_back,
        consumers=tuple(consumer_lines(consumer_lags)),
        warning="; ".join(filter(None, (statistics, *log_retention_warnings(table, consumer_lags)))) or None,
    )


def consumer_lines(consumer_lags: Sequence[Lag]) -> list[str]:
    """Describe each registered publish."""
    return [_consumer_line(lag) for lag in consumer_lags]


def _retention(requested: float, consumer_lags: Sequence[Lag], now_ms: int) -> tuple[float, str | None]:
    """Return the seconds to keep, and the publish that needs more than `requested`.

    A publish at version v needs files that existed, or were written, after the commit of v. They may be older than
    their commit, hence the margin. A publish that is up to date needs the files that are being written now. A publish
    that is lost needs nothing: its files are gone already.
    """
    needs = [(lag.seconds(now_ms) + MARGIN_SECONDS, lag) for lag in consumer_lags if not lag.lost]
    longest = max(needs, key=lambda need: need[0], default=None)
    if longest is None or longest[0] <= requested:
        return requested, None
    return longest[0], _consumer_line(longest[1])


def _consumer_line(lag: Lag) -> str:
    consumer = lag.consumer
    at = f"{consumer.pipeline}: at version {consumer.version}"
    if lag.lost:
        return f"{at}, and the log no longer holds the next one: no files are kept for it"
    if not lag.versions:
        return f"{at}, up to date"
    return f"{at}, {lag.versions:,} versions and {duration(lag.seconds(now_ms()))} behind"


class Schedule:
    """Maintains the table between the batches of an ingest, when that is due by the table's own log."""

    def __init__(self, definition: Definition, table: Table) -> None:
        self._settings, self._table = definition.maintenance, table
        self._due_at = float("inf")
        self.done = 0
        if self._settings is not None:
            self._due_at = time.monotonic() + self._seconds_until_due(self._settings)

    @property
    def every_seconds(self) -> float:
        """`maintenance.every`; 0 without maintenance."""
        return 0.0 if self._settings is None else self._settings.every_seconds

    def due(self) -> bool:
        """True if the last maintenance is `maintenance.every` ago. Reads only a clock."""
        return time.monotonic() >= self._due_at

    def run(self) -> str | None:
        """Maintain the table now. A failure becomes a warning: a table with many files is slow, but not wrong."""
        assert self._settings is not None
        self._due_at = time.monotonic() + self._settings.every_seconds
        try:
            warning = maintain_table(self._table, self._settings, FeedConsumers(self._table)).warning
        except BridgeError as failed:
            return f"maintenance: {failed}"
        except Exception as failed:
            return f"maintenance failed: {', '.join(sorted(error_names(failed))) or type(failed).__name__}"
        self.done += 1
        return warning

    def _seconds_until_due(self, wanted: Maintenance) -> float:
        last = optimize_vacuum.maintenance_times(self._table).get("VACUUM" if wanted.vacuum else "OPTIMIZE")
        if last is None:
            return 0.0
        return wanted.every_seconds - (now_ms() - last) / 1000
