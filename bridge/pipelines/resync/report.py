"""The report of a resync, and the rules that both directions share."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.delta.publish_log import PublishLog
from bridge.delta.table_checks import belongs_to, owners
from bridge.errors import DefinitionError, GapError
from bridge.pipelines.runtime.preflight import open_whole_table


@dataclass(frozen=True)
class Resync:
    """What a resync changed, or with `dry_run` would have changed, in rows (ingest) or keys of the topic (publish)."""

    pipeline: str
    direction: str
    """`ingest`: the table was made equal to the topic; `publish`: the topic to the table."""
    dry_run: bool
    version: int | None
    """The table version that equals the topic; None when nothing was written."""
    topic_end: str
    """Offsets up to which the topic was read, as JSON."""
    inserted: int
    updated: int
    deleted: int
    unchanged: int
    kept: int
    """Rows that are not in the topic and stay in the table (`--missing keep`)."""
    bad: int
    """Records that cannot be decoded: left out under `bad-records` (ingest), or replaced by a new record (publish)."""
    warning: str | None = None
    """Warnings, separated by `; `."""


def direction_of(spark: SparkSession, definition: Definition, requested: str | None) -> str:
    """Return `requested`, else the direction that has run: the table belongs to this pipeline, or a publish log exists.

    A table that belongs to another pipeline can only be published. Raises DefinitionError if neither or both have run.
    """
    if requested is not None:
        return requested
    properties = open_whole_table(spark, definition).properties
    try:
        published = PublishLog.of(spark, definition).last() is not None
    except GapError:
        published = True
    has_ingested = belongs_to(properties, definition.name)
    if has_ingested != published:
        return "ingest" if has_ingested else "publish"
    if owners(properties) and not has_ingested:
        return "publish"
    has = "both ingests and publishes" if has_ingested else "has left no trace in its table or checkpoint"
    raise DefinitionError(f"{definition.name!r} {has}: set --direction ingest or --direction publish")


def refuse_appends(definition: Definition) -> None:
    """Raise DefinitionError for a table without a PRIMARY KEY, and one that keeps what it knew before."""
    if definition.delta.append_history is not None:
        raise DefinitionError(
            f"{definition.name!r}: under `delta.history: append` the table has a row for each change, also of records "
            "that its topic no longer has, and a resync changes rows. To repair it, RESTORE the table to a version "
            "that is right: `bridge ingest` continues from there"
        )
    if definition.delta.history is not None and definition.delta.history.system_to is not None:
        raise DefinitionError(
            f"{definition.name!r}: under `delta.history: bitemporal` the table has what it knew at each time, of which "
            "its topic says nothing, and a resync changes rows. To repair it, RESTORE the table to a version that is "
            "right: `bridge ingest` continues from there; or ingest into another table, with another `run.checkpoint`"
        )
    if definition.topic.appends:
        raise DefinitionError(
            f"{definition.name!r} has no PRIMARY KEY: nothing identifies its rows, so it is not known which of them "
            "the other side lacks. To rebuild the table, move it away and ingest again; to send it anew, publish to a "
            "new topic with a new run.checkpoint or run.state"
        )
