"""Which columns of a result divide its computation into parts that do not depend on each other.

A column of a result has a distribution if, for each of its values, the rows with that value come from those rows of
each source that have the same value in one column of that source. The result can then be computed for some values only:
from the rows of all sources with these values. (Flink's planner calls this a hash distribution: it may send the rows of
one value to one task.)

Example: in `SELECT city, COUNT(*) FROM users GROUP BY city` the column `city` has the distribution {users: city}, and
`COUNT(*)` has none. In `a JOIN b ON a.id = b.ref` the columns `id` and `ref` have {a: id, b: ref}; others have none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

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
