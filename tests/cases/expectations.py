"""Compares tables, changelogs and topics with the expectations of a case."""

from __future__ import annotations

import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.cases.bench import Wire
from tests.cases.case import Part
from tests.cases.changelog import Commits, Shape
from tests.cases.outcome import Mismatch
from tests.cases.values import comparable, from_case, payload

_WHERE = re.compile(r"expected_where_(.+)_(ge|gt|le|lt|eq)_(-?\d+)")


def row_of(values: Sequence[Any], shape: Shape, topic: str = "") -> tuple[Any, ...]:
    """Returns a case's row in comparable form, with the topic's name in place of `<topic>`."""
    if len(values) != len(shape):
        raise Mismatch(f"the case's row {values} has {len(values)} values for {len(shape)} columns")
    given = [topic if v == "<topic>" else v for v in values]
    return tuple(comparable(from_case(v, t), t) for v, (_, t) in zip(given, shape, strict=True))


def expected_rows(rows: Iterable[Sequence[Any]], shape: Shape, topic: str = "") -> list[tuple[Any, ...]]:
    """Returns all rows of a case in comparable form."""
    return [row_of(row, shape, topic) for row in rows]


def check_same(what: str, wanted: Iterable[Any], found: Iterable[Any]) -> None:
    """Raises Mismatch with the first difference of two multisets."""
    missing, extra = Counter(wanted), Counter(found)
    missing, extra = missing - extra, extra - missing
    if missing or extra:
        parts = [f"missing {next(iter(sorted(missing, key=repr)))!r}"] if missing else []
        parts += [f"unexpected {next(iter(sorted(extra, key=repr)))!r}"] if extra else []
        counts = f"{missing.total()} missing, {extra.total()} unexpected"
        raise Mismatch(f"{what}: {', '.join(parts)} ({counts})")


def check_table(
    part: Part, found: list[tuple[Any, ...]], shape: Shape, key: Sequence[str], topic: str
) -> None:
    """Checks the table's rows against every expectation of `part` about a table."""
    names = [name for name, _ in shape]
    for want in ("expected_table", "expected_rows"):
        if part.has(want):
            check_same(want.partition("_")[2], expected_rows(part.take(want), shape, topic), found)
    columns = [c if isinstance(c, str) else c[0] for c in part.take("expected_columns") or names]
    if columns != names:
        raise Mismatch(f"columns: wanted {part.take('expected_columns')}, there are {names}")
    counts = [part.take("expected_count"), (part.take("expected_aggregate") or {}).get("count")]
    for count in counts:
        if count is not None and count != len(found):
            raise Mismatch(f"row count: wanted {count}, there are {len(found)}")
    for text in [k for k in part.data if _WHERE.fullmatch(k)]:
        _check_where(part, text, found, names, key)


def _check_where(
    part: Part, text: str, found: list[tuple[Any, ...]], names: list[str], key: Sequence[str]
) -> None:
    match = _WHERE.fullmatch(text)
    assert match is not None
    column, compare, bound = match.groups()
    test: Callable[[Any, Any], bool] = getattr(operator, compare)
    at = names.index(column)
    rows = [row for row in found if row[at] is not None and test(row[at], int(bound))]
    keys = [tuple(row[names.index(k)] for k in key) for row in rows]
    wanted = [tuple(k) if isinstance(k, list) else (k,) for k in part.take(text)]
    check_same(text.removeprefix("expected_"), wanted, keys)


def check_changelog(wanted: list[Sequence[Any]], found: Commits, shape: Shape, topic: str) -> None:
    """Raises Mismatch at the first difference of two changelogs, in exact order. Changes of one commit (which come from
    one message) may have any order."""
    expected = [(row[0], *row_of(row[1:], shape, topic)) for row in wanted]
    have: list[Any] = []
    for commit in found:
        due = expected[len(have) : len(have) + len(commit)]
        have += due if Counter(due) == Counter(commit) else commit
    _check_order("changelog", expected, have)


def check_per_key(what: str, wanted: Mapping[str, Sequence[Any]], found: Mapping[str, Sequence[Any]]) -> None:
    """Raises Mismatch at the first difference, in order within each key only."""
    if wanted.keys() != found.keys():
        check_same(f"{what}, keys", wanted.keys(), found.keys())
    for key in wanted:
        _check_order(f"{what} of key {key}", list(wanted[key]), list(found[key]))


def _check_order(what: str, expected: list[Any], found: list[Any]) -> None:
    for at, (want, have) in enumerate(zip(expected, found, strict=False)):
        if want != have:
            raise Mismatch(f"{what}, at {at}: wanted {want!r}, there is {have!r}")
    if len(expected) != len(found):
        rest = (expected or [])[len(found) :] or found[len(expected) :]
        counts = f"wanted {len(expected)}, there are {len(found)}"
        raise Mismatch(f"{what}: {counts}; first of the rest {rest[0]!r}")


def check_records(wanted: list[dict[str, Any]], found: list[Wire], *, as_json: bool) -> None:
    """Compares raw records by bytes (or by documents), in order within each key.

    Compares timestamps, headers and partitions where the case has them.
    """
    expected = [_raw(payload(r.get("key")), payload(r.get("value")), r, as_json) for r in wanted]
    have = [_raw(w.key, w.value, _given(w, wanted), as_json) for w in found]
    grouped: dict[str, tuple[list[Any], list[Any]]] = {}
    for side, records in enumerate((expected, have)):
        for record in records:
            grouped.setdefault(repr(record[0]), ([], []))[side].append(record[1:])
    for key, (want, is_there) in grouped.items():
        _check_order(f"records of key {key}", want, is_there)


def _raw(key: bytes | None, value: bytes | None, more: Mapping[str, Any], as_json: bool) -> tuple[Any, ...]:
    if as_json and value is not None:
        value = json.dumps(json.loads(value), sort_keys=True).encode()
    headers = more.get("headers")
    shown = None if headers is None else tuple((k, payload(v)) for k, v in headers)
    return key, value, more.get("timestamp"), more.get("partition"), shown


def _given(wire: Wire, wanted: list[dict[str, Any]]) -> dict[str, Any]:
    asked = {k for record in wanted for k in ("timestamp", "partition") if record.get(k) is not None}
    seen: dict[str, Any] = {k: getattr(wire, k) for k in asked}
    if any("headers" in record for record in wanted):
        seen["headers"] = [(k, v) for k, v in wire.headers]
    return seen
