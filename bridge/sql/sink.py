"""The end of an INSERT: its query must fit the columns, the types, the key and the changes of its sink.

Several INSERTs may write columns of one sink. In Flink the columns that a list leaves out are NULL, so of two such
INSERTs into one topic each would overwrite what the other has written, unless the table merges rows (`partial-update`
in Paimon). Here they always merge; docs/adr/041.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from bridge.config import refuse_unpublishable
from bridge.ddl.part import unsupported
from bridge.ddl.tokens import nearest
from bridge.errors import DdlError, OptionError
from bridge.expressions.precision import cut, loses_digits, spelled
from bridge.expressions.type_rules import TEXT, fits, is_unchanged, keeps_apart
from bridge.expressions.typed import adapt
from bridge.schema import BYTES, DataType, MetadataColumn, PhysicalColumn, ScalarType
from bridge.sql.aggregates import aggregate_call
from bridge.sql.analysis import Analysed
from bridge.sql.connectors import Connector, Table
from bridge.sql.relation import Distribution, QueryColumn, Relation
from bridge.sql.row_key import can_have_row_key
from bridge.sql.statements import Insert
from bridge.sql.tree import QueryTree, leftmost, name_columns

_SinkColumn = PhysicalColumn | MetadataColumn


@dataclass(frozen=True)
class Result:
    """The rows of an INSERT: the sink's columns, the key by which rows are replaced, and the query in Spark SQL."""

    columns: tuple[_SinkColumn, ...]
    key: tuple[str, ...]
    is_updating: bool
    spark: exp.Query
    distributions: Mapping[str, Distribution]
    """Those of the sink's columns that have the query's values as they are."""
    targets: tuple[str, ...]
    """The names of the sink's columns that have a value, by their place in the query."""
    uncast: Mapping[int, str]
    """The names of those that have the query's values as they are, by their place in the query."""
    keeps_keys: bool
    """Whether keys of the query that differ are keys that differ in the sink, too: no cast makes them equal."""


def fit_sink(insert: Insert, sink: Table, query: Analysed, tree: QueryTree) -> Result:
    """Checks the query against its sink; names and casts its columns in place.

    Raises DdlError with line and column, in Flink's words where it has them: for columns that are unknown, too many or
    too few, for types that do not fit, for updates into a sink that takes none, and for a key that is not the sink's.
    Raises OptionError for a topic that can only be read.
    """
    _refuse_unpublishable(insert, sink)
    targets = _targets(insert, sink)
    _check_columns(sink, targets, query, tree)
    key = _key(insert, sink, targets, query.relation)
    spark = _named(sink, targets, query)
    types = [c.type for c in query.relation.columns]
    distributions = {
        targets[min(term)].name: distribution
        for term, distribution in query.relation.distributions.items()
        if len(term) == 1 and is_unchanged(types[min(term)], targets[min(term)].type)
    }
    uncast = {i: target.name for i, target in enumerate(targets) if is_unchanged(types[i], target.type)}
    names = tuple(target.name for target in targets)
    is_updating = query.relation.changes is not None
    keeps = all(keeps_apart(types[i], t.type) for i, t in enumerate(targets) if t.name in key)
    return Result(sink.sink_columns, key, is_updating, spark, distributions, names, uncast, keeps)


def _refuse_unpublishable(insert: Insert, sink: Table) -> None:
    """Raises OptionError for a topic that can be read only: several topics, read-only metadata and the like."""
    if sink.topic is None:
        return
    try:
        refuse_unpublishable(sink.topic)
    except OptionError as error:
        at = insert.sink.start
        raise OptionError(str(insert.source.error(f"table `{sink.name}`: {error}", at))) from error


