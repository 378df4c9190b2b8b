"""Scripts drawn by a seed: joins, filters, aggregates, Top-N and windows over the sources, in combinations that nobody
chose."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.flink_scripts.cases import Case, Insert

__all__ = ["drawn_cases"]


@dataclass(frozen=True)
class _Rows:
    """What a query reads: FROM and WHERE, and columns with their types to group by and to compute with."""

    source: str
    groups: Sequence[tuple[str, str]]
    values: Sequence[tuple[str, str]]


def drawn_cases(seed: int, count: int) -> list[Case]:
    """So many scripts, each with one INSERT."""
    draw = random.Random(f"scripts {seed}")
    return [_case(draw, f"d{seed}_{number}") for number in range(count)]


_FROM: Sequence[tuple[str, Sequence[tuple[str, str]], Sequence[tuple[str, str]], Sequence[str]]] = (
    (
        "users u",
        (("u.region", "STRING"), ("u.name", "STRING"), ("u.score", "INT")),
        (("u.score", "INT"), ("u.id", "BIGINT")),
        (
            "u.score > 2",
            "u.name <> 'ann'",
            "u.region IS NOT NULL",
            "u.since > TIMESTAMP '2026-11-20 00:00:00'",
        ),
    ),
    (
        "orders o",
        (("o.status", "STRING"), ("o.user_id", "BIGINT")),
        (("o.amount", "DECIMAL(10, 2)"), ("o.id", "BIGINT")),
        (
            "o.amount > 50",
            "o.status IN ('new', 'paid')",
            "o.user_id BETWEEN 3 AND 40",
            "o.amount IS NULL OR o.id > 20",
        ),
    ),
    (
        "visits v",
        (("v.page", "INT"), ("v.user_id", "BIGINT"), ("v.note", "STRING")),
        (("v.price", "BIGINT"), ("v.page", "INT")),
        ("v.price > 110", "v.note LIKE '%b%'", "v.user_id IS NOT NULL", "MOD(v.page, 2) = 0"),
    ),
    (
        "clicks c",
        (("c.page", "INT"), ("c.target", "STRING")),
        (("c.user_id", "BIGINT"), ("c.page", "INT")),
        ("c.target = 'buy'", "c.page > 1", "c.user_id < 50"),
    ),
)
_ON = {
    ("users", "orders"): "u.id = o.user_id",
    ("users", "visits"): "u.id = v.user_id",
    ("users", "clicks"): "u.id = c.user_id",
    ("orders", "visits"): "o.user_id = v.user_id",
    ("orders", "clicks"): "o.user_id = c.user_id",
    ("visits", "clicks"): "v.user_id = c.user_id AND v.page = c.page",
}


def _case(draw: random.Random, name: str) -> Case:
    if draw.random() < 0.15:
        return Case(name, "drawn", (_windowed(draw, name),))
    chosen = sorted(draw.sample(range(len(_FROM)), draw.choice([1, 2, 2, 2, 3])))
    draw.shuffle(chosen)
    tables = [_FROM[number] for number in chosen]
    adds_only = all(table[0] in _ADDING for table in tables)
    shape = draw.choice([*_SHAPES, _added] if adds_only else _SHAPES)
    kinds = ["JOIN", ","] if shape is _added else ["JOIN", "JOIN", "LEFT JOIN", ","]
    source, conditions = _joined(draw, [table[0] for table in tables], kinds)
    conditions += [draw.choice(table[3]) for table in tables if draw.random() < 0.4]
    where = f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
    groups = [column for table in tables for column in table[1]]
    values = [column for table in tables for column in table[2]]
    return Case(name, "drawn", (shape(draw, name, _Rows(source + where, groups, values)),))


def _joined(draw: random.Random, tables: list[str], kinds: Sequence[str]) -> tuple[str, list[str]]:
    """FROM, and the conditions of comma joins."""
    text, conditions = tables[0], []
    for at, table in enumerate(tables[1:], 1):
        before = draw.choice(tables[:at])
        names = [one.split()[0] for one in (before, table)]
        on = _ON.get((names[0], names[1])) or _ON[names[1], names[0]]
        kind = draw.choice(kinds)
        text += f", {table}" if kind == "," else f" {kind} {table} ON {on}"
        if kind == ",":
            conditions.append(on)
    return text, conditions


def _keys(draw: random.Random, groups: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Columns of a sink's key, and their values, which are never NULL: a PRIMARY KEY takes none."""
    chosen = draw.sample(list(groups), draw.choice([1, 1, 2]) if len(groups) > 1 else 1)
    columns = [f"k{number} {type}" for number, (_, type) in enumerate(chosen)]
    return columns, [_not_null(column, type) for column, type in chosen]


def _not_null(column: str, type: str) -> str:
    return f"COALESCE({column}, '-')" if type == "STRING" else f"COALESCE({column}, -1)"


