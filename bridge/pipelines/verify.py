"""Proof: fold(topic) == table, at positions that do not move."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from bridge.columns import col, retracts
from bridge.definition import Definition
from bridge.delta import feed
from bridge.delta.failures import reading
from bridge.delta.publish_log import PublishLog
from bridge.errors import DefinitionError, GapError
from bridge.kafka import admin, source
from bridge.kafka.epochs import with_leader_epochs
from bridge.pipelines import fold, keep
from bridge.pipelines.compare import Comparison, compare, compare_bags
from bridge.pipelines.preflight import ingested, published_table, whole_table
from bridge.positions import Offsets
from bridge.published import NOTHING

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
    """Compare the fold of the topic with the table, row by row, and say what differs. Reads only. Rows of a table
    without a PRIMARY KEY are counted: each must be on both sides as many times.

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
    state = admin.describe(admin.resolve(definition.topic))
    if direction == "ingest":
        if followed is None:
            raise DefinitionError(f"{definition.name!r} has not ingested into {table}: nothing to verify")
        if definition.topic.startup.mode != "earliest-offset":
            raise DefinitionError(
                f"{definition.name!r} does not start at the earliest offset ('scan.startup.mode' = "
                f"'{definition.topic.startup.mode}'), so the topic alone does not say what {table} should be"
            )
        end, version = followed[0].offsets, followed[1]
    else:
        if published is None or published.version == NOTHING:
            raise DefinitionError(f"{definition.name!r} has not published {table} (whole): nothing to verify")
        table = published_table(spark, definition)
        end, version = state.end, published.version
    topic = _fold(spark, definition, _beginning(state.earliest, end), end)
    with reading(table, version, version):
        rows = feed.snapshot(table, version)
        if definition.topic.appends:
            found = compare_bags(topic, rows, fields=table.fields)
        else:
            found = compare(topic, rows, key=definition.primary_key, fields=table.fields)
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
    records = with_leader_epochs(records, definition.topic, start, end)
    changes = fold.decoded(records, definition)
    if definition.topic.appends:
        return fold.folded(changes, definition)
    if not definition.topic.is_upsert:
        # From its beginning the topic itself tells every value that an update leaves out.
        names = [c.name for c in definition.topic.schema.physical]
        nothing = changes.select(*[col(name) for name in names]).limit(0)
        told = [name for name in names if name not in definition.primary_key]
        changes = keep.filled(changes, nothing, key=definition.primary_key, columns=told)
    changes = fold.folded(changes, definition)
    return changes.where(~retracts())