def _targets(insert: Insert, sink: Table) -> tuple[_SinkColumn, ...]:
    """Returns the column of the sink for each column of the query."""
    written = {c.name: c for c in sink.sink_columns}
    if not insert.columns:
        return sink.sink_columns
    source, targets = insert.source, []
    for name in insert.columns:
        if name.text in sink.ddl.schema.names and name.text not in written:
            raise source.error(
                f"column `{name.text}` is computed or VIRTUAL and cannot be written", name.start
            )
        if name.text not in written:
            raise source.error(
                f"`{sink.name}` has no column `{name.text}`; {nearest(name.text, written)}", name.start
            )
        if written[name.text] in targets:
            raise source.error(f"column `{name.text}` is named twice", name.start)
        targets.append(written[name.text])
    for column in sink.sink_columns:
        if column not in targets and (column.name in sink.key or not column.type.nullable):
            why = "is in the PRIMARY KEY" if column.name in sink.key else "is NOT NULL"
            raise source.error(
                f"column `{column.name}` of `{sink.name}` {why}, and the list of columns leaves it out; add it",
                insert.columns[0].start,
            )
    return tuple(targets)


def _check_columns(sink: Table, targets: Sequence[_SinkColumn], query: Analysed, tree: QueryTree) -> None:
    given = query.relation.columns
    if len(given) != len(targets):
        raise tree.error(_mismatch(sink, "Different number of columns.", given, targets), tree.root)
    for position, (column, target) in enumerate(zip(given, targets, strict=True)):
        if not fits(column.type, target.type):
            cause = f"Incompatible types for sink column '{target.name}' at position {position}."
            raise tree.error(_mismatch(sink, cause, given, targets), _projection(query.spark, position))


def _mismatch(sink: Table, cause: str, given: Sequence[QueryColumn], targets: Sequence[_SinkColumn]) -> str:
    query = ", ".join(f"{c.name}: {_shown(c.type)}" for c in given)
    schema = ", ".join(f"{c.name}: {c.type.flink()}" for c in targets)
    return (
        f"Column types of query result and sink for '{_qualified(sink.name)}' do not match.\nCause: {cause}\n\n"
        f"Query schema: [{query}]\nSink schema:  [{schema}]"
    )


def _shown(type: DataType | None) -> str:
    return "a type that Spark derives" if type is None else type.flink()


def _projection(query: exp.Query, position: int) -> exp.Expr:
    select = leftmost(query)
    return select.expressions[position].unalias() if position < len(select.expressions) else select


def _key(insert: Insert, sink: Table, targets: Sequence[_SinkColumn], relation: Relation) -> tuple[str, ...]:
    """Returns the key of the result. Rows that are only added replace each other by the sink's key, as in Flink."""
    changes = relation.changes
    if changes is None and not (relation.is_windowed and sink.key):
        return sink.key
    names = [c.name for c in targets]
    candidates = sorted(
        ({names[min(term)] for term in key} for key in relation.keys), key=lambda k: (len(k), sorted(k))
    )
    source, at = insert.source, insert.sink.start
    if changes is not None and not sink.accepts_updates:
        key = (
            f"PRIMARY KEY ({', '.join(n for n in names if n in candidates[0])})"
            if candidates
            else "a PRIMARY KEY"
        )
        way_out = (
            f"declare {key} NOT ENFORCED for it"
            if sink.connector is Connector.DELTA
            else f"write to an 'upsert-kafka' table with {key}, or use a format with updates, such as 'debezium-json'"
        )
        raise source.error(
            f"Table sink '{_qualified(sink.name)}' doesn't support consuming {changes.kinds} changes which is produced "
            f"by node {changes.node}; {way_out}",
            at,
        )
    if not candidates and changes is not None and can_have_row_key(sink, relation):
        return ()
    if not candidates:
        raise no_key(insert, sink, relation)
    constants = {names[i] for i, column in enumerate(relation.columns) if column.is_constant}
    if not sink.key:
        return tuple(n for n in names if n in candidates[0])
    if any(set(sink.key) - constants == key - constants for key in candidates):
        return sink.key
    # A row that never changes has the same values in all other columns, too.
    if changes is None and any(key - constants <= set(sink.key) for key in candidates):
        return sink.key
    shown = " or ".join(f"[{', '.join(n for n in names if n in key)}]" for key in candidates[:3])
    raise source.error(
        f"the PRIMARY KEY of sink `{sink.name}` is [{', '.join(sink.key)}], but the key of the query is {shown}, so "
        "rows would overwrite each other or be left behind; declare the query's key as PRIMARY KEY, or keep one row of "
        f"each: ROW_NUMBER() OVER (PARTITION BY {', '.join(sink.key)} ORDER BY ...) in a subquery, and WHERE it is 1",
        at,
    )


