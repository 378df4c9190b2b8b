"""A window table function in FROM: the columns of its table, and `window_start`, `window_end` and `window_time`.

TUMBLE gives each row one window, HOP and CUMULATE several. As in Flink, windows begin at 1970-01-01 plus OFFSET, the
bounds are TIMESTAMP(3), and `window_time` is the last millisecond of a window. Times are computed in UTC, the time zone
of the sessions in which scripts run.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp, parse_one

from bridge.ddl.dialect import Flink
from bridge.ddl.part import unsupported
from bridge.schema import DataType, ScalarType
from bridge.sql.relation import QueryColumn, Relation
from bridge.sql.statements import WindowCall, WindowFunction
from bridge.sql.tree import QueryTree, column_term
from bridge.sql.window import Window, WindowInput, WindowSpan

COLUMNS = ("window_start", "window_end", "window_time")
AFTER, UNTIL = "windows_after", "windows_until"
"""Session variables that the Spark SQL reads, epoch milliseconds: a refresh computes the windows that end after the
one, and not after the other. (Delta's parser ignores named parameters of a query in Spark 4.1.)"""

_MARK = "CLOSED_WINDOWS"
"""Stands for a condition until it is known whether the rows of the query come when their windows close."""
_BOUND = ScalarType("TIMESTAMP", (3,), nullable=False)


def window_table(
    tree: QueryTree, call: WindowCall, rows: Relation, query: exp.Query
) -> tuple[Relation, exp.Select]:
    """Returns the relation of a call, and its Spark SQL; `rows` and `query` are those of its table.

    Raises DdlError for a column that is not the one of a WATERMARK, UnsupportedError for windows of `window_time`.
    """
    column = _time_column(tree, call, rows)
    known = _BOUND.name if column.type is None else getattr(column.type, "name", "")
    time = ScalarType(known, (3,), nullable=False)
    columns = (*rows.columns, *_columns(time))
    start, end = len(rows.columns), len(rows.columns) + 1
    assert column.event_time is not None
    window = Window(
        column_term(start),
        column_term(end),
        column_term(end + 1),
        call.size_ms,
        start_is_unique=call.function is not WindowFunction.CUMULATE,
        inputs=(WindowInput(column.event_time, _counts(call, query), _span(call)),),
    )
    relation = replace(
        rows,
        columns=columns,
        # TUMBLE keeps the keys; of the other functions a row has several windows.
        keys=frozenset(
            [key if call.function is WindowFunction.TUMBLE else key | {column_term(end)} for key in rows.keys]
        ),
        window=window,
    )
    return relation, _spark(call, rows, query, time, is_derived=column.type is None)


def settle_windows(query: exp.Expr, *, is_closed: bool) -> None:
    """Resolves the conditions on windows in place: only closed ones are computed, or all rows count at once."""
    for mark in list(query.find_all(exp.Anonymous)):
        if mark.name == _MARK:
            mark.replace(mark.expressions[0] if is_closed else exp.true())


def _time_column(tree: QueryTree, call: WindowCall, rows: Relation) -> QueryColumn:
    source, name = tree.source, call.column
    column = next((c for c in rows.columns if c.name == name.text), None)
    known = ", ".join(f"`{c.name}`" for c in rows.columns if c.event_time) or "none"
    if column is None:
        raise source.error(
            f"`{call.table.text}` has no column `{name.text}`; its columns with a WATERMARK: {known}",
            name.start,
        )
    if rows.window is not None:
        raise unsupported(
            source,
            f"a window over rows of windows (`{call.table.text}`)",
            "write the inner windows into a table with one INSERT, declare WATERMARK FOR window_time AS window_time in "
            "it, and read it with another INSERT",
            call.start,
        )
    if column.event_time is None:
        type = "a type that Spark derives" if column.type is None else column.type.flink()
        raise source.error(
            f"The window function requires the timecol is a time attribute type, but `{name.text}` is {type} without "
            f"one; declare WATERMARK FOR {name.text} AS {name.text} in its table. Columns with a WATERMARK: {known}",
            name.start,
        )
    twin = next((c.name for c in rows.columns if c.name.casefold() in COLUMNS), None)
    if twin is not None:
        raise source.error(
            f"`{call.table.text}` has a column `{twin}`, which {call.function.value} adds; rename it in a view",
            call.table.start,
        )
    return column


def _columns(time: ScalarType) -> tuple[QueryColumn, ...]:
    types: tuple[DataType, ...] = (_BOUND, _BOUND, time)
    return tuple(QueryColumn(name, type) for name, type in zip(COLUMNS, types, strict=True))


def _event(call: WindowCall) -> str:
    """The time of a row in microseconds since 1970."""
    column = exp.column(call.column.text, quoted=True).sql("spark")
    message = (
        f"column {call.column.text} of {call.table.text} is NULL, and a row without a time belongs to no window; "
        "leave such rows out with WHERE ... IS NOT NULL in a view"
    )
    message = message.replace("'", "''")
    return f"UNIX_MICROS(CAST(COALESCE({column}, RAISE_ERROR('{message}')) AS TIMESTAMP))"


def _start(call: WindowCall, event: str, step_us: int) -> str:
    """The start of the last window of this length that begins at or before `event`."""
    return f"{event} - PMOD({event} - {call.offset_ms * 1000}L, {step_us}L)"


def _spark(
    call: WindowCall, rows: Relation, query: exp.Query, time: ScalarType, *, is_derived: bool
) -> exp.Select:
    size, step = call.size_ms * 1000, call.step_ms * 1000
    event = "`__event`"
    if call.function is WindowFunction.TUMBLE:
        start, end = _start(call, event, size), f"`__bound` + {size}L"
    elif call.function is WindowFunction.HOP:
        last = _start(call, event, step)
        start, end = f"EXPLODE(SEQUENCE({last} - {size - step}L, {last}, {step}L))", f"`__bound` + {size}L"
    else:
        base = _start(call, event, size)
        first = f"{base} + (({event} - ({base})) DIV {step}L + 1L) * {step}L"
        start = f"EXPLODE(SEQUENCE({first}, {base} + {size}L, {step}L))"
        end = "`__bound`"
    if call.function is WindowFunction.CUMULATE:
        begin = f"`__bound` - 1L - PMOD(`__bound` - 1L - {call.offset_ms * 1000}L, {size}L)"
    else:
        begin = "`__bound`"
    names = ", ".join(exp.column(c.name, quoted=True).sql("spark") for c in rows.columns)
    column = exp.column(call.column.text, quoted=True).sql("spark")
    # Files are skipped by the column itself only.
    read = f"CAST({column} AS {time.spark()})" if is_derived else column
    after, until = (f"CAST(TIMESTAMP_MILLIS({_variable(name)}) AS {time.spark()})" for name in (AFTER, UNTIL))
    is_read = f"{read} >= {after} - INTERVAL '{_seconds(call.size_ms)}' SECOND AND {read} < {until}"
    after, until = (f"CAST(TIMESTAMP_MILLIS({_variable(name)}) AS TIMESTAMP_NTZ)" for name in (AFTER, UNTIL))
    is_asked = f"`window_end` > {after} AND `window_end` <= {until}"
    text = (
        f"SELECT {names}, `window_start`, `window_end`, "
        f"CAST(`window_end` - INTERVAL '0.001' SECOND AS {time.spark()}) AS `window_time` FROM ("
        f"SELECT *, CAST(TIMESTAMP_MICROS({begin}) AS TIMESTAMP_NTZ) AS `window_start`, "
        f"CAST(TIMESTAMP_MICROS({end}) AS TIMESTAMP_NTZ) AS `window_end` FROM ("
        f"SELECT *, {start} AS `__bound` FROM (SELECT *, {_event(call)} AS `__event` FROM `__rows` AS `rows` "
        f"WHERE {_MARK}({is_read})) AS `timed`) AS `bound`) AS `windows` WHERE {_MARK}({is_asked})"
    )
    return _with_rows(text, query)


def _span(call: WindowCall) -> WindowSpan:
    step_ms = call.step_ms if call.function is WindowFunction.HOP else call.size_ms
    return WindowSpan(call.size_ms, step_ms, call.offset_ms)


def _counts(call: WindowCall, query: exp.Query) -> exp.Select:
    column = exp.column(call.column.text, quoted=True).sql("spark")
    step = _span(call).step_ms
    event = f"UNIX_MICROS(CAST({column} AS TIMESTAMP))"
    end = f"TIMESTAMP_MICROS({_start(call, event, step * 1000)} + {call.size_ms * 1000}L)"
    text = (
        f"SELECT COUNT_IF({end} <= TIMESTAMP_MILLIS({_variable(AFTER)})) AS `late`, "
        f"COUNT_IF({column} IS NULL) AS `timeless` FROM `__rows` AS `rows`"
    )
    return _with_rows(text, query.copy())


def _with_rows(text: str, query: exp.Query) -> exp.Select:
    select = parse_one(text, read=Flink)
    assert isinstance(select, exp.Select)
    rows = next(table for table in select.find_all(exp.Table) if table.name == "__rows")
    alias = exp.TableAlias(this=exp.to_identifier("rows", quoted=True))
    rows.replace(exp.Subquery(this=query, alias=alias))
    return select


def _variable(name: str) -> str:
    return f"`system`.`session`.`{name}`"


def _seconds(ms: int) -> str:
    return f"{ms // 1000}.{ms % 1000:03d}"
