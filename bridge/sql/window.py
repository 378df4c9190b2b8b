"""Rows that belong to windows of event time, and which operations keep them so.

A window table function gives each row the bounds of its window. Once rows are grouped, joined or ranked by these
bounds, a row of the result is known when its window is closed, that is when the watermark has passed its end, and it
never changes afterwards. Such rows are only added, window by window.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from bridge.sql.tree import Key, QueryTree, Term, column_term


@dataclass(frozen=True)
class WindowSpan:
    """Windows of `size_ms`; each `step_ms` another one begins (those of CUMULATE are taken as the largest of them)."""

    size_ms: int
    step_ms: int
    offset_ms: int = 0

    def last_end_ms(self, time_ms: int) -> int:
        """The end, exclusive, of the last window that has rows of this time; epoch milliseconds."""
        return time_ms - (time_ms - self.offset_ms) % self.step_ms + self.size_ms


_WAY_OUT = (
    "these rows come when their window closes. Write them into a table with one INSERT, and read that table with "
    "another"
)


@dataclass(frozen=True)
class WindowInput:
    """What a window table function reads of a source. `counts` is a query over these rows that counts those whose
    windows are all closed (`late`), and those without a time (`timeless`)."""

    table: str
    counts: exp.Select
    span: WindowSpan


@dataclass(frozen=True)
class Window:
    """The columns of a relation that have the bounds of a row's window; None if they are not selected.

    `is_closed` says that its rows come when their window closes; else they are rows of a source with these columns.
    """

    start: Term | None
    end: Term | None
    time: Term | None
    """The last millisecond of the window, where it is selected."""
    size_ms: int
    start_is_unique: bool
    """Whether no two windows have one start; those of CUMULATE do."""
    inputs: tuple[WindowInput, ...]
    is_closed: bool = False

    def shifted(self, first: int) -> Window:
        """The same in a scope in which the first column of the relation has the index `first`."""

        def shift(term: Term | None) -> Term | None:
            return None if term is None else frozenset(i + first for i in term)

        return replace(self, start=shift(self.start), end=shift(self.end), time=shift(self.time))

    def projected(self, outputs: Mapping[Term, Iterable[int]]) -> Window | None:
        """The same for a projection; `outputs` are its columns that are exactly a term."""

        def place(term: Term | None) -> Term | None:
            at = min(outputs.get(term, ()), default=None) if term is not None else None
            return None if at is None else column_term(at)

        found = replace(self, start=place(self.start), end=place(self.end), time=place(self.time))
        return found if self.is_closed or found.has_bounds else None

    def is_bounded_by(self, terms: Collection[Term | None]) -> bool:
        """Whether both bounds are among these terms, as Flink requires of a window aggregate, join or Top-N."""
        return self.has_bounds and self.start in terms and self.end in terms

    @property
    def has_bounds(self) -> bool:
        """Whether both bounds are columns."""
        return self.start is not None and self.end is not None


def grouped(
    tree: QueryTree, window: Window | None, terms: Collection[Term | None], at: exp.Expr
) -> Window | None:
    """The windows of rows that are grouped by `terms`; None if they are groups like others.

    Raises UnsupportedError for other groups of rows that come window by window.
    """
    return _by_bounds(
        tree, window, terms, "GROUP BY without window_start and window_end over rows of windows", at
    )


def ranked(
    tree: QueryTree, window: Window | None, terms: Collection[Term | None], at: exp.Expr
) -> Window | None:
    """The same for a Top-N whose PARTITION BY has these terms."""
    return _by_bounds(
        tree,
        window,
        terms,
        "ROW_NUMBER without PARTITION BY window_start, window_end over rows of windows",
        at,
    )


def _by_bounds(
    tree: QueryTree, window: Window | None, terms: Collection[Term | None], what: str, at: exp.Expr
) -> Window | None:
    if window is None:
        return None
    if window.is_bounded_by(terms):
        return replace(window, is_closed=True)
    if window.is_closed:
        raise tree.unsupported(what, _WAY_OUT, at)
    return None


def check_distinct(tree: QueryTree, window: Window | None, at: exp.Expr) -> None:
    """Raises UnsupportedError for DISTINCT of rows that come window by window and do not have both bounds: equal rows
    of two windows would be one row."""
    if window is not None and window.is_closed and not window.has_bounds:
        raise tree.unsupported(
            "DISTINCT without window_start and window_end over rows of windows", _WAY_OUT, at
        )


def joined(
    tree: QueryTree,
    sides: tuple[Window | None, Window | None],
    pairs: Collection[tuple[Term, Term]],
    side: str,
    at: exp.Expr,
) -> Window | None:
    """The windows of a join whose condition has these equal pairs; None for a join that does not name both bounds.

    Raises UnsupportedError for any other join of rows that come window by window.
    """
    left, right = sides
    if left is not None and right is not None:
        starts, ends = (left.start, right.start), (left.end, right.end)
        if None not in (*starts, *ends) and starts in pairs and ends in pairs:
            bounds = {
                "": left,
                "LEFT": left,
                "RIGHT": right,
                "FULL": replace(left, start=_merged(starts), end=_merged(ends), time=None),
            }[side]
            is_unique = left.start_is_unique and right.start_is_unique
            inputs = (*left.inputs, *right.inputs)
            return replace(bounds, inputs=inputs, start_is_unique=is_unique, is_closed=True)
    if any(window is not None and window.is_closed for window in sides):
        raise tree.unsupported(
            "a join of rows of windows without window_start = window_start AND window_end = window_end",
            _WAY_OUT,
            at,
        )
    return None


def united(tree: QueryTree, sides: tuple[Window | None, Window | None], at: exp.Expr) -> Window | None:
    """The windows of a UNION. Raises UnsupportedError if only one side has rows that come window by window."""
    one, other = sides
    if not any(window is not None and window.is_closed for window in sides):
        return None
    if one is None or other is None or not (one.is_closed and other.is_closed):
        raise tree.unsupported("UNION of rows of windows and other rows", _WAY_OUT, at)
    return replace(
        one,
        start=one.start if one.start == other.start else None,
        end=one.end if one.end == other.end else None,
        time=one.time if one.time == other.time else None,
        start_is_unique=one.start_is_unique and other.start_is_unique and one.size_ms == other.size_ms,
        inputs=(*one.inputs, *other.inputs),
    )


def window_keys(keys: Iterable[Key], window: Window | None) -> Iterator[Key]:
    """Yields the keys, and for rows that come window by window each of them without the columns of the window that
    another one determines."""
    for key in keys:
        yield key
        if window is not None and window.is_closed and window.is_bounded_by(key):
            bounded = key - {window.time}
            yield bounded
            yield bounded - {window.start}
            if window.start_is_unique:
                yield bounded - {window.end}


def _merged(terms: tuple[Term | None, Term | None]) -> Term:
    return frozenset().union(*(term for term in terms if term is not None))
