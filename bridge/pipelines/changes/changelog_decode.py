"""records -> changes: decodes, and compacts first where the connector and `bad-records` allow it.

changes -fill-> changes: unavailable values are replaced by those that the row has.

Databases leave large values out of an update that did not touch them (PostgreSQL's TOAST; Debezium writes its
unavailable-value placeholder). The row keeps the value of its previous change, else the one in the table (ADR 028,
rule 5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from bridge import backend, compact
from bridge.column_rules import folded_over
from bridge.columns import BAD, KIND, POSITION, col, members, retracts, same_key
from bridge.decode import (
    BAD_KEY_ID,
    SKIP,
    UNAVAILABLE,
    decode_events,
    decode_keys,
    decode_values,
)
from bridge.decode.computed_columns import with_filled
from bridge.definition import Definition
from bridge.delta.merge_semantics import KEPT
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.pipelines.changes import conditions, row_gate, unfit_rows
from bridge.pipelines.changes.good_changes import is_good, sets_row
from bridge.rows import RowKind
from bridge.schema import ColumnRule

_IN_TABLE = "__in_table"
_HAS_ROW = "__has_row"
_WAS_GOOD, _REFUSED, _BEFORE, _IS_TAKEN = "__was_good", "__refused", "__refused_before", "__is_taken"
_AT, _WHY, _SINCE = "__at", "__why", "__since"
_PARTITION = ("topic", "partition")
_FILLED, _ROW, _OTHER = "__filled", "__row", "__other_"
_RETRACTED = "__retracted"
_COUNT_EACH_ROW = {
    "sequence-by",
    "history",
    "first-row",
    "ignore-null-updates",
    "update-columns",
    "apply-as-truncate",
    "aggregate",
}
"""The keys of `change_semantics` by which an earlier row of a document would count, too."""


def fill_unavailable_values(
    changes: DataFrame,
    table: DataFrame,
    *,
    key: Sequence[str],
    columns: Sequence[str],
    or_null: bool = False,
    rules: Mapping[str, ColumnRule] | None = None,
) -> DataFrame:
    """Fill the unavailable values of `changes` (see decode.decode_events) in the physical `columns` outside the key.

    A value is taken from the last earlier change of the same key in this frame that sets a row and has the column,
    else from the key's row in `table`. Where the key has no row, there or after an earlier -D in this frame, the
    change becomes bad, and `__bad` gives the reason: the same, whatever the bounds of batches are.
    With `or_null` the value is null there, and after an earlier retraction of the key in this frame.
    Values of the columns of `rules`, which needs `or_null`, are what the changes of the key up to this one give since
    the last retraction; KEPT names those that are still to be combined with the row of `table`.
    `__unavailable` is null in the result. KEPT names the columns whose values are those of `table`, so that a MERGE
    does not undo what another writer has changed since then.
    """
    rules = rules or {}
    from_frame = _fill_from_earlier_changes(changes, key, columns, or_null, rules)
    table_rows = table.select(*[col(name) for name in (*key, *columns)], F.lit(True).alias(_IN_TABLE))
    asks_table = F.size(col(KEPT, "c")) > 0 if or_null else col(_HAS_ROW, "c").isNull()
    joined = from_frame.alias("c").join(table_rows.alias("t"), asks_table & same_key(key, "c", "t"), "left")
    unresolved = F.lit(False)
    if not or_null:
        unresolved = ~F.coalesce(col(_HAS_ROW, "c"), col(_IN_TABLE, "t"), F.lit(False))
    reason = _no_row(col(UNAVAILABLE, "c"))
    good = col(BAD, "c").isNull() & ~unresolved
    values = {
        name: F.when(_contains(KEPT, name, "c"), col(name, "t")).otherwise(col(name, "c"))
        for name in columns
        if name not in rules
    } | {
        KIND: F.when(good, col(KIND, "c")),
        BAD: F.coalesce(col(BAD, "c"), F.when(unresolved, reason)),
        UNAVAILABLE: F.lit(None).cast("array<string>"),
        # A row that is marked as deleted is none of `table`, and keeps no value.
        KEPT: F.when(col(_IN_TABLE, "t"), col(KEPT, "c")),
    }
    names = [*changes.columns, KEPT]
    return joined.select(*[values.get(name, col(name, "c")).alias(name) for name in names])


def _fill_from_earlier_changes(
    changes: DataFrame,
    key: Sequence[str],
    columns: Sequence[str],
    retractions: bool,
    rules: Mapping[str, ColumnRule],
) -> DataFrame:
    """Fill values from earlier changes in the frame, with `retractions` null from these.

    KEPT names the columns that are still open. `__has_row` says whether the key has a row before the change, null where
    the table decides it: one that leaves out values is no row yet if it is the first one. True for other changes.
    """
    earlier, ordered = _earlier_changes(changes, key), _in_order(changes, key)
    if rules:
        ordered = _combined(ordered, key, rules)
    sets = is_good() if retractions else sets_row()
    kept = [name for name in columns if name not in rules]
    last_values = {
        name: F.last(
            F.when(sets & ~_contains(UNAVAILABLE, name), F.struct(col(name).alias("value"))),
            ignorenulls=True,
        ).over(earlier)
        for name in kept
    }
    aliases = {name: f"__earlier_{n}" for n, name in enumerate(kept)}
    has_row = F.last(_makes_row(UNAVAILABLE), ignorenulls=True).over(earlier)
    with_earlier = ordered.select(
        "*",
        F.when(_names_any(UNAVAILABLE), has_row).otherwise(True).alias(_HAS_ROW),
        *[last_values[name].alias(aliases[name]) for name in kept],
    )
    values = {
        name: F.when(_contains(UNAVAILABLE, name), col(aliases[name]).getField("value")).otherwise(col(name))
        for name in kept
    }
    still_open = {name: _contains(UNAVAILABLE, name) & col(aliases[name]).isNull() for name in kept}
    still_open |= {name: _contains(UNAVAILABLE, name) & (col(_RETRACTED) == 0) for name in rules}
    open_columns = F.filter(
        F.array(*[F.when(is_open, F.lit(name)) for name, is_open in still_open.items()]),
        lambda name: name.isNotNull(),
    )
    return with_earlier.select(
        *[values.get(name, col(name)).alias(name) for name in changes.columns],
        F.when(F.size(open_columns) > 0, open_columns).alias(KEPT),
        col(_HAS_ROW),
    )


def _combined(ordered: DataFrame, key: Sequence[str], rules: Mapping[str, ColumnRule]) -> DataFrame:
    """Combine the values of `rules` in each change with those of the changes of its key since the last retraction. Adds
    _RETRACTED, how many retractions come before a change."""
    retracted = F.count_if(is_good() & retracts()).over(_earlier_changes(ordered, key))
    numbered = ordered.withColumn(_RETRACTED, retracted)
    since = _earlier_changes(numbered, (*key, _RETRACTED))
    so_far = since.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    fields = {f.name: f for f in ordered.schema.fields}
    values = {}
    for name, rule in rules.items():
        folded = folded_over(rule, F.when(sets_row(), col(name)), fields[name], so_far)
        values[name] = F.when(sets_row(), folded).otherwise(col(name))
    return numbered.withColumns(values)


def _mark_deleted_before(changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """Mark changes with filled values as bad that come after a deletion in the frame, as one is found by filled values,
    too. The first one of a key is right, and those after it are bad until a change has all values."""
    has_row = F.last(_makes_row(_FILLED), ignorenulls=True).over(_earlier_changes(changes, key))
    with_row = _in_order(changes, key).withColumn(_HAS_ROW, has_row)
    bad = F.coalesce(col(BAD), F.when(_names_any(_FILLED) & ~col(_HAS_ROW), _no_row(col(_FILLED))))
    return with_row.withColumns({KIND: F.when(bad.isNull(), col(KIND)), BAD: bad}).drop(_HAS_ROW, _SINCE)


def _in_order(changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """Add _SINCE, by which `_earlier_changes` orders changes of several partitions."""
    of_partition = Window.partitionBy(*map(col, key), *(col(POSITION).getField(p) for p in _PARTITION))
    later = of_partition.orderBy(col(POSITION).getField("offset")).rangeBetween(
        Window.currentRow, Window.unboundedFollowing
    )
    # By the key alone, so that one shuffle is enough for both orders.
    since = F.min(col(POSITION).getField("timestamp")).over(later)
    return changes.repartition(*map(col, key)).withColumn(_SINCE, since)


def _earlier_changes(changes: DataFrame, key: Sequence[str]) -> WindowSpec:
    """The changes of the same key before a change, in the order whose last one is that of `compact.latest_by_offset`:
    by offset in a partition; between partitions by the least timestamp from there on. For frames of `_in_order`."""
    parts = [part for part in (*_PARTITION, "offset", "row") if part in members(changes, POSITION)]
    ordered = Window.partitionBy(*map(col, key)).orderBy(
        col(_SINCE), *(col(POSITION).getField(part) for part in parts)
    )
    return ordered.rowsBetween(Window.unboundedPreceding, Window.currentRow - 1)


def _makes_row(left_out: str) -> Column:
    """True for a change after which its key has a row, false for -D, null for one that tells neither, as it may be bad:
    the column `left_out` names columns whose values it does not have."""
    is_whole = sets_row() & ~_names_any(left_out)
    return F.when(col(KIND) == RowKind.DELETE.value, False).when(is_whole, True)


def _names_any(names: str) -> Column:
    return F.coalesce(F.size(names) > 0, F.lit(False))


def _no_row(left_out: Column) -> Column:
    return F.concat(
        F.lit("value: it leaves out "),
        F.array_join(left_out, ", "),
        F.lit(", and there is no row of this key whose value could be kept"),
    )


def _contains(names: str, name: str, frame: str | None = None) -> Column:
    return F.coalesce(F.array_contains(col(names, frame), name), F.lit(False))


Persist = Callable[[DataFrame], DataFrame]
"""Persists a frame for as long as it is used, and returns it."""


def persist_within(stack: ExitStack) -> Persist:
    """Return a function that persists frames until `stack` closes."""

    def persist(frame: DataFrame) -> DataFrame:
        stack.callback(backend.unpersist, frame)
        return backend.persist(frame)

    return persist


def decode(records: DataFrame, definition: Definition, *, fast: bool = False) -> DataFrame:
    """Decode records into changes with `__bad`; drops no bad record. Rows that the table does not accept are bad, and
    rows that break the gate are diverted.

    Returns one change per key, the last one, where `definition.compacts_first`; otherwise all changes. With `fast`,
    `__bad` may be NEEDS_FULL_DECODE: the frame is then incomplete, and must be decoded again without `fast`.
    """
    delta = definition.delta
    sequence = delta.sequence_by
    truncates, removes = conditions.truncates(definition), conditions.removes(definition)
    if not definition.topic.is_upsert:
        unpaired = bool(sequence or definition.kept_columns or delta.first_row or delta.ignore_delete)
        changes = decode_events(
            records,
            definition.topic,
            sequence=sequence,
            unpaired=unpaired,
            removes=removes,
            truncates=truncates,
            fast=fast,
        )
    else:
        keyed = decode_keys(records, definition.topic, fast=fast)
        if definition.compacts_first:
            keyed = compact.latest_by_offset(keyed, [*definition.primary_key, BAD_KEY_ID])
        several = _several_rows(definition)
        changes = decode_values(
            keyed, definition.topic, sequence=sequence, several=several, removes=removes, fast=fast
        )
    return turned_and_judged(changes, definition)


def turned_and_judged(changes: DataFrame, definition: Definition) -> DataFrame:
    """Apply to decoded changes what `delta` says of single ones (conditions, columns that are kept), and mark those as
    bad whose row the table does not accept, or the gate."""
    for turned in (
        _without_unavailable,
        conditions.with_truncates,
        conditions.with_deletions,
        _without_deletions,
        _with_kept_values,
    ):
        changes = turned(changes, definition)
    return _judged(changes, definition)


def _several_rows(definition: Definition) -> str | None:
    """Why a document of an upsert topic may not have several rows; None where its last one counts alone."""
    counts_each = definition.delta.change_semantics.keys() & _COUNT_EACH_ROW
    if not counts_each:
        return None
    return (
        f"value: the document has several rows, and delta.{min(counts_each)} counts each of them; send a record for "
        "each"
    )


def without_halves(changes: DataFrame, definition: Definition) -> DataFrame:
    """Skip the rows before and after of updates among decoded `changes` of which the other one is bad: a row before
    alone would delete the row, and a bad record has no effect. Joins the bad changes to all of them, where there may be
    such; else returns `changes`."""
    if not definition.leaves_out_bad or "row" not in members(changes, POSITION):
        return changes
    at = {part: col(POSITION).getField(part) for part in ("topic", "partition", "offset", "row")}
    bad = changes.where(col(BAD).isNotNull()).select(*(of.alias(_OTHER + part) for part, of in at.items()))
    to_other = F.when(col(KIND) == RowKind.UPDATE_BEFORE.value, 1)
    to_other = to_other.when(col(KIND) == RowKind.UPDATE_AFTER.value, -1)
    other = {**at, "row": at["row"] + to_other}
    is_other = reduce(and_, (place == col(_OTHER + part) for part, place in other.items()))
    joined = changes.join(F.broadcast(bad), is_other, "left")
    kinds = {KIND: F.when(col(f"{_OTHER}row").isNotNull(), SKIP).otherwise(col(KIND))}
    return joined.select(*(kinds.get(name, col(name)).alias(name) for name in changes.columns))


def decode_with_fallback(records: DataFrame, definition: Definition, persist: Persist) -> DataFrame:
    """Decode records by the fast path, or by the full decode if the fast path leaves a record open."""
    changes = persist(decode(records, definition, fast=True))
    if any_row(changes, col(BAD) == NEEDS_FULL_DECODE):
        return persist(decode(records, definition))
    return changes


def fill_unavailable(
    changes: DataFrame, table: DataFrame, definition: Definition, persist: Persist
) -> DataFrame:
    """Fill the unavailable values of decoded `changes`, then judge the rows of the changes that had some: computed
    columns, `delta.apply-as-delete`, and what the table asks of a row.

    No change gets a value of one that is found bad by that, so that the rows are the same, whatever the bounds of
    batches are: where such a change comes before others of its key that leave out values, these are filled again, round
    by round, as each may be found bad in its turn.
    """
    while True:
        filled = persist(_filled(changes, table, definition))
        if definition.leaves_out_bad and any_row(filled, col(_REFUSED)):
            first = persist(_first_refused(filled, definition.primary_key))
            if any_row(first, col(_IS_TAKEN)):
                changes = persist(without_halves(_with_refused(changes, first), definition))
                continue
        return filled.drop(_FILLED, _REFUSED)


def _filled(changes: DataFrame, table: DataFrame, definition: Definition) -> DataFrame:
    """Fill and judge once. _FILLED names the values that a change had not; _REFUSED says that it is bad by these, and
    not for want of a row."""
    key, kept = definition.primary_key, definition.kept_columns
    columns = kept or [c.name for c in definition.topic.schema.physical if c.name not in key]
    marked = changes.withColumn(_FILLED, col(UNAVAILABLE))
    filled = fill_unavailable_values(
        marked, table, key=key, columns=columns, or_null=bool(kept), rules=definition.delta.aggregate
    )
    refused = F.lit(False)
    if not kept:  # that is judged by what the record has
        filled = filled.withColumn(_WAS_GOOD, col(BAD).isNull())
        filled = conditions.with_deletions(with_filled(filled, definition.topic, col(_FILLED)), definition)
        filled = _without_deletions(filled, definition)
        filled = filled.withColumn(_REFUSED, col(_WAS_GOOD) & col(BAD).isNotNull())
        refused = col(_REFUSED)
        if definition.delta.apply_as_delete is not None:
            filled = _mark_deleted_before(filled, key)
    judged = _judged(filled.withColumn(_WAS_GOOD, col(BAD).isNull()), definition)
    refused = refused | (col(_WAS_GOOD) & col(BAD).isNotNull())
    return judged.withColumn(_REFUSED, refused & _names_any(_FILLED)).drop(_WAS_GOOD)


def _first_refused(filled: DataFrame, key: Sequence[str]) -> DataFrame:
    """The first change of each key that is _REFUSED: its POSITION and BAD, and whether a later one of the key that was
    filled may have got its values."""
    before = F.count_if(col(_REFUSED)).over(_earlier_changes(filled, key))
    of_key = Window.partitionBy(*map(col, key))
    ordered = _in_order(filled, key)
    numbered = ordered.select(*map(col, (*key, POSITION, BAD, _REFUSED, _FILLED)), before.alias(_BEFORE))
    is_taken = F.bool_or((col(_BEFORE) > 0) & _names_any(_FILLED)).over(of_key)
    marked = numbered.withColumn(_IS_TAKEN, is_taken)
    return marked.where(col(_REFUSED) & (col(_BEFORE) == 0)).select(*map(col, (POSITION, BAD, _IS_TAKEN)))


def _with_refused(changes: DataFrame, refused: DataFrame) -> DataFrame:
    """Make the changes at the places of `refused` bad for its reasons."""
    reasons = refused.select(col(POSITION).alias(_AT), col(BAD).alias(_WHY))
    joined = changes.join(F.broadcast(reasons), col(POSITION) == col(_AT), "left")
    is_refused = col(_AT).isNotNull()
    values = {
        KIND: F.when(~is_refused, col(KIND)),
        BAD: F.coalesce(col(_WHY), col(BAD)),
        UNAVAILABLE: F.when(~is_refused, col(UNAVAILABLE)),
    }
    return joined.select(*(values.get(name, col(name)).alias(name) for name in changes.columns))


def fold(changes: DataFrame, definition: Definition) -> DataFrame:
    """Leave out bad changes of decoded `changes` and keep the last change per key, by `delta.sequence-by`, or the first
    one under `delta.first-row`; all changes without a key. Under `delta.history` keep the last change of each key and
    sequence."""
    good, key, sequence = changes.where(is_good()), definition.primary_key, definition.delta.sequence_by
    if definition.topic.appends or definition.compacts_first:
        return good
    if definition.delta.first_row:
        return compact.first_by_offset(good, list(key))
    if definition.delta.history is not None:
        return compact.latest_by_offset(good, [*key, *sequence])
    return compact.latest_by_offset(good, list(key), sequence)


def fold_into_table(changes: DataFrame, definition: Definition) -> DataFrame:
    """Do as `fold`, for an ingest. Under `delta.soft-delete` the changes have its column: null in an add, in a
    retraction the time of its record. The last change of a key that is a retraction after an add in `changes` is an
    add with the values of that one, and this time, so that a row has the same values, whatever the bounds of batches
    are."""
    deleted_at = definition.delta.soft_delete
    if deleted_at is None:
        return fold(changes, definition)
    carried = [name for name in (*definition.topic.schema.names, KEPT) if name in changes.columns]
    good = changes.where(is_good())
    last_row = F.last(F.when(~retracts(), F.struct(*map(col, carried))), ignorenulls=True)
    earlier = last_row.over(_earlier_changes(good, definition.primary_key))
    good = _in_order(good, definition.primary_key).withColumn(_ROW, F.when(retracts(), earlier))
    has_row = col(_ROW).isNotNull()
    values = {name: F.when(has_row, col(_ROW).getField(name)).otherwise(col(name)) for name in carried}
    times = {deleted_at: F.when(retracts(), col(POSITION).getField("timestamp"))}
    kind = F.when(has_row, RowKind.UPDATE_AFTER.value).otherwise(col(KIND))
    return fold(good.withColumns({**values, **times, KIND: kind}).drop(_ROW, _SINCE), definition)


def resolve_unavailable(
    changes: DataFrame,
    definition: Definition,
    persist: Persist,
    table: DataFrame | None = None,
) -> DataFrame:
    """Fill the unavailable values of the changes of a whole topic: from earlier changes of the key, else from `table`.

    A change whose value is in neither becomes bad, and `__bad` gives the reason.
    """
    if UNAVAILABLE not in changes.columns or not any_row(changes, F.size(UNAVAILABLE) > 0):
        return changes
    rows = changes.limit(0) if table is None else table
    table_rows = rows.select(*[col(c.name) for c in definition.topic.schema.physical])
    return fill_unavailable(changes, table_rows, definition, persist)


def _judged(changes: DataFrame, definition: Definition) -> DataFrame:
    return row_gate.divert_unexpected(unfit_rows.mark_unfit(changes, definition), definition)


def _without_unavailable(changes: DataFrame, definition: Definition) -> DataFrame:
    """Make changes that leave out values bad in a table without a PRIMARY KEY, where no row has them."""
    if not definition.topic.appends or UNAVAILABLE not in changes.columns:
        return changes
    left_out = F.concat(F.lit("value: it leaves out "), F.array_join(UNAVAILABLE, ", "))
    why = F.lit(", and without a PRIMARY KEY there is no row whose value could be kept")
    bad = F.coalesce(col(BAD), F.when(_names_any(UNAVAILABLE), F.concat(left_out, why)))
    none = F.lit(None).cast("array<string>")
    return changes.withColumns({KIND: F.when(bad.isNull(), col(KIND)), BAD: bad, UNAVAILABLE: none})


def _without_deletions(changes: DataFrame, definition: Definition) -> DataFrame:
    """Skip deletions under `delta.ignore-delete`; under `delta.first-row` alone they are bad."""
    delta = definition.delta
    if not (delta.first_row or delta.ignore_delete):
        return changes
    if delta.ignore_delete:
        return changes.withColumn(KIND, F.when(is_good() & retracts(), SKIP).otherwise(col(KIND)))
    why = F.lit("it deletes its row, and delta.first-row takes no deletion; delta.ignore-delete ignores them")
    bad = F.coalesce(col(BAD), F.when(retracts(), why))
    return changes.withColumns({KIND: F.when(bad.isNull(), col(KIND)), BAD: bad})


def _with_kept_values(changes: DataFrame, definition: Definition) -> DataFrame:
    """Name the columns of `delta.ignore-null-updates` that are null in an add as unavailable, those that its column
    of `delta.update-columns` does not name, and those of `delta.aggregate`: they are filled later."""
    names, nulls, by = definition.kept_columns, definition.delta.ignore_nulls, definition.delta.update_columns
    if not names:
        return changes
    bad, adds = col(BAD), sets_row()
    if UNAVAILABLE in changes.columns:
        left_out = F.concat(F.lit("value: it leaves out "), F.array_join(UNAVAILABLE, ", "))
        kept_by = f", which may be no value that the row keeps (delta.{definition.keeps_by}); let it have all columns"
        bad = F.coalesce(bad, F.when(F.size(UNAVAILABLE) > 0, F.concat(left_out, F.lit(kept_by))))
    combined = definition.delta.aggregate.keys()
    keeps = {name: col(name).isNull() if name in nulls else F.lit(name in combined) for name in names}
    if by is not None:
        known = F.array(*map(F.lit, (*definition.primary_key, *names, by)))
        unknown = F.size(F.array_except(F.array_compact(col(by)), known)) > 0
        why = F.lit(
            f"column {by!r} names a column that is none of the DDL's physical ones (delta.update-columns)"
        )
        bad = F.coalesce(bad, F.when(adds & unknown, why))
        unnamed = {name: ~F.coalesce(F.array_contains(col(by), name), F.lit(False)) for name in names}
        keeps = {name: keep | (col(by).isNotNull() & unnamed[name]) for name, keep in keeps.items()}
    kept = F.filter(
        F.array(*[F.when(keep, F.lit(name)) for name, keep in keeps.items()]), lambda name: name.isNotNull()
    )
    open_columns = F.when(adds & bad.isNull() & (F.size(kept) > 0), kept)
    return changes.withColumns({UNAVAILABLE: open_columns, KIND: F.when(bad.isNull(), col(KIND)), BAD: bad})


def any_row(frame: DataFrame, condition: Column) -> bool:
    """Whether the condition is true for a row, in one job: Spark's isEmpty reads one partition, then four, and so on
    while it finds none."""
    row = frame.agg(F.bool_or(condition)).first()
    return row is not None and bool(row[0])
