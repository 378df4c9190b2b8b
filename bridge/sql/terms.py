"""Columns of a relation as its keys, joins and windows name them."""

from __future__ import annotations

Term = frozenset[int]
"""A column by its index; several columns are COALESCE of them, as the merged key columns of a full join."""

Key = frozenset[Term]
"""Columns that together identify a row, and by which a changed row replaces its former value."""


def column_term(index: int) -> Term:
    """Returns the term of one column."""
    return frozenset((index,))