def no_key(insert: Insert, sink: Table, relation: Relation) -> DdlError:
    """The error for rows that are updated, of which nothing says which row is which."""
    by = f" ({', '.join(relation.grouping)})" if relation.grouping else ""
    what = (
        f"`{sink.name}` replaces rows by its PRIMARY KEY"
        if relation.changes is None
        else "the rows of this query are updated"
    )
    way_out = "select the columns of the key of each source, or those of GROUP BY"
    if "join" in relation.operations:
        way_out += (
            ". Of a table without a PRIMARY KEY declare it, or keep one row of each key before the join: ROW_NUMBER() "
            "OVER (PARTITION BY key ORDER BY ...) in a subquery, and WHERE it is 1"
        )
    return insert.source.error(
        f"{what}, but it selects no key{by} by which a row replaces its former one; {way_out}",
        insert.sink.start,
    )


def _named(sink: Table, targets: Sequence[_SinkColumn], query: Analysed) -> exp.Query:
    """Returns the query with the names, types and order of the sink's columns; columns without a value are NULL."""
    name_columns(query.spark, [target.name for target in targets])
    select = leftmost(query.spark)
    aliased = list(select.expressions)
    types = [c.type for c in query.relation.columns]
    is_plain = select is query.spark and not select.args.get("distinct")
    wanted = [target.type for target in targets]
    if not is_plain and tuple(targets) == sink.sink_columns and all(map(is_unchanged, types, wanted)):
        return query.spark
    values: dict[str, exp.Expr] = {}
    for node, type, target in zip(aliased, types, targets, strict=True):
        value = node.unalias() if is_plain else exp.column(target.name, table="query")
        same = is_unchanged(type, target.type) and (_is_exact(value) or not is_plain)
        values[target.name] = value if same else _cast(value, type, target)
    columns: list[exp.Expr] = [
        exp.alias_(
            values.get(c.name) or exp.cast(exp.null(), c.type.spark(), dialect="spark"),
            exp.to_identifier(c.name, quoted=True),
            copy=False,
        )
        for c in sink.sink_columns
    ]
    if is_plain:
        select.set("expressions", columns)
        return select
    alias = exp.TableAlias(this=exp.to_identifier("query", quoted=True))
    return exp.select(*columns).from_(exp.Subquery(this=query.spark, alias=alias))


def _cast(value: exp.Expr, given: DataType | None, target: _SinkColumn) -> exp.Expr:
    """Returns `value` with the type of the sink's column. As in a CAST of Flink a number that no DECIMAL holds is NULL,
    and a value of a type that only Spark derives fails where it is none of the column's."""
    wanted = target.type
    name = wanted.name if isinstance(wanted, ScalarType) else ""
    is_nested = not name and given is not None
    may_fail = is_nested or name == "DECIMAL" or (name and given is None and name not in (*TEXT, *BYTES))
    # exp.cast() takes a CAST to another DECIMAL for the same one.
    to = exp.DataType.build(spelled(wanted) if may_fail else wanted.spark(), dialect="spark")
    made = exp.Cast(this=value, to=to)
    if may_fail:
        value.meta["type"] = given
        made.meta["text"] = f"column {target.name} of the sink"
        return adapt(made)
    return cut(made, wanted) if loses_digits(given, wanted) else made


def _is_exact(value: exp.Expr) -> bool:
    """Whether Spark gives the expression the type that it has in Flink; for operators it may be a wider one."""
    aggregate = aggregate_call(value)
    return isinstance(value, (exp.Column, exp.Cast)) or (aggregate is not None and aggregate.name == "COUNT")