def _aggregate(draw: random.Random, name: str, rows: _Rows) -> Insert:
    columns, keys = _keys(draw, rows.groups)
    found = []
    for number in range(draw.randrange(1, 4)):
        column, type = draw.choice(list(rows.values))
        what, result = draw.choice(
            [
                ("COUNT(*)", "BIGINT"),
                (f"COUNT({column})", "BIGINT"),
                (f"COUNT(DISTINCT {column})", "BIGINT"),
                (f"MIN({column})", type),
                (f"MAX({column})", type),
                (f"SUM({column})", "DECIMAL(38, 2)" if type.startswith("DECIMAL") else type),
                (f"COUNT(*) FILTER (WHERE {column} > 20)", "BIGINT"),
            ]
        )
        found.append(what)
        columns.append(f"a{number} {result}")
    having = draw.choice(["", "", " HAVING COUNT(*) > 1"])
    query = f"SELECT {', '.join([*keys, *found])} FROM {rows.source} GROUP BY {', '.join(keys)}{having}"
    return Insert(name, ", ".join(columns), query, _key_names(keys))


def _distinct(draw: random.Random, name: str, rows: _Rows) -> Insert:
    columns, keys = _keys(draw, rows.groups)
    return Insert(
        name, ", ".join(columns), f"SELECT DISTINCT {', '.join(keys)} FROM {rows.source}", _key_names(keys)
    )


def _top(draw: random.Random, name: str, rows: _Rows) -> Insert:
    columns, keys = _keys(draw, rows.groups)
    rank = [column for column, _ in draw.sample(list(rows.values), min(2, len(rows.values)))]
    types = dict(rows.values)
    order = ", ".join(f"{column} {draw.choice(['ASC', 'DESC'])}" for column in rank)
    inner = ", ".join(
        [*(f"{k} AS k{n}" for n, k in enumerate(keys)), *(f"{c} AS v{n}" for n, c in enumerate(rank))]
    )
    names = [f"k{n}" for n in range(len(keys))] + [f"v{n}" for n in range(len(rank))]
    parts = ", ".join(column for column in keys)
    declared = [*columns, *(f"v{n} {types[c]}" for n, c in enumerate(rank)), "place BIGINT"]
    query = (
        f"SELECT {', '.join(names)}, place FROM (SELECT {inner}, ROW_NUMBER() OVER (PARTITION BY {parts} "
        f"ORDER BY {order}) AS place FROM {rows.source}) AS r WHERE place <= {draw.choice([1, 3])}"
    )
    return Insert(name, ", ".join(declared), query, f"{_key_names(keys)}, place")


def _nested(draw: random.Random, name: str, rows: _Rows) -> Insert:
    _, keys = _keys(draw, rows.groups)
    column, _ = draw.choice(list(rows.values))
    inner = f"SELECT COUNT({column}) AS n FROM {rows.source} GROUP BY {', '.join(keys)}"
    return Insert(name, "n BIGINT, groups_ BIGINT", f"SELECT n, COUNT(*) FROM ({inner}) AS g GROUP BY n", "n")


def _added(draw: random.Random, name: str, rows: _Rows) -> Insert:
    """Rows for a sink that only takes rows, of tables that only get rows."""
    chosen = draw.sample([*rows.groups, *rows.values], 3)
    columns = ", ".join(f"c{number} {type}" for number, (_, type) in enumerate(chosen))
    return Insert(name, columns, f"SELECT {', '.join(column for column, _ in chosen)} FROM {rows.source}")


def _changes(draw: random.Random, name: str, rows: _Rows) -> Insert:
    """Rows that are updated, for a sink without a key."""
    return replace(_added(draw, name, rows), format="debezium-json")


def _windowed(draw: random.Random, name: str) -> Insert:
    table, column = draw.choice(
        [("visits", "page"), ("visits", "note"), ("clicks", "page"), ("clicks", "target")]
    )
    seconds = draw.choice([5, 7, 10])
    call = draw.choice(
        [
            f"TUMBLE(TABLE {table}, DESCRIPTOR(ts), INTERVAL '{seconds}' SECOND)",
            f"HOP(TABLE {table}, DESCRIPTOR(ts), INTERVAL '{seconds}' SECOND, INTERVAL '{3 * seconds}' SECOND)",
            f"CUMULATE(TABLE {table}, DESCRIPTOR(ts), INTERVAL '{seconds}' SECOND, INTERVAL '{4 * seconds}' SECOND)",
        ]
    )
    type = "INT" if column == "page" else "STRING"
    query = (
        f"SELECT window_start, window_end, {column}, COUNT(*), COUNT(DISTINCT user_id) FROM TABLE({call}) "
        f"GROUP BY window_start, window_end, {column}"
    )
    declared = f"s TIMESTAMP(3), e TIMESTAMP(3), c {type}, n BIGINT, users BIGINT"
    return Insert(name, declared, query)


_ADDING = ("visits v", "clicks c")
_SHAPES = [_aggregate, _aggregate, _aggregate, _distinct, _top, _nested, _changes]


def _key_names(keys: Sequence[str]) -> str:
    return ", ".join(f"k{number}" for number in range(len(keys)))
