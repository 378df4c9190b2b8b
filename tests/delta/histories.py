"""Drawn changes of histories, with columns of many types, and what the oracle says of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from hypothesis import strategies as st

from bridge.columns import KIND
from bridge.definition import DeltaTarget
from bridge.history_columns import History
from bridge.rows import Change, RowKind, intervals

HISTORY = History("valid_from", "valid_to", "is_current")
TARGET = DeltaTarget(path="nowhere", sequence_by=("s",), history=HISTORY)
BITEMPORAL = replace(TARGET, history=replace(HISTORY, system_from="known_from", system_to="known_to"))
BATCHES = 3
NAN, UTC = float("nan"), ZoneInfo("UTC")

Values = list[Any]
SEQUENCES: dict[str, tuple[pa.DataType, Values]] = {
    "bigint": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "tinyint": (pa.int8(), [-128, -1, 0, 1, 127]),
    "decimal": (
        pa.decimal128(38, 2),
        [Decimal(n) for n in (f"-{10**35}.00", "-0.05", "0.00", "0.09", f"{10**35}.01")],
    ),
    "string": (pa.string(), ["", "1", "10", "9", "\U0001f600", "\uffff"]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(2026, 1, 1), date(9999, 12, 31)]),
    "timestamp": (pa.timestamp("us"), [datetime(2026, 1, 1, 0, 0, 0, n) for n in (0, 1, 1000, 999_999)]),
    "timestamp_ltz": (
        pa.timestamp("us", "UTC"),
        [datetime(y, 1, 1, tzinfo=UTC) for y in (1, 1960, 2026, 9999)],
    ),
}
COLUMNS: dict[str, tuple[pa.DataType, Values]] = {
    **SEQUENCES,
    "double": (pa.float64(), [NAN, 0.0, 1.5]),
    "binary": (pa.binary(), [b"", b"\0", b"\xff"]),
    "boolean": (pa.bool_(), [True, False]),
    "array": (pa.list_(pa.int64()), [[], [1], [1, None], [None, 1]]),
}
KEYS: list[tuple[str, ...]] = [("bigint",), ("string",), ("bigint", "string"), ("decimal", "date", "binary")]

Step = tuple[str, int, int, int | None, int]
"""A kind, and the places of a key, of a sequence and of a value among those of their types, and a batch."""
STEP = st.tuples(
    st.sampled_from(["+I", "+U", "-D"]),
    st.integers(0, 5),
    st.integers(0, 5),
    st.none() | st.integers(0, 3),
    st.integers(0, BATCHES - 1),
)
STEPS = st.lists(STEP, max_size=30)


class Drawn:
    """The changes of a history with columns of these types."""

    def __init__(
        self, key: Sequence[str], sequence: str, values: Sequence[str], target: DeltaTarget = TARGET
    ) -> None:
        assert target.history is not None
        self.system = target.history.system_columns
        self.key = tuple(f"k{n}" for n in range(len(key)))
        self.types = {name: COLUMNS[kind] for name, kind in zip(self.key, key, strict=True)}
        self.values = tuple(f"v{n}" for n in range(len(values)))
        self.types |= {name: COLUMNS[kind] for name, kind in zip(self.values, values, strict=True)}
        self.types["s"] = SEQUENCES[sequence]
        own = self.types | {name: self.types["s"] for name in ("valid_from", "valid_to")}
        self.schema = pa.schema(
            [
                *((name, kind) for name, (kind, _) in own.items()),
                ("is_current", pa.bool_()),
                *((name, pa.timestamp("us", "UTC")) for name in self.system),
            ]
        )

    def change(self, step: Step) -> Change:
        kind, k, s, v, _ = step
        drawn = {
            name: chosen(values, k if name in self.key else s) for name, (_, values) in self.types.items()
        }
        if self.types[self.key[0]][0] != pa.int64():
            drawn[self.key[0]] = None if k == 0 else drawn[self.key[0]]
        for name in self.values:
            drawn[name] = None if v is None else chosen(self.types[name][1], v)
        key = tuple(drawn[name] for name in self.key)
        row = None if kind == "-D" else {name: drawn[name] for name in (*self.values, "s")}
        return Change(RowKind(kind), key, row, (), (drawn["s"],))

    def arrow(self, changes: Sequence[Change]) -> pa.Table:
        schema = pa.schema([*(f for f in self.schema if f.name in self.types), (KIND, pa.string())])
        return pa.Table.from_pylist(
            [
                {
                    **dict(zip(self.key, key_of(c.key), strict=True)),
                    "s": c.sequence[0],
                    KIND: c.kind.value,
                    **(c.row or {}),
                }
                for c in changes
            ],
            schema=schema,
        )

    def expected(self, changes: Sequence[Change]) -> list[str]:
        rows = [
            {**dict(zip(self.key, key_of(key), strict=True)), **row.row, **validity(row)}
            for key, found in intervals(changes).items()
            for row in found
        ]
        return self.shown(rows)

    def shown(self, rows: Iterable[dict[str, Any]]) -> list[str]:
        """The rows as texts, in order, without system times."""
        names = [name for name in self.schema.names if name not in self.system]
        return sorted(repr([row[name] for name in names]) for row in rows)

    def known(self, rows: Iterable[dict[str, Any]], at: datetime) -> list[str]:
        """Those that were known at that system time."""
        since, until = self.system
        return self.shown(r for r in rows if r[since] <= at and (r[until] is None or at < r[until]))

    def batches(self, steps: Sequence[Step]) -> list[list[Change]]:
        """The changes in batches, in which changes of the same key and sequence keep their order."""
        batches, batch_of = [list[Change]() for _ in range(BATCHES)], dict[Any, int]()
        for step in steps:
            made = self.change(step)
            at = batch_of[made.key, made.sequence] = max(step[4], batch_of.get((made.key, made.sequence), 0))
            batches[at].append(made)
        return batches


def chosen(values: Values, place: int) -> Any:
    return values[place % len(values)]


def validity(row: Any) -> dict[str, Any]:
    return dict(zip(HISTORY.columns, (row.start, row.end, row.end is None), strict=True))


def folded(changes: Sequence[Change]) -> list[Change]:
    """The last change of each key and sequence, as a stage before this one leaves it."""
    return list({(c.key, c.sequence): c for c in changes}.values())


def key_of(key: Any) -> tuple[Any, ...]:
    assert isinstance(key, tuple)
    return key
