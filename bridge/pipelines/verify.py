"""Proof: fold(topic) == table, at positions that do not move."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from bridge.columns import KIND, col
from bridge.definition import Definition
from bridge.delta import feed
from bridge.delta.failures import reading
from bridge.delta.publish_log import PublishLog
from bridge.errors import DefinitionError, GapError
from bridge.kafka import admin, source
from bridge.pipelines import fold
from bridge.pipelines.compare import Comparison, compare
from bridge.pipelines.preflight import ingested, published_table, whole_table
from bridge.positions import Offsets
from bridge.rows import RowKind

__all__ = ["Proof", "verify"]


@dataclass(frozen=True)
class Proof:
    """What was compared, where, and what the comparison found."""

    pipeline: str
    direction: str
    """`ingest`: the table follows the topic; `publish`: the topic follows the table."""
    version: int
    offsets: Offsets
    comparison: Comparison

    @property
    def equal(self) -> bool:
        """True when topic and table hold the same rows."""
        return self.comparison.equal


def verify(spark: SparkSession, definition: Definition, *, direction: str | None = None) -> Proof:
    """Compare the fold of the topic with the table, row by row, and say what differs. Reads only.

    ingest: the topic up to the offsets of the newest ingest commit, against that very version of the table.
    publish: the topic up to its present end, against the newest published version; a publish that runs at the
    same time makes the topic newer than that.
    Without `direction`, the one that has progress is taken; DefinitionError when there is none or both.
    Raises GapError when the topic does not start at its beginning any more: its fold is not known then.
    """
    table = whole_table(spark, definition)
    followed = ingested(table, definition)
    published = PublishLog(spark, definition.run.checkpoint, definition.name).last()
    direction = direction or _direction(definition, followed is not None, published is not None)
    state = admin.describe(definition.topic)
    if direction == "ingest":
        if followed is None:
            raise DefinitionError(f"{definition.name!r} has not ingested into {table}: nothing to verify")
        end, version = followed[0].offsets, followed[1]
    else:
        if published is None:
            raise DefinitionError(f"{definition.name!r} has not published {table}: nothing to verify")
        table = published_table(spark, definition)
        end, version = state.end, published.version
    topic = _fold(spark, definition, _beginning(state.earliest, end), end)
    with reading(table, version, version):
        found = compare(topic, feed.snapshot(table, version), key=definition.primary_key, fields=table.fields)
    return Proof(definition.name, direction, version, end, found)


def _direction(definition: Definition, ingested: bool, published: bool) -> str:
    if ingested and published:
        raise DefinitionError(
            f"{definition.name!r} both ingests and publishes: say --direction ingest or --direction publish"
        )
    if not (ingested or published):
        raise DefinitionError(
            f"{definition.name!r} has neither ingested nor published yet: nothing to verify"
        )
    return "ingest" if ingested else "publish"


def _beginning(earliest: Offsets, end: Offsets) -> Offsets:
    """Where every partition of `end` starts. Compaction keeps the start at 0; deletion by age or size moves it."""
    for topic, partition, offset in earliest:
        if offset > 0:
            raise GapError(
                f"{topic}-{partition} starts at offset {offset}: what was before is deleted, so the topic alone no "
                f"longer says what the table should be. A topic that can be verified has cleanup.policy=compact"
            )
    return Offsets({key: 0 for key in end.by_partition})


def _fold(spark: SparkSession, definition: Definition, start: Offsets, end: Offsets) -> DataFrame:
    """One row per key that is there at `end`, from the records alone."""
    records = source.read(spark, definition.topic, start, end)
    changes = fold.folded(fold.decoded(records, definition), definition)
    return changes.where(col(KIND) != RowKind.DELETE.value)
