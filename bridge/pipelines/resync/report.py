"""What a resync does, whichever side it heals: the words both directions share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.delta.publish_log import PublishLog
from bridge.delta.table_checks import PIPELINE_PROPERTY
from bridge.errors import DefinitionError, GapError
from bridge.pipelines.runtime.preflight import open_whole_table

__all__ = ["Resync", "direction_of", "refuse_appends"]


@dataclass(frozen=True)
class Resync:
    """What a resync changed, or would have with `dry_run`, in rows (ingest) or keys of the topic (publish)."""

    pipeline: str
    direction: str
    """`ingest`: the table was made equal to the topic; `publish`: the topic to the table."""
    dry_run: bool
    version: int | None
    """The table version that holds the topic's rows, or whose rows the topic holds; None when nothing was written."""
    topic_end: str
    """Offsets up to which the topic was read, as JSON."""
    inserted: int
    updated: int
    deleted: int
    unchanged: int
    kept: int
    """Rows that the topic does not hold, left in the table (`--missing keep`)."""
    bad: int
    """Records that cannot be decoded: left out by `bad-records` (ingest), or sent again (publish)."""
    warning: str | None = None
    """What a user should know, `; ` between several."""

    def as_dict(self) -> dict[str, Any]:
        """All fields, JSON-ready."""
        return asdict(self)


def direction_of(spark: SparkSession, definition: Definition, requested: str | None) -> str:
    """`asked`, else the direction that has run: the table is marked as this pipeline's, or there is a publish log.

    A table that another pipeline keeps can only be published. Raises DefinitionError when nothing tells the direction,
    or both have run.
    """
    if requested is not None:
        return requested
    owner = open_whole_table(spark, definition).properties.get(PIPELINE_PROPERTY)
    try:
        published = PublishLog(spark, definition.run.checkpoint, definition.name).last() is not None
    except GapError:
        published = True
    ingests = owner == definition.name
    if ingests != published:
        return "ingest" if ingests else "publish"
    if owner is not None and not ingests:
        return "publish"
    has = "both ingests and publishes" if ingests else "has left no trace in its table or checkpoint"
    raise DefinitionError(f"{definition.name!r} {has}: say --direction ingest or --direction publish")


def refuse_appends(definition: Definition) -> None:
    """Raise DefinitionError for a table without a PRIMARY KEY."""
    if definition.topic.appends:
        raise DefinitionError(
            f"{definition.name!r} has no PRIMARY KEY: its rows cannot be told apart, so it is not known which of them "
            "the other side lacks. To rebuild the table, move it away and ingest again; to send it anew, publish to a "
            "new topic with a new run.checkpoint"
        )
