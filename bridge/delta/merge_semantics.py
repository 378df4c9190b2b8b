"""Defines what merging changes into a table means, as plain values that every merge engine translates.

A semantics is a function: from the definition's columns and its key it makes a `MergeStatement`. Engines execute
statements and know no semantics, so a new one (a history, a sequence column) is a new function, and no engine changes:
see `insert_first`, the shortest one.

A condition is given in both forms that engines need: as SQL over a change, alias `__s`, and the table's row, alias
`__t`, and as a mask over changes and rows in Arrow.

Engines record the key in the commit (`IngestProgress.key`), and a publish concludes that the commit has at most one
change for each key. A semantics that changes several rows of a key must not be recorded so (`IngestProgress.resync`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from bridge.columns import KIND
from bridge.definition import DeltaTarget
from bridge.rows import RowKind
from bridge.schema import ColumnRule, quote

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Mask = npt.NDArray[np.bool_]

__all__ = [
    "ADDS",
    "INSERT_ALWAYS",
    "KEPT",
    "RETRACTS",
    "SOURCE",
    "TARGET",
    "Condition",
    "Delete",
    "Insert",
    "IsTrue",
    "MergeSemantics",
    "MergeStatement",
    "Not",
    "NotOlder",
    "Retracts",
    "Update",
    "after_truncate",
    "after_truncate_by_sequence",
    "aggregate_by_key",
    "insert_first",
    "kept_column",
    "merge_own_columns",
    "not_older",
    "repair_by_key",
    "semantics_of",
    "soft_delete_by_key",
    "upsert_by_key",
    "upsert_by_sequence",
]

SOURCE, TARGET = "__s", "__t"
"""Aliases of a change and of a row of the table."""

_RETRACTIONS = [kind.value for kind in RowKind if kind.retracts]

INSERT_ALWAYS = "__anew"
"""Boolean column of the changes of `repair_by_key`."""

KEPT = "__kept"
"""Column of changes, where there is one: names of columns, as an array or null, whose values were taken from the table.
An update leaves them as they are when it is committed, which another writer may have changed since they were read, or
combines them with the change's (`Update.rules`). In Arrow each column may have one of `kept_column` instead."""


def kept_column(name: str) -> str:
    """The boolean column of changes in Arrow that says whether a change keeps the row's value of the column `name`."""
    return f"{KEPT}_{name}"


class Condition(Protocol):
    """A condition on a change and, where there is one, the row that it matches."""

    @property
    def sql(self) -> str:
        """It as SQL, true or false, never NULL."""
        ...

    def mask(self, changes: pa.Table, rows: pa.Table | None) -> Mask:
        """Whether it holds for each change, with the row of the same place in `rows`; None: changes without a row."""
        ...


@dataclass(frozen=True)
class Retracts:
    """The change takes a row away: -U, -D. Or, with columns, has only NULL in these."""

    or_null: tuple[str, ...] | None = None

    @property
    def sql(self) -> str:
        kinds = f"{SOURCE}.{KIND} IN ({', '.join(map(repr, _RETRACTIONS))})"
        if self.or_null is None:
            return kinds
        are_null = " AND ".join(f"{SOURCE}.{quote(name)} IS NULL" for name in self.or_null)
        return f"({kinds} OR ({are_null}))"

    def mask(self, changes: pa.Table, rows: pa.Table | None) -> Mask:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        retract = np.asarray(pc.is_in(changes[KIND], value_set=pa.array(_RETRACTIONS)))
        if self.or_null is None:
            return retract
        are_null = np.ones(changes.num_rows, np.bool_)
        for name in self.or_null:
            are_null &= np.asarray(changes[name].is_null())
        return retract | are_null


@dataclass(frozen=True)
class Not:
    """The opposite."""

    of: Condition

    @property
    def sql(self) -> str:
        return f"NOT {self.of.sql}"

    def mask(self, changes: pa.Table, rows: pa.Table | None) -> Mask:
        return ~self.of.mask(changes, rows)


@dataclass(frozen=True)
class IsTrue:
    """A boolean column of the change, which is never NULL, is true."""

    column: str

    @property
    def sql(self) -> str:
        return f"{SOURCE}.{quote(self.column)}"

    def mask(self, changes: pa.Table, rows: pa.Table | None) -> Mask:
        import numpy as np

        return np.asarray(changes[self.column])


RETRACTS: Condition = Retracts()
"""The change takes a row away: -U, -D."""
ADDS: Condition = Not(RETRACTS)
"""The change has a row: +I, +U."""


