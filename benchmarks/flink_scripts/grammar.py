"""Scripts drawn by a seed: joins, unions, views, functions, filters, aggregates, Top-N and windows over the sources, in
combinations that nobody chose."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.flink_scripts.calls import drawn_call
from benchmarks.flink_scripts.cases import Case, Insert

_Columns = Sequence[tuple[str, str]]
"""Names with types."""


@dataclass(frozen=True)
class _Rows:
    """What a query reads: FROM and WHERE, and columns with their types to group by and to compute with."""

    source: str
    groups: _Columns
    values: _Columns


def drawn_cases(seed: int, count: int) -> list[Case]:
    """So many scripts, each with one or two INSERTs."""
    draw = random.Random(f"scripts {seed}")
    return [_case(draw, f"d{seed}_{number}") for number in range(count)]


_Table = tuple[str, _Columns, _Columns, Sequence[str]]
"""Name with alias, columns to group by, columns to compute with, conditions."""
_FROM: Sequence[_Table] = (
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


_TIMES = {"users": "u.since", "orders": "o.placed", "visits": "v.ts", "clicks": "c.ts"}


def _case(draw: random.Random, name: str) -> Case:
    if draw.random() < 0.15:
        return Case(name, "drawn", (_windowed(draw, name),))
    chosen = sorted(draw.sample(range(len(_FROM)), draw.choice([1, 2, 2, 2, 3])))
    draw.shuffle(chosen)
    tables = [_FROM[number] for number in chosen]
    adds_only = all(table[0] in _ADDING for table in tables)
    is_united = len(tables) > 1 and draw.random() < 0.25
    shapes = [*_SHAPES, _added] if adds_only else _SHAPES
    if is_united and not adds_only:
        shapes = [shape for shape in shapes if shape is not _changes]  # such rows have no key
    found = [draw.choice(shapes) for _ in range(draw.choice([1, 1, 1, 2]))]
    rows = _united(draw, tables) if is_united else _read(draw, tables, is_inner=_added in found)
    views = []
    if draw.random() < 0.25:
        rows, view = _viewed(name, rows)
        views.append(view)
    inserts = [shape(draw, f"{name}{letter}", rows) for shape, letter in zip(found, ("", "b"), strict=False)]
    is_set = len(inserts) > 1 and draw.random() < 0.5
    return Case(name, "drawn", tuple(inserts), tuple(views), is_set=is_set)


def _read(draw: random.Random, tables: Sequence[_Table], *, is_inner: bool) -> _Rows:
    """Rows of one table, or of a join of several."""
    kinds = ["JOIN", ","] if is_inner else ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ","]
    source, conditions = _joined(draw, [table[0] for table in tables], kinds)
    groups = [column for table in tables for column in table[1]]
    values = [column for table in tables for column in table[2]]
    conditions += [draw.choice(table[3]) for table in tables if draw.random() < 0.4]
    times = [(_TIMES[table[0].split()[0]], "TIMESTAMP(3)") for table in tables]
    columns = [*groups, *values, *times]
    if draw.random() < 0.2:
        conditions.append(f"CHAR_LENGTH({drawn_call(draw, columns)}) > 2")
    if draw.random() < 0.6:
        groups.append((drawn_call(draw, columns), "STRING"))
    if draw.random() < 0.6:
        values.append((drawn_call(draw, columns), "STRING"))
    where = f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
    return _Rows(source + where, groups, values)


def _united(draw: random.Random, tables: Sequence[_Table]) -> _Rows:
    """UNION ALL of several tables."""
    parts = []
    for table in tables:
        one = _read(draw, [table], is_inner=True)
        group, value, number = (
            draw.choice(one.groups)[0],
            draw.choice(one.values)[0],
            draw.choice(table[2])[0],
        )
        select = (
            f"CAST({group} AS STRING) AS w0, CAST({value} AS STRING) AS w1, CAST({number} AS BIGINT) AS w2"
        )
        parts.append(f"SELECT {select} FROM {one.source}")
    source = f"({' UNION ALL '.join(parts)}) AS w"
    return _Rows(source, (("w.w0", "STRING"), ("w.w1", "STRING")), (("w.w2", "BIGINT"), ("w.w1", "STRING")))


def _viewed(name: str, rows: _Rows) -> tuple[_Rows, str]:
    """The same rows from a view."""
    every = list(dict.fromkeys([*rows.groups, *rows.values]))
    names = {column: f"y{number}" for number, (column, _) in enumerate(every)}
    listed = ", ".join(f"{column} AS {new}" for column, new in names.items())
    groups, values = ([(names[c], type) for c, type in columns] for columns in (rows.groups, rows.values))
    return _Rows(
        f"{name}_view", groups, values
    ), f"CREATE VIEW {name}_view AS SELECT {listed} FROM {rows.source}"


def _joined(draw: random.Random, tables: list[str], kinds: Sequence[str]) -> tuple[str, list[str]]:
    """FROM, and the conditions of comma joins."""
    text, conditions = tables[0], list[str]()
    for at, table in enumerate(tables[1:], 1):
        before = draw.choice(tables[:at])
        names = [one.split()[0] for one in (before, table)]
        on = _ON.get((names[0], names[1])) or _ON[names[1], names[0]]
        kind = draw.choice([k for k in kinds if not conditions or k not in ("RIGHT JOIN", "FULL JOIN")])
        text += f", {table}" if kind == "," else f" {kind} {table} ON {on}"
        if kind == ",":
            conditions.append(on)
    return text, conditions


def _keys(draw: random.Random, groups: _Columns) -> tuple[list[str], list[str]]:
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
                *(() if type == "STRING" else _of_numbers(column, type)),
            ]
        )
        found.append(what)
        columns.append(f"a{number} {result}")
    having = draw.choice(["", "", " HAVING COUNT(*) > 1"])
    query = f"SELECT {', '.join([*keys, *found])} FROM {rows.source} GROUP BY {', '.join(keys)}{having}"
    return Insert(name, ", ".join(columns), query, _key_names(keys))


def _of_numbers(column: str, type: str) -> _Columns:
    return (
        (f"SUM({column})", "DECIMAL(38, 2)" if type.startswith("DECIMAL") else type),
        (f"COUNT(*) FILTER (WHERE {column} > 20)", "BIGINT"),
    )


def _nulls(draw: random.Random, name: str, rows: _Rows) -> Insert:
    """Groups whose columns may be NULL, for a sink without a key."""
    chosen = draw.sample(list(rows.groups), draw.choice([1, 2]))
    column, type = draw.choice(list(rows.values))
    columns = [f"k{number} {type}" for number, (_, type) in enumerate(chosen)]
    keys = ", ".join(key for key, _ in chosen)
    query = (
        f"SELECT {keys}, COUNT(*), MAX({column}), COUNT(DISTINCT {column}) FROM {rows.source} GROUP BY {keys}"
    )
    declared = ", ".join([*columns, "n BIGINT", f"high {type}", "different BIGINT"])
    return Insert(name, declared, query, format="debezium-json")


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
        [("visits", "page"), ("visits", "note"), ("clicks", "page"), ("clicks", "target"), ("hits", "target")]
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
_SHAPES = [_aggregate, _aggregate, _aggregate, _nulls, _distinct, _top, _nested, _changes]


def _key_names(keys: Sequence[str]) -> str:
    return ", ".join(f"k{number}" for number in range(len(keys)))
