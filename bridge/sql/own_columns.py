"""Several INSERTs into one table with a PRIMARY KEY: each writes the columns of its list, which no other one writes.

In Flink the columns that a list leaves out are NULL, so of two such INSERTs into one topic each would overwrite what
the other has written, unless the table merges rows (`partial-update` in Paimon). Here they always merge; docs/adr/041.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bridge.ddl.part import unsupported
from bridge.sql.connectors import Connector, Table
from bridge.sql.statements import Insert


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
    _check_columns(insert, sink, others)
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


def _check_columns(insert: Insert, sink: Table, others: Sequence[Insert]) -> None:
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
