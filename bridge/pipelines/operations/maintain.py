"""Care of a table: OPTIMIZE, and VACUUM as far as no publish still needs the files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession

from bridge.console import duration
from bridge.definition import Definition, Maintenance
from bridge.delta import optimize_vacuum
from bridge.delta.delta_errors import error_names
from bridge.delta.feed_consumers import MARGIN_SECONDS, FeedConsumers, Lag, lags
from bridge.delta.file_statistics import repair_statistics
from bridge.delta.table import Table
from bridge.errors import BridgeError, DefinitionError
from bridge.metrics import now_ms
from bridge.pipelines.runtime.preflight import open_whole_table
from bridge.pipelines.runtime.retention_warnings import log_retention_warnings
from bridge.pipelines.runtime.storage_checks import check_storage_locations

__all__ = ["Maintained", "Schedule", "consumer_lines", "maintain", "maintain_table"]


@dataclass(frozen=True)
class Maintained:
    """What was done for a table."""

    table: str
    files_compacted: int | None = None
    """Small files that OPTIMIZE replaced; None when it was not asked for."""
    files_written: int | None = None
    files_deleted: int | None = None
    """By VACUUM; None when it was not asked for."""
    retained_hours: float | None = None
    """What VACUUM kept."""
    held_back: str | None = None
    """Who made it keep more than it was asked to, and why."""
    consumers: tuple[str, ...] = ()
    """The publishes that are registered, a sentence each."""
    forgotten: str | None = None
    warning: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """All fields, JSON-ready."""
        return {**asdict(self), "consumers": list(self.consumers)}


def maintain(spark: SparkSession, definition: Definition, *, forget: str | None = None) -> Maintained:
    """Do once what the section `maintenance` says (all of it, where there is none), whether or not it is due.

    `forget`: a registered publish that will not come back; its needs hold nothing any longer. Safe beside a running
    ingest and publish: a conflict is tried again. Raises DefinitionError for a publish that is not registered, and
    where another place of the pipeline lies in the table's folder (VACUUM would empty it), TableError when VACUUM is
    refused or OPTIMIZE lost against other writers.
    """
    check_storage_locations(spark, definition)
    table = open_whole_table(spark, definition)
    consumers = FeedConsumers(table)
    if forget is not None and not consumers.forget(forget):
        registered = ", ".join(c.pipeline for c in consumers.all()) or "none"
        raise DefinitionError(
            f"--forget-consumer {forget}: no such publish is registered at {table}; there: {registered}"
        )
    done = maintain_table(table, definition.maintenance or Maintenance(), consumers)
    return done if forget is None else Maintained(**{**asdict(done), "forgotten": forget})


def maintain_table(table: Table, settings: Maintenance, consumers: FeedConsumers) -> Maintained:
    """OPTIMIZE and VACUUM as `wanted`. VACUUM keeps at least what every registered publish still needs: the change
    files of versions that it has not published, and the files of a snapshot that it is sending. Wrong statistics are
    taken out before, see `statistics.mended`."""
    statistics = repair_statistics(table)
    optimized = optimize_vacuum.optimize(table) if settings.optimize else None
    consumer_lags = lags(table, consumers.all())
    deleted = retained = held = None
    if settings.vacuum:
        retain_seconds = settings.retain_seconds
        if retain_seconds is None:
            retain_seconds = optimize_vacuum.retention_seconds(table, optimize_vacuum.FILE_RETENTION)
        retained, held = _retention(retain_seconds, consumer_lags, now_ms())
        deleted = optimize_vacuum.vacuum(table, retained)
    return Maintained(
        table=str(table),
        files_compacted=None if optimized is None else optimized.removed,
        files_written=None if optimized is None else optimized.added,
        files_deleted=deleted,
        retained_hours=None if retained is None else round(retained / 3600, 2),
        held_back=held,
        consumers=tuple(consumer_lines(consumer_lags)),
        warning="; ".join(filter(None, (statistics, *log_retention_warnings(table, consumer_lags)))) or None,
    )


def consumer_lines(consumer_lags: Sequence[Lag]) -> list[str]:
    """Each registered publish in words."""
    return [_consumer_line(lag) for lag in consumer_lags]


def _retention(requested: float, consumer_lags: Sequence[Lag], now_ms: int) -> tuple[float, str | None]:
    """(seconds to keep, who asked for more than `asked`).

    A publish at version v needs files that were there, or were written, after v was committed; they may be older than
    the commit they belong to, hence the margin. One that has everything needs what is being written now. One that is
    lost is not helped by anything.
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
        return f"{at}, and the log no longer holds the next one: nothing is kept for it"
    if not lag.versions:
        return f"{at}, up to date"
    return f"{at}, {lag.versions:,} versions and {duration(lag.seconds(now_ms()))} behind"


class Schedule:
    """Care between the batches of an ingest, when it is due by the table's own log."""

    def __init__(self, definition: Definition, table: Table) -> None:
        self._settings, self._table = definition.maintenance, table
        self._due_at = float("inf")
        self.done = 0
        if self._settings is not None:
            self._due_at = time.monotonic() + self._seconds_until_due(self._settings)

    def due(self) -> bool:
        """True when the last time is `maintenance.every` ago. Reads a clock, nothing else."""
        return time.monotonic() >= self._due_at

    def run(self) -> str | None:
        """Do it now; what went wrong, or should be known, as a warning: rows are none the worse for a table whose files
        are many."""
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
