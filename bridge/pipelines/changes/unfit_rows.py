"""Rows that the table does not accept are bad records, like those that cannot be decoded.

Each change is judged alone, as it is decoded, and one with unavailable values once these are filled. So the error names
the record, `bad-records` decides about it, and verify, resync and replay agree with the ingest (docs/adr/055).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import BAD, KIND, col
from bridge.decode import DROPPED, NO_ROW, SKIP, UNAVAILABLE
from bridge.definition import Definition, Truncate
from bridge.delta.table import Table
from bridge.errors import TableError
from bridge.pipelines.changes.good_changes import is_good, sets_row
from bridge.schema import RowConstraint


def with_constraints(definition: Definition, table: Table) -> Definition:
    """Return the definition for decoding records into `table`.

    A constraint that names columns of other pipelines (`delta.merge-columns`), of a history or of `delta.soft-delete`
    is left to Delta, as a change has only its own columns. Raises TableError for one that may read a column of
    `delta.aggregate`, whose value is not known before the change is merged.
    """
    rules, schema = definition.delta.aggregate, definition.topic.schema
    given = {column.name for column in schema.physical if not column.type.nullable}
    for c in table.constraints if rules else ():
        names = {c.not_null, c.partition} - {None, *given}
        if names & rules.keys() or (c.not_null, c.partition, c.padded) == (None, None, None):
            raise TableError(
                f"table {table}: it asks of its rows what a change does not tell before it is combined with its row "
                f"(delta.aggregate): {c.broken}; drop this constraint, or remove delta.aggregate"
            )
    fitting = tuple(c for c in table.constraints if _resolves(table, c))
    return definition if fitting == definition.constraints else replace(definition, constraints=fitting)


def mark_unfit(changes: DataFrame, definition: Definition) -> DataFrame:
    """Mark decoded `changes` whose row the table does not accept as bad; `__bad` names the first constraint. Before
    that, those that `delta.sequence-by` cannot order."""
    target = definition.delta
    rowless = (SKIP, DROPPED) if target.truncate is Truncate.APPLY else NO_ROW
    changes = _mark_unordered(changes, target.sequence_by, rowless)
    if not definition.constraints:
        return changes
    unfit = [
        F.when(~F.coalesce(F.expr(c.condition), F.lit(False)), F.lit(c.broken))
        for c in definition.constraints
    ]
    judged = is_judged(changes, retractions=definition.topic.appends)
    reason = F.coalesce(col(BAD), F.when(judged, F.coalesce(*unfit)))
    return changes.withColumns({KIND: F.when(reason.isNull(), col(KIND)), BAD: reason})


def _mark_unordered(changes: DataFrame, sequence: Sequence[str], rowless: Sequence[str]) -> DataFrame:
    """Mark good changes without a value of the columns `sequence`, as AUTO CDC accepts none without, and those that
    leave out values of the row: an earlier change that sets them may come later. Those of the kinds `rowless` need no
    place."""
    if not sequence:
        return changes
    unordered = [
        F.when(
            col(name).isNull(),
            F.lit(f"column {name!r} has no value, and delta.sequence-by orders changes by it"),
        )
        for name in sequence
    ]
    columns = {}
    if UNAVAILABLE in changes.columns:
        left_out = F.concat(
            F.lit("value: it leaves out "),
            F.array_join(UNAVAILABLE, ", "),
            F.lit(
                ", which may be in an earlier change that comes later (delta.sequence-by); let it have all columns"
            ),
        )
        unordered.append(F.when(F.size(UNAVAILABLE) > 0, left_out))
        columns[UNAVAILABLE] = F.lit(None).cast("array<string>")
    reason = F.coalesce(col(BAD), F.when(~col(KIND).isin(*rowless), F.coalesce(*unordered)))
    return changes.withColumns({KIND: F.when(reason.isNull(), col(KIND)), BAD: reason, **columns})


def is_judged(changes: DataFrame, *, retractions: bool = False) -> Column:
    """True for good changes that have a row whose values are all known; `retractions`: those are rows, too, as in a
    table without a key."""
    is_complete = is_good() if retractions else sets_row()
    if UNAVAILABLE in changes.columns:
        is_complete = is_complete & ~F.coalesce(F.size(UNAVAILABLE) > 0, F.lit(False))
    return is_complete


def _resolves(table: Table, constraint: RowConstraint) -> bool:
    try:
        table.spark.createDataFrame([], T.StructType(list(table.change_fields))).select(
            F.expr(constraint.condition)
        )
    except PySparkException:
        return False
    return True
