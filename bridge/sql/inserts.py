"""Plans the INSERTs, views and EXPLAINs of a script against its catalogue.

A plan says by which columns a result is computed in parts, or merged with that of new rows, and what a refresh must
know of its windows. For AVG over rows that are only added, a result keeps the sum and the count in columns of its own,
which no topic gets: an average does not say of how many. They are merged like any SUM and COUNT, and the average is
computed from them by the expression of the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from bridge.ddl.part import unsupported
from bridge.ddl.tokens import Source
from bridge.definition import BadRecords
from bridge.expressions.precision import cuts
from bridge.expressions.type_rules import INTEGERS
from bridge.expressions.typed import type_of
from bridge.schema import DataType, ScalarType
from bridge.sql.accumulators import KEPT, Accumulator, Averages, counted_values, merged_columns
from bridge.sql.aggregates import Aggregate, aggregate_call
from bridge.sql.analysis import Analysed, Environment, refuse_reserved_aliases
from bridge.sql.connectors import Table
from bridge.sql.failing_rows import leave_out_failing
from bridge.sql.plain_aggregates import plain_aggregate
from bridge.sql.plan import (
    EventTime,
    InsertPlan,
    PartColumn,
    QueryKind,
    ResultColumn,
    SourceTable,
    StateTable,
    WindowPlan,
    fingerprint,
    joined_rows,
    words,
)
from bridge.sql.positions import select_positions
from bridge.sql.query import analyse
from bridge.sql.relation import Changes, Relation
from bridge.sql.row_key import PART, RowKey, add_row_key, can_have_row_key
from bridge.sql.scope import Catalogue, View
from bridge.sql.settings import ALLOW_LATENESS
from bridge.sql.sink import Result, fit_sink, no_key, own_part
from bridge.sql.statements import CreateView, Insert, Name, QueryText
from bridge.sql.sums import MORE_DIGITS, has_long_sum
from bridge.sql.tree import QueryTree, Substitute, name_columns, parse_query, spark_text
from bridge.sql.window import WindowSpan
from bridge.sql.window_tables import settle_windows


def plan_averages(select: exp.Query, accumulators: Mapping[str, Accumulator]) -> Averages | None:
    """Returns what a result keeps for its averages; None if it has none, or if Spark's type of a sum is not known.

    `select` is the translated aggregate with the names of the sink; it stays as it is.
    """
    names = [name for name, how in accumulators.items() if how is Accumulator.AVERAGE]
    if not names or not isinstance(select, exp.Select):
        return None
    query = select.copy()
    columns: dict[str, DataType] = {}
    values = {}
    for projection in list(query.expressions):
        if projection.alias not in names:
            continue
        value = projection.copy()
        for node in [node for node in value.walk() if aggregate_call(node) is not None]:
            aggregate = aggregate_call(node)
            assert aggregate is not None
            type = _type(query, aggregate)
            kept = f"{KEPT[aggregate.name == 'COUNT']}{projection.alias}"
            if type is None:
                return None
            columns[kept] = type
            name = exp.to_identifier(kept, quoted=True)
            total = exp.cast(node.copy(), type.spark(), dialect="spark")
            query.append("expressions", exp.alias_(total, name.copy(), copy=False))
            node.replace(exp.Column(this=name))
        values[projection.alias] = spark_text(value.unalias())
    return Averages(tuple(columns.items()), spark_text(query), values)


def _type(select: exp.Select, aggregate: Aggregate) -> ScalarType | None:
    """The type that Spark gives a SUM or COUNT. A sum of another one would be divided with other digits."""
    if aggregate.name == "COUNT":
        return ScalarType("BIGINT")
    argument = aggregate.arguments[0]
    type = type_of(argument)
    if not isinstance(type, ScalarType):
        return None
    if type.name in INTEGERS:
        return ScalarType("BIGINT")
    source = select.args.get("from_")
    is_stored = isinstance(argument, exp.Column) and source is not None and isinstance(source.this, exp.Table)
    if type.name != "DECIMAL" or not (is_stored or isinstance(argument, exp.Cast)):
        return None
    precision, scale = type.parameters  # at most LONGEST: sums of more digits are not merged
    return ScalarType("DECIMAL", (precision + MORE_DIGITS, scale))


def result_parts(result: Result, analysed: Analysed) -> tuple[tuple[PartColumn, ...], str]:
    """Returns the columns of the key that have a distribution, so that little is computed again; else one column. Where
    no column has one, the groups of a join and the query that finds them."""
    known = [c.name for c in result.columns if c.name in result.distributions]
    # Rows to which a cast gives one key are compared where they are computed together.
    chosen = [name for name in known if name in result.key] or (known[:1] if result.keeps_keys else [])
    if chosen or analysed.groups is None:
        return tuple(PartColumn(name, tuple(sorted(result.distributions[name]))) for name in chosen), ""
    columns = analysed.groups.columns
    names = {i: result.uncast[i] for i in columns if i in result.uncast and result.uncast[i] in result.key}
    if not names:
        return (), ""
    parts = tuple(PartColumn(name, tuple(sorted(columns[i]))) for i, name in names.items())
    return parts, spark_text(analysed.groups.query(names))


def result_accumulators(result: Result, analysed: Analysed) -> dict[str, Accumulator]:
    """Those of an aggregate over rows that are only added, each of which belongs to one group.

    Over a join none that need rows before, or more than one column: a batch is several queries there."""
    operations = analysed.relation.operations
    if (
        not analysed.accumulators
        or not result.key
        or analysed.relation.is_windowed
        or set(operations[:-1]) - {"union", "join"}
        or has_long_sum(result.spark)
    ):
        return {}
    types = [column.type for column in analysed.relation.columns]
    found = merged_columns(analysed.accumulators, types, result.targets, result.uncast)
    if "join" not in operations:
        return found
    needs_more = Accumulator.AVERAGE in found.values() or counted_values(result.spark, result.key, found)
    return {} if needs_more else found


def plan_windows(
    relation: Relation, result: Result, tables: Sequence[Table], lateness_ms: int
) -> WindowPlan | None:
    """Returns the windows of a result; None if its rows do not come when windows close.

    `tables` are its sources, all of which have a WATERMARK then.
    """
    window = relation.window
    if window is None or not window.is_closed:
        return None
    by_name = {table.name: table for table in tables}
    counts = {read.table: spark_text(read.counts) for read in window.inputs}
    column, ends_after_ms = "", 0
    for term, after_ms in ((window.end, 0), (window.start, window.size_ms)):
        name = result.uncast.get(min(term), "") if term is not None else ""
        if name in result.key and not column:
            column, ends_after_ms = name, after_ms
    spans = {name: tuple(read.span for read in window.inputs if read.table == name) for name in counts}
    times = tuple(_event_time(by_name[name], sql, spans[name]) for name, sql in counts.items())
    return WindowPlan(times, lateness_ms, column, ends_after_ms)


def _event_time(table: Table, late_sql: str, spans: tuple[WindowSpan, ...]) -> EventTime:
    watermark = table.ddl.schema.watermark
    assert watermark is not None
    delay_ms = round(watermark.delay_seconds * 1000)
    return EventTime(table.name, watermark.column, delay_ms, table.idle_timeout_ms, late_sql, spans)


def plan_view(statement: CreateView, catalogue: Catalogue, substitute: Substitute) -> View:
    """Analyses the query of a view. Raises DdlError for a list of columns that does not fit the query."""
    analysed, env = _analysed(statement.query, catalogue, substitute)
    relation = _renamed(statement.source, statement.columns, analysed)
    spelled = tuple(name.text.casefold() for name in statement.columns)
    query = words(statement.query.tokens, substitute)
    inherited = tuple(w for name in env.views for w in _view(catalogue, name).words)
    return View(
        statement.name.text,
        relation,
        analysed.spark,
        env.reads,
        (*inherited, *spelled, *query),
        env.positioned,
    )


def plan_query(query: QueryText, catalogue: Catalogue, substitute: Substitute) -> str:
    """Returns a query without a sink, which EXPLAIN shows, in Spark SQL."""
    analysed, _ = _analysed(query, catalogue, substitute)
    settle_windows(analysed.spark, is_closed=analysed.relation.is_windowed)
    return spark_text(analysed.spark)


def plan_insert(
    insert: Insert,
    catalogue: Catalogue,
    substitute: Substitute,
    before: Sequence[InsertPlan] = (),
    lateness_ms: int = 0,
    inserts: Sequence[Insert] = (),
    *,
    drops_nulls: bool = False,
    bad_records: BadRecords = BadRecords.FAIL,
) -> InsertPlan:
    """Plans one INSERT; `before` are the plans of those before it, of which it needs the names, and `inserts` are all
    INSERTs of the script. Rows that are at most `lateness_ms` late still count in windows. `drops_nulls` leaves out
    rows with NULL in a column of the sink that is NOT NULL or in its key. Rows for which the query fails are left out
    unless `bad_records` is `fail`.

    Raises DdlError and UnsupportedError with line and column for a query that is not supported or does not fit its
    sink, for a sink that is a source of the same query, and for a sink with a key that has another INSERT, unless each
    writes columns of its own.
    """
    sink = catalogue.sink(insert.source, insert.sink)
    _refuse_second(insert, sink, before)
    part = own_part(insert, sink, inserts)
    sink = part or sink
    analysed, env = _analysed(insert.query, catalogue, substitute)
    relation = analysed.relation
    if relation.is_windowed and lateness_ms:
        late = Changes("update and delete", f"WindowAggregate (SET '{ALLOW_LATENESS}')")
        relation = replace(relation, changes=late)
        analysed = replace(analysed, relation=relation)
    if sink.name in env.reads:
        raise insert.source.error(
            f"`{sink.name}` is read and written by the same INSERT, which would feed itself; write to another table",
            insert.sink.start,
        )
    tree = env.tree
    result = fit_sink(insert, sink, analysed, tree)
    tables = [table for table in catalogue.tables() if table.name in env.reads]
    stop = bad_records is BadRecords.FAIL
    by_name = {table.name: table for table in tables}
    # Watermarks need the partitions of records, so the states of windows have their positions.
    inputs = relation.window.inputs if relation.window is not None and relation.is_windowed else ()
    positioned = {*env.positioned, *(read.table for read in inputs if by_name[read.table].topic is not None)}
    failing = leave_out_failing(
        result.spark, by_name, positioned, stop=stop, is_windowed=relation.is_windowed
    )
    if analysed.groups is not None:
        leave_out_failing(analysed.groups.join, by_name, (), stop=stop)
    settle_windows(result.spark, is_closed=relation.is_windowed)
    parts, parts_sql = ((), "") if relation.is_windowed else result_parts(result, analysed)
    used = [
        tuple(name for name in table.ddl.schema.names if name in env.reads[table.name]) for table in tables
    ]
    sources = tuple(
        SourceTable(t.name, t.connector.value, t.place, t.key, names, t.is_updating)
        for t, names in zip(tables, used, strict=True)
    )
    row_key = RowKey()
    if result.is_updating and not result.key and can_have_row_key(sink, relation):
        is_whole = result.spark is analysed.spark and not parts
        by = analysed.join_column if is_whole else None
        found = add_row_key(result.spark, {table.name: table for table in tables}, by)
        if found is None:
            raise no_key(insert, sink, relation)
        row_key = found
        result = replace(result, key=tuple(name for name, _ in found.columns))
        parts = (PartColumn(PART, tuple(sorted(by.distribution))),) if by is not None else parts
    required = (
        [c.name for c in result.columns if c.name in sink.key or not c.type.nullable] if drops_nulls else []
    )
    accumulators = {} if required else result_accumulators(result, analysed)
    averages = plan_averages(result.spark, accumulators) if part is None and sink.delta is None else None
    if averages is None and Accumulator.AVERAGE in accumulators.values():
        # A Delta sink is the result, and its users would see what is kept.
        accumulators = {}
    windows = plan_windows(relation, result, tables, lateness_ms)
    if windows is not None and not windows.column and (lateness_ms or not result.keeps_keys):
        why = f"with '{ALLOW_LATENESS}'" if lateness_ms else "rows of different windows could get one key:"
        raise tree.error(
            f"{why} the sink's key has window_start or window_end, as TIMESTAMP(3) like in the query",
            tree.root,
        )
    is_added = bool(accumulators) or not result.is_updating
    is_joined = "join" in relation.operations and is_added and windows is None
    keeps_last = bool(result.key) and not result.is_updating and bool(sources) and windows is None
    if keeps_last:
        select_positions(insert, sink, result.spark, tables, tree)
    _refuse_unrunnable(insert, result, relation, sources, tree)
    query = [w for name in env.views for w in _view(catalogue, name).words]
    query += words(insert.query.tokens, substitute)
    target: list[object] = [
        [c.text for c in insert.columns],
        list(result.key),
        [[c.name, c.type.flink()] for c in result.columns],
    ]
    if required:
        target.append(["not null", *required])
    if cuts(result.spark):  # these digits were kept once
        target.append("cut")
    rows = _without_nulls(result.spark, required)
    return InsertPlan(
        name=_plan_name(sink.name, before),
        line=insert.line,
        sink=sink.name,
        kind=QueryKind(relation.operations[-1]) if relation.operations else QueryKind.PROJECTION,
        operations=relation.operations,
        columns=tuple(ResultColumn(c.name, c.type) for c in result.columns),
        key=result.key,
        row_key=tuple(ResultColumn(name, type) for name, type in row_key.kept),
        merge_columns=tuple(c.name for c in result.columns if c.name not in result.key) if part else (),
        is_updating=result.is_updating,
        keeps_last=keeps_last,
        keeps_keys=result.keeps_keys,
        positioned=(*env.positioned, *row_key.positioned, *(s.name for s in sources if keeps_last)),
        sources=sources,
        states=_states(relation, sources),
        views=tuple(env.views),
        parts=parts,
        parts_sql=parts_sql,
        accumulators=accumulators,
        averages=averages,
        counted_values=counted_values(result.spark, result.key, accumulators),
        plain=None if part else plain_aggregate(result.spark, result.key, accumulators),
        joined=joined_rows(rows, {s.name for s in sources}) if is_joined else None,
        spark_sql=spark_text(rows),
        failing=failing,
        windows=windows,
        fingerprint=fingerprint(query, tables, used, target, _watermarks(windows)),
    )


def _analysed(query: QueryText, catalogue: Catalogue, substitute: Substitute) -> tuple[Analysed, Environment]:
    tree = parse_query(query, substitute)
    refuse_reserved_aliases(tree)
    env = Environment(tree, catalogue)
    return analyse(tree.root, env), env


def _renamed(source: Source, columns: Sequence[Name], analysed: Analysed) -> Relation:
    relation = analysed.relation
    if columns and len(columns) != len(relation.columns):
        raise source.error(
            f"the view has {len(columns)} columns, and its query has {len(relation.columns)}",
            columns[0].start,
        )
    names = [c.text for c in columns] or list(relation.names)
    name_columns(analysed.spark, names)
    named = tuple(replace(c, name=n) for n, c in zip(names, relation.columns, strict=True))
    return replace(relation, columns=named)


def _without_nulls(query: exp.Query, names: Sequence[str]) -> exp.Query:
    """Returns the rows with values in all of these columns."""
    if not names:
        return query
    rows = query.subquery(exp.to_identifier("rows", quoted=True), copy=False)
    columns = [exp.column(name, table="rows", quoted=True) for name in names]
    return exp.select("*").from_(rows).where(*(c.is_(exp.null()).not_() for c in columns))


def _refuse_second(insert: Insert, sink: Table, before: Sequence[InsertPlan]) -> None:
    other = next((plan for plan in before if plan.sink == sink.name), None)
    if other is not None and sink.delta is not None and not sink.key:
        raise unsupported(
            insert.source,
            f"a second INSERT into the Delta table `{sink.name}`",
            "its commits carry the progress of one INSERT. Write one INSERT with UNION ALL",
            insert.sink.start,
        )


def _plan_name(sink: str, before: Sequence[InsertPlan]) -> str:
    number = sum(plan.sink == sink for plan in before) + 1
    return sink if number == 1 else f"{sink}-{number}"


def _states(relation: Relation, sources: Sequence[SourceTable]) -> tuple[StateTable, ...]:
    """Returns the sources whose rows are needed again: all of them if a row of the result depends on several rows.

    A projected or filtered row depends on the row of its own key only, so the result is all the state that it needs.
    """
    if not set(relation.operations) - {"union", "values"}:
        return ()
    return tuple(StateTable(s.name, s.key, s.columns) for s in sources)


def _refuse_unrunnable(
    insert: Insert, result: Result, relation: Relation, sources: Sequence[SourceTable], tree: QueryTree
) -> None:
    """Raises UnsupportedError for results whose rows cannot be kept."""
    if result.is_updating and not result.key:
        raise tree.unsupported(
            f"an aggregate without GROUP BY into `{insert.sink.text}`, which has no PRIMARY KEY",
            "select a constant beside it, and declare that column as PRIMARY KEY: SELECT 'all' AS id, COUNT(*) ...",
            tree.root,
        )
    if sources and not result.is_updating and "values" in relation.operations:
        raise tree.unsupported(
            "VALUES beside rows of a table that are only added",
            "write an INSERT INTO ... VALUES of its own",
            tree.root,
        )


def _watermarks(windows: WindowPlan | None) -> list[list[object]]:
    """What changes which rows of windows are late."""
    if windows is None:
        return []
    return [
        [windows.lateness_ms],
        *([time.source, time.column, time.delay_ms] for time in windows.event_times),
    ]


def _view(catalogue: Catalogue, name: str) -> View:
    entry = catalogue.entries[name]
    assert isinstance(entry, View)
    return entry