@dataclass(frozen=True)
class NotOlder:
    """The condition holds, and the change has the same values of `sequence` as the row or greater ones, the first
    column first. A null of the row is less than every value; the change has none."""

    sequence: tuple[str, ...]
    of: Condition

    @property
    def sql(self) -> str:
        change, row = (
            ", ".join(f"{alias}.{quote(name)}" for name in self.sequence) for alias in (SOURCE, TARGET)
        )
        return f"({self.of.sql} AND struct({change}) >= struct({row}))"

    def mask(self, changes: pa.Table, rows: pa.Table | None) -> Mask:
        assert rows is not None
        return not_older(changes, rows, self.sequence) & self.of.mask(changes, rows)


def not_older(changes: pa.Table, rows: pa.Table, sequence: Sequence[str]) -> Mask:
    """Whether each change has the same values of `sequence` as the row of the same place or greater ones; see
    `NotOlder`."""
    import numpy as np
    import pyarrow.compute as pc

    newer = np.ones(changes.num_rows, np.bool_)
    for name in reversed(sequence):
        one, other = changes[name], rows[name]
        greater = pc.or_(other.is_null(), pc.fill_null(pc.greater(one, other), False))
        newer = np.asarray(greater) | (np.asarray(pc.fill_null(pc.equal(one, other), False)) & newer)
    return newer


@dataclass(frozen=True)
class Delete:
    """Deletes the matched row."""

    when: Condition
    if_others_null: bool = False
    """Only where every column that the table has and the definition lacks is NULL. Each engine takes them from the
    version that it merges into, as other pipelines add columns at any time."""


@dataclass(frozen=True)
class Update:
    """Sets `columns` of the matched row to the values of the change, or to NULL."""

    columns: tuple[str, ...]
    if_differs: tuple[str, ...] | None = None
    """Only where one of these columns differs, null-safely; never where there are none. None: always. Each engine
    compares them by their types (Spark cannot compare maps in SQL)."""
    when: Condition | None = None
    rules: Mapping[str, ColumnRule] = field(default_factory=dict)
    """Those of `columns` whose value, where the change keeps the row's (KEPT), is combined with it."""
    to_null: bool = False
    """Sets NULL instead of the values of the change: `if_differs` is then "only where one of these is not NULL"."""


@dataclass(frozen=True)
class Insert:
    """Inserts a row with `columns` of the change; the table's other columns are NULL."""

    columns: tuple[str, ...]
    when: Condition


@dataclass(frozen=True)
class MergeStatement:
    """One MERGE. A change matches a row where `key` is equal, null-safely, and `match_condition` holds.

    The first clause of `matched` whose condition holds is applied to the row. A change without a match is inserted
    where the condition of `insert` holds; a first batch into an empty table is its inserts alone. A change to which no
    clause applies writes no data file and no row of the change data feed.
    """

    key: tuple[str, ...]
    matched: tuple[Delete | Update, ...]
    insert: Insert
    match_condition: Condition | None = None
    change_columns: tuple[str, ...] = ()
    """Columns of the changes, beside those of the table and `__kind`, that conditions name."""
    all_effective: bool = False
    """Every change is known to change a row, so that an engine need not look for those that do not."""
    deletes_others: bool = False
    """Rows that no change matches are deleted: those that `others` names."""
    others: str = ""
    """The condition, as SQL over a row, for which `deletes_others` deletes it; "" for all rows."""


MergeSemantics = Callable[[Sequence[str], Sequence[str]], MergeStatement]
"""Makes the statement for a definition with these columns and this key."""


def upsert_by_key(columns: Sequence[str], key: Sequence[str]) -> MergeStatement:
    """Make the table the fold of its changes: a row for each key, the newest one (ADR 028, rule 4).

    Adds (+I, +U) insert the row of their key, or update it where a column outside the key differs. Retractions (-U, -D)
    delete it; a retraction of an unknown key has no effect. Changes have at most one row for each key.
    """
    values = tuple(columns)
    rest = tuple(name for name in columns if name not in key)
    return MergeStatement(
        tuple(key),
        matched=(Delete(when=RETRACTS), Update(values, if_differs=rest)),
        insert=Insert(values, when=ADDS),
    )


def soft_delete_by_key(columns: Sequence[str], key: Sequence[str], *, deleted_at: str) -> MergeStatement:
    """Do as `upsert_by_key`, but a retraction sets the column `deleted_at` of the row to its own, and leaves the rest.

    `columns` has `deleted_at`, which is null in an add of a row, and a time in one of a row that was deleted later in
    the same batch.
    """
    mark, rest = (deleted_at,), tuple(name for name in columns if name not in key)
    return MergeStatement(
        tuple(key),
        matched=(
            Update(mark, if_differs=mark, when=RETRACTS),
            Update(tuple(columns), if_differs=rest, when=ADDS),
        ),
        insert=Insert(tuple(columns), when=ADDS),
    )


