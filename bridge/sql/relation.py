"""What is known about the result of a query: its columns, its keys, and whether its rows are updated.

A column of a result has a *distribution* if, for each of its values, the rows with that value come from those rows of
each source that have the same value in one column of that source. The result can then be computed for some values only:
from the rows of all sources with these values. (Flink's planner calls this a hash distribution: it may send the rows of
one value to one task.)

Example: in `SELECT city, COUNT(*) FROM users GROUP BY city` the column `city` has the distribution {users: city}, and
`COUNT(*)` has none. In `a JOIN b ON a.id = b.ref` the columns `id` and `ref` have {a: id, b: ref}; others have none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import TypeVar

from bridge.schema import DataType
from bridge.sql.tree import Key, Term, column_term
from bridge.sql.window import Window

Distribution = frozenset[tuple[str, str]]
"""A column for each source of the query, as (source, column): every source is there exactly once."""

_T = TypeVar("_T", bound=Hashable)


def scan_distribution(source: str, column: str) -> Distribution:
    """The distribution of a column of a table that is read."""
    return frozenset({(source, column)})


def union_distribution(one: Distribution | None, other: Distribution | None) -> Distribution | None:
    """The distribution of a column whose values come from both; None if one has none, or if they name different columns
    of one source, of which only one could be restricted at a time."""
    if one is None or other is None:
        return None
    both = one | other
    return both if len({source for source, _ in both}) == len(both) else None


def project_distributions(
    distributions: Mapping[_T, Distribution], outputs: Mapping[_T, Iterable[int]]
) -> dict[int, Distribution]:
    """The distributions of the columns of a projection; `outputs` are the columns that are exactly a term."""
    return {i: d for term, d in distributions.items() for i in outputs.get(term, ())}


_MOST_KEYS = 16
"""A join of many keyed tables has many keys, most of them of no use to a sink."""


@dataclass(frozen=True)
class QueryColumn:
    """A column of a result; `type` is None if only Spark can derive it. Constants are the same in all rows."""

    name: str
    type: DataType | None
    is_constant: bool = False
    event_time: str | None = None
    """The table of whose WATERMARK this is the column; None for all other columns."""


@dataclass(frozen=True)
class Changes:
    """The changes of a result beside inserts, in Flink's words: `update` or `update and delete`, and the node."""

    kinds: str
    node: str


@dataclass(frozen=True)
class Relation:
    """The result of a query. `changes` is None if rows are only ever added (append-only)."""

    columns: tuple[QueryColumn, ...]
    keys: frozenset[Key] = frozenset()
    changes: Changes | None = None
    operations: tuple[str, ...] = ()
    """What the query does beside projecting and filtering rows, the innermost first: `aggregate`, `join` ..."""
    grouping: tuple[str, ...] = field(default=())
    """The columns by which the outermost operation computes its rows, for messages."""
    distributions: Mapping[Term, Distribution] = field(default_factory=dict)
    """The columns of the result by which it can be computed in parts; see above."""
    window: Window | None = None
    """The windows of event time to which its rows belong."""

    @property
    def is_windowed(self) -> bool:
        """Whether its rows come when their windows close."""
        return self.window is not None and self.window.is_closed

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    def distinct(self) -> Relation:
        """Returns the result without equal rows; all columns together are a key."""
        whole: Key = frozenset(map(column_term, range(len(self.columns))))
        return replace(
            self,
            keys=self.keys | {whole},
            changes=None if self.is_windowed else grouped_changes(self.changes, self.names),
            operations=(*self.operations, "distinct"),
            grouping=self.names,
        )


def grouped_changes(changes: Changes | None, names: Iterable[str]) -> Changes:
    """Returns the changes of rows that are grouped by columns with these `names`; `changes` are those of the input."""
    kinds = "update" if changes is None else "update and delete"
    return Changes(kinds, f"GroupAggregate(groupBy=[{', '.join(names)}])")


def project_keys(
    keys: Iterable[Key],
    outputs: Mapping[Term, Iterable[int]],
    equal: Mapping[Term, Iterable[Term]] | None = None,
) -> frozenset[Key]:
    """Returns the keys whose columns a projection keeps, as keys of its output.

    `outputs` are the output columns that are exactly a term, `equal` the terms that an inner join makes equal.
    """
    found: set[Key] = set()
    for key in sorted(keys, key=lambda k: sorted(map(sorted, k))):
        choices = []
        for term in key:
            same = {term, *(equal or {}).get(term, ())}
            choices.append(sorted({index for t in same for index in outputs.get(t, ())}))
        found.update(frozenset(map(column_term, chosen)) for chosen in islice(product(*choices), _MOST_KEYS))
    return frozenset(sorted(found, key=lambda k: (len(k), sorted(map(sorted, k))))[:_MOST_KEYS])
