"""Truncates among decoded changes: records that delete all rows of the records before them (`delta.truncate`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.columns import KIND, POSITION, col, members
from bridge.decode import SKIP, TRUNCATE, UNAVAILABLE
from bridge.definition import Definition, Truncate
from bridge.delta.sequence_floor import Floor
from bridge.errors import BadRecordError
from bridge.options import FORMATS
from bridge.pipelines.changes.good_changes import is_good

Place = tuple[str, int, int, int]
"""The place of a truncate: topic, partition, offset, and row of its document."""


@dataclass(frozen=True)
class Applied:
    """The truncates of some changes."""

    place: Place
    """The last one."""
    floor: Floor | None = None
    """Under `delta.sequence-by`: the greatest sequence of them."""

    def __str__(self) -> str:
        return "{}-{} at offset {}".format(*self.place)


def _may_be_there(definition: Definition) -> bool:
    return definition.delta.apply_as_truncate is not None or FORMATS[definition.topic.value.name].truncates


def places_aggregate(changes: DataFrame, definition: Definition) -> Column:
    """The places of the first and the last truncate of decoded `changes`, as an array; null where there is none. Looks
    at no row where there can be none."""
    if not _may_be_there(definition):
        return F.lit(None).cast("array<string>")
    parts = [col(POSITION).getField(part) for part in ("topic", "partition", "offset")]
    row = col(POSITION).getField("row") if "row" in members(changes, POSITION) else F.lit(0)
    place = F.when(col(KIND) == TRUNCATE, F.struct(*parts, row.alias("row")))
    return F.when(F.max(place).isNotNull(), F.array(F.min(place), F.max(place)))


def settle(changes: DataFrame, definition: Definition) -> tuple[DataFrame, Applied | None]:
    """Skip the decoded `changes` up to the last truncate among them, as `after_truncates` does; and what it is. Runs a
    job where there may be one. Raises BadRecordError under `truncate: refuse`."""
    if not _may_be_there(definition):
        return changes, None
    row = changes.agg(places_aggregate(changes, definition)).first()
    return after_truncates(changes, definition, None if row is None else row[0])


def after_truncates(
    changes: DataFrame, definition: Definition, places: Sequence[Place] | None
) -> tuple[DataFrame, Applied | None]:
    """Skip the good ones of decoded `changes` up to the last of the truncates at `places`, so that they have no effect;
    and what it is. They are of one partition (see `preflight.refuse_partitions`). Under `delta.sequence-by` those are
    skipped, wherever they are, whose sequence is not greater than that of a truncate; this runs a job. Raises
    BadRecordError under `truncate: refuse`, which names the first one."""
    if not places:
        return changes, None
    if definition.delta.truncate is Truncate.REFUSE:
        topic, partition, offset, _ = places[0]
        raise BadRecordError(
            f"{topic}-{partition} at offset {offset}: the record deletes all rows of the table (a truncate). Nothing "
            "of this batch was written. Set `delta: {truncate: apply}` to delete the rows of the records before it, or "
            "`{truncate: ignore}` to leave them ('bridge.truncate' in a script)"
        )
    last = places[-1]
    place = last[0], last[1], last[2], last[3]
    if sequence := definition.delta.sequence_by:
        floor = Floor.of(changes.where(col(KIND) == TRUNCATE), sequence)
        assert floor is not None
        skipped = F.when(is_good() & ~floor.is_below(), SKIP)
        return changes.withColumn(KIND, skipped.otherwise(col(KIND))), Applied(place, floor)
    at, row_at = (col(POSITION).getField(part) for part in ("offset", "row"))
    earlier = at <= last[2]
    if "row" in members(changes, POSITION):
        earlier = (at < last[2]) | ((at == last[2]) & (row_at <= last[3]))
    columns = {KIND: F.when(is_good() & earlier, SKIP).otherwise(col(KIND))}
    if UNAVAILABLE in changes.columns:
        columns[UNAVAILABLE] = F.when(~earlier, col(UNAVAILABLE))
    return changes.withColumns(columns), Applied(place)