def _qualified(name: str) -> str:
    return ".".join(["default_catalog", "default_database", *name.split(".")][-max(3, name.count(".") + 1) :])


def own_part(insert: Insert, sink: Table, inserts: Sequence[Insert]) -> Table | None:
    """Returns the sink with its key and the columns of the INSERT's list only; None if the INSERT writes whole rows,
    because `sink` has no key, or no other one of `inserts` writes to it.

    Raises DdlError with line and column for an INSERT without a list, for a column that is in two lists, or in none,
    and for columns that are NOT NULL; UnsupportedError for sinks that show the rows of one INSERT.
    """
    others = [other for other in inserts if other is not insert and other.sink.text == sink.name]
    known = sink.ddl.schema.names
    if not others or not sink.key or any(name.text not in known for name in insert.columns):
        return None  # `fit_sink` refuses unknown columns, and names those of the whole sink
    if sink.connector in (Connector.PRINT, Connector.BLACKHOLE):
        raise unsupported(
            insert.source,
            f"a second INSERT into `{sink.name}`, a '{sink.connector.value}' table with a PRIMARY KEY,",
            "create a table for each INSERT",
            insert.sink.start,
        )
    _check_list(insert, sink, others)
    _check_own_columns(insert, sink, others)
    listed = {name.text for name in insert.columns}
    left_out = {c.name for c in sink.sink_columns if c.name not in listed and c.name not in sink.key}
    schema = sink.ddl.schema
    columns = tuple(c for c in schema if c.name not in left_out)
    return replace(sink, ddl=replace(sink.ddl, schema=replace(schema, columns=columns)))


def _check_list(insert: Insert, sink: Table, others: Sequence[Insert]) -> None:
    """Raises DdlError for an INSERT without a list, with a list of the key alone, or with a column of another list."""
    source = insert.source
    if not insert.columns:
        keys = ", ".join(sink.key)
        raise source.error(
            f"`{sink.name}` has a PRIMARY KEY and is written by the INSERT of line {others[0].line}, too, so each "
            "would overwrite rows of the other; write one INSERT with UNION ALL or a join, or give each a list of the "
            f"columns that it alone writes: INSERT INTO {sink.name} ({keys}, ...)",
            insert.sink.start,
        )
    if all(name.text in sink.key for name in insert.columns):
        raise source.error(
            f"this INSERT writes no column of `{sink.name}` outside of the PRIMARY KEY, and a row that several INSERTs "
            "write is there as long as such a column has a value; add one to the list",
            insert.columns[0].start,
        )
    for name in insert.columns:
        twin = next((o for o in others if name.text in (n.text for n in o.columns)), None)
        if twin is not None and name.text not in sink.key:
            raise source.error(
                f"column `{name.text}` of `{sink.name}` is in the list of the INSERT of line {twin.line}, too, so each "
                "would overwrite the other's values; leave it out of one list",
                name.start,
            )


def _check_own_columns(insert: Insert, sink: Table, others: Sequence[Insert]) -> None:
    """Raises DdlError if a row of one INSERT alone could not be in the table, or a column is in no list."""
    listed = {name.text for one in (insert, *others) for name in one.columns}
    is_whole = all(one.columns for one in others) and listed <= set(sink.ddl.schema.names)
    for column in sink.sink_columns:
        if column.name in sink.key:
            continue
        if not column.type.nullable:
            raise insert.source.error(
                f"column `{column.name}` of `{sink.name}` is NOT NULL, but it is NULL in the rows that only another "
                f"INSERT has, such as that of line {others[0].line}; remove NOT NULL",
                insert.sink.start,
            )
        if column.name not in listed and is_whole:
            raise insert.source.error(
                f"column `{column.name}` of `{sink.name}` is in the list of no INSERT; add it to one list, or remove "
                "it from CREATE TABLE",
                insert.columns[0].start,
            )
