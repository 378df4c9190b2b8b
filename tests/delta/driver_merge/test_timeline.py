"""Histories in Arrow are those of the oracle after every batch, whatever types their columns have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.columns import KIND
from bridge.definition import DeltaTarget
from bridge.delta.driver_merge.matches import Keys
from bridge.delta.driver_merge.timeline import Intervals, intervals, not_ended
from bridge.rows import Change
from tests.delta.histories import (
    BITEMPORAL,
    COLUMNS,
    KEYS,
    SEQUENCES,
    STEPS,
    TARGET,
    UTC,
    Drawn,
    Step,
    chosen,
    folded,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Table(Drawn):
    """A history, its rows by their keys and starts."""

    def __init__(self, key: Sequence[str], sequence: str, value: str, target: DeltaTarget = TARGET) -> None:
        super().__init__(key, sequence, [value], target)
        self.target = target
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {}

    def apply(
        self, changes: Sequence[Change], deletions: Sequence[Change], at: int | None = None
    ) -> Intervals:
        """Merge the changes of intervals into the rows, by their places and by their keys."""
        given = self.arrow(changes)
        keys = Keys(given, self.key)
        whole = pa.Table.from_pylist(list(self.rows.values()), schema=self.schema)
        places, of_rows = keys.find(whole)
        since = not_ended(self.target, keys, given)
        assert since.columns == ("valid_to", *self.system[1:])
        stays = since.mask(whole.take(places), of_rows)
        rows, of_rows = whole.take(places[stays]), of_rows[stays]
        gone = self.arrow(deletions)
        found = intervals(self.target, self.schema.names, keys, given, rows, of_rows, gone, at)
        assert found.changes.drop_columns([KIND]).schema == self.schema
        by_key = {self.place(row): (n, row) for n, row in enumerate(found.changes.to_pylist())}
        assert len(by_key) == found.changes.num_rows
        expected = [by_key.get(self.place(row), (-1,))[0] for row in rows.to_pylist()]
        assert found.of_rows.tolist() == expected
        for place, (_, row) in by_key.items():
            kind = row.pop(KIND)
            former = self.rows.pop(place, None)
            if kind == "+U":
                assert repr(former) != repr(row), "a row that does not change"
                assert not at or not former or repr({**former, "known_to": row["known_to"]}) == repr(row)
                self.rows[place] = row
            else:
                assert former is not None
                assert all(row[name] is None for name in set(row) - {*self.key, "valid_from"})
        return found

    def place(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.target.row_key(self.key))

    def found(self) -> list[str]:
        return self.shown(self.rows.values())


histories = given(
    st.sampled_from(KEYS), st.sampled_from(sorted(SEQUENCES)), st.sampled_from(sorted(COLUMNS)), STEPS
)
"""Draws the key, the type of the sequence, the one of the value, and what happens."""


def check(key: Sequence[str], sequence: str, value: str, steps: Sequence[Step]) -> None:
    table, done = Table(key, sequence, value), list[Change]()
    for batch in table.batches(steps):
        # An attempt that died may have remembered its deletions.
        deletions = [c for c in (*done, *batch) if c.kind.retracts]
        table.apply(folded(batch), deletions)
        done += batch
        assert table.found() == table.expected(done)
    last = folded(batch)
    again = table.apply(last, [c for c in done if c.kind.retracts])
    assert again.changes.num_rows == 0 and again.without_effect == len(last), "a batch that comes again"
    assert table.found() == table.expected(done)


@settings(max_examples=60, deadline=None)
@histories
def test_arrow_is_the_oracle(key: tuple[str, ...], sequence: str, value: str, steps: list[Step]) -> None:
    check(key, sequence, value, steps)


def check_bitemporal(key: Sequence[str], sequence: str, value: str, steps: Sequence[Step]) -> None:
    """At each system time the table has the rows of the oracle after the batches up to it."""
    table, done, states = Table(key, sequence, value, BITEMPORAL), list[Change](), list[list[str]]()
    batches = table.batches(steps)
    for number, batch in enumerate([*batches, batches[-1]]):
        deletions = [c for c in (*done, *batch) if c.kind.retracts]
        found = table.apply(folded(batch), deletions, 1 + number)
        assert number < len(batches) or not found.changes.num_rows, "a batch that comes again"
        done += batch
        states.append(table.expected(done))
        for before, state in enumerate(states):
            assert table.known(table.rows.values(), EPOCH + timedelta(microseconds=1 + before)) == state
    assert table.shown(row for row in table.rows.values() if row["known_to"] is None) == states[-1]


@settings(max_examples=60, deadline=None)
@histories
def test_system_times_keep_what_was_known(
    key: tuple[str, ...], sequence: str, value: str, steps: list[Step]
) -> None:
    check_bitemporal(key, sequence, value, steps)


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@histories
def test_system_times_keep_what_was_known_of_many_histories(
    key: tuple[str, ...], sequence: str, value: str, steps: list[Step]
) -> None:
    check_bitemporal(key, sequence, value, steps)


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@histories
def test_arrow_is_the_oracle_of_many_histories(
    key: tuple[str, ...], sequence: str, value: str, steps: list[Step]
) -> None:
    check(key, sequence, value, steps)


def of(table: Table) -> Callable[..., Change]:
    return lambda kind, s, v=None: table.change((kind, 1, s, v, 0))


def test_only_changes_with_an_effect_count() -> None:
    table = Table(("bigint",), "bigint", "bigint")
    change = of(table)
    first = table.apply([change("+U", 0, 1), change("+U", 2, 2), change("-D", 3)], [])
    assert first.matches([]) == [], "a table without rows"
    before = dict(table.rows)
    assert table.apply([change("-D", 0), change("-D", 3)], []).without_effect == 1
    table.rows = before
    found = table.apply([change("+U", 1, 1), change("-D", 3), change("-D", 4)], [])
    assert (found.changes.num_rows, found.without_effect) == (2, 2)


def test_rows_that_others_have_written_are_ordered_by_their_starts() -> None:
    """A row without a start is valid before all others. An end at which no row starts is that of a deletion."""
    table = Table(("bigint",), "bigint", "bigint")
    change, (k, day) = of(table), (chosen(COLUMNS["bigint"][1], 1), SEQUENCES["bigint"][1])
    for v, start, end in ((0, None, day[4]), (2, day[2], None)):
        row = dict(zip(table.schema.names, (k, v, start, start, end, end is None), strict=True))
        table.rows[table.place(row)] = row
    table.apply([change("+U", 3, 3)], [])
    assert sorted((r["v0"], r["valid_from"], r["valid_to"]) for r in table.rows.values()) == [
        (0, None, day[2]),
        (1, day[3], day[4]),
        (2, day[2], day[3]),
    ]


def test_values_that_differ_in_their_form_alone_are_equal() -> None:
    table = Table(("bigint",), "bigint", "double")
    change = of(table)
    table.apply([change("+U", 0, 0), change("+U", 1, 1)], [])
    minus = replace(change("+U", 1), row={"v0": -0.0, "s": -1})
    found = table.apply([change("+U", 0, 0), minus], [])
    assert found.without_effect == 2 and not np.count_nonzero(found.of_rows >= 0)