def upsert_by_sequence(
    columns: Sequence[str], key: Sequence[str], *, sequence: tuple[str, ...]
) -> MergeStatement:
    """Do as `upsert_by_key`, but a change that is older than its row by `sequence` has no effect.

    Changes that are older than a deletion of their key are left out before (`delete_memory`).
    """
    upsert = upsert_by_key(columns, key)
    rest = tuple(name for name in columns if name not in key)
    return MergeStatement(
        upsert.key,
        matched=(
            Delete(when=NotOlder(sequence, RETRACTS)),
            Update(tuple(columns), if_differs=rest, when=NotOlder(sequence, ADDS)),
        ),
        insert=upsert.insert,
    )


def aggregate_by_key(
    columns: Sequence[str], key: Sequence[str], *, rules: Mapping[str, ColumnRule]
) -> MergeStatement:
    """Do as `upsert_by_key`, but the values of the columns of `rules` are combined with those of the row where a change
    says so (KEPT); where it does not, it begins anew (`delta.aggregate`)."""
    upsert = upsert_by_key(columns, key)
    *deletes, update = upsert.matched
    assert isinstance(update, Update)
    return replace(upsert, matched=(*deletes, replace(update, rules=rules)))


def insert_first(columns: Sequence[str], key: Sequence[str]) -> MergeStatement:
    """Insert the row of a key that the table does not have, and never change one (`delta.first-row`)."""
    return MergeStatement(tuple(key), matched=(), insert=Insert(tuple(columns), when=ADDS))


def after_truncate(columns: Sequence[str], key: Sequence[str]) -> MergeStatement:
    """Make the table the fold of the changes after a truncate, whatever it had: other rows are deleted."""
    return replace(upsert_by_key(columns, key), deletes_others=True)


def after_truncate_by_sequence(
    columns: Sequence[str], key: Sequence[str], *, sequence: tuple[str, ...], others: str
) -> MergeStatement:
    """Do as `upsert_by_sequence` with changes that are newer than a truncate, and delete the `others` that it takes."""
    newer = upsert_by_sequence(columns, key, sequence=sequence)
    return replace(newer, deletes_others=True, others=others)


def repair_by_key(columns: Sequence[str], key: Sequence[str]) -> MergeStatement:
    """Do as `upsert_by_key`, with changes that a comparison of topic and table has found.

    An add whose INSERT_ALWAYS is true is inserted whether or not its key is there. Beside a retraction of the same key,
    which deletes all rows of the key, it leaves one row where there were several.
    """
    upsert = upsert_by_key(columns, key)
    return MergeStatement(
        upsert.key,
        upsert.matched,
        upsert.insert,
        match_condition=Not(IsTrue(INSERT_ALWAYS)),
        change_columns=(INSERT_ALWAYS,),
        all_effective=True,
    )


def merge_own_columns(
    columns: Sequence[str], key: Sequence[str], *, sequence: tuple[str, ...] = ()
) -> MergeStatement:
    """Make the columns outside the key, which are the definition's own, those of its topic (ADR 037).

    The table may have other columns, which other pipelines write and this statement never changes. An add sets the own
    columns of its key, and inserts the row where the table has none. A retraction sets them to NULL. So does an add
    whose own columns are all NULL: it is the same row. A row of which no column outside the key has a value is deleted
    or not inserted, so that the table depends on the topics alone, and not on the order of their batches. Changes have
    at most one row for each key. With `sequence`, own columns, a change that is older than these of its row has no
    effect, as in `upsert_by_sequence`.
    """
    own = tuple(name for name in columns if name not in key)
    empty: Condition = Retracts(or_null=own)
    takes, sets = (NotOlder(sequence, of) if sequence else of for of in (empty, Not(empty)))
    return MergeStatement(
        tuple(key),
        matched=(
            Delete(when=takes, if_others_null=True),
            Update(own, if_differs=own, when=takes, to_null=True),
            Update(own, if_differs=own, when=sets),
        ),
        insert=Insert(tuple(columns), when=Not(empty)),
    )


def semantics_of(target: DeltaTarget) -> MergeSemantics:
    """The semantics by which an ingest merges into `target`; of a history the changes of its intervals, by their
    `row_key`, which depend on the sequences of all changes already (`timeline`)."""
    if target.history is not None:
        return upsert_by_key
    if target.merge_columns:
        return partial(merge_own_columns, sequence=target.sequence_by)
    if target.sequence_by:
        return partial(upsert_by_sequence, sequence=target.sequence_by)
    if target.first_row:
        return insert_first
    if target.aggregate:
        return partial(aggregate_by_key, rules=target.aggregate)
    if target.soft_delete is not None:
        return partial(soft_delete_by_key, deleted_at=target.soft_delete)
    return upsert_by_key
