"""CREATE TABLE from its first word to its last."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.ddl.cursor import Cursor
from bridge.ddl.elements import parse_elements
from bridge.ddl.tokens import Source
from bridge.schema import TableSchema

__all__ = ["Ddl", "parse"]

_REFUSED = {
    "PARTITIONED": "PARTITIONED BY does not reach a Kafka topic: Kafka partitions by key; "
    "cluster the Delta table by its own properties",
    "DISTRIBUTED": "DISTRIBUTED BY does not reach a Kafka topic: Kafka partitions by key; leave it out",
    "LIKE": "LIKE needs another table's definition, and a pipeline knows one table; write its columns out",
    "AS": "CREATE TABLE AS SELECT runs a query; the bridge moves a topic as it is. Leave the query out",
}


@dataclass(frozen=True)
class Ddl:
    """A CREATE TABLE. `name` is the dotted name without quotes; `options` are WITH's, letter for letter."""

    name: str
    schema: TableSchema
    options: dict[str, str]
    comment: str | None = None


def parse(text: str, file: str = "<ddl>") -> Ddl:
    """Read one Flink CREATE TABLE statement; a closing ';' and comments may be there.

    Raises DdlError with file, line and column for everything that cannot be read or used. Messages hold no
    option value. Neither options nor the bridge's reserved column names are judged here.
    """
    c = Cursor(Source(text, file))
    if not c.take("CREATE"):
        c.fail_expected("CREATE TABLE")
    c.take("TEMPORARY")
    if not c.take("TABLE"):
        c.fail_expected("TABLE after CREATE (a pipeline is given one CREATE [TEMPORARY] TABLE)")
    c.take("IF", "NOT", "EXISTS")
    name = _table_name(c)
    if not c.take("("):
        c.fail_expected("'(' and the columns")
    schema = parse_elements(c)
    comment = c.string("the table's comment").text if c.take("COMMENT") else None
    _refuse(c)
    if not c.take("WITH"):
        c.fail_expected("WITH ('connector' = ..., ...) after the columns")
    options = _options(c)
    _refuse(c)
    if c.take(";") and c.token.kind != "end":
        c.fail("a second statement begins here; a pipeline is given one CREATE TABLE")
    if c.token.kind != "end":
        c.fail_expected("the end of the statement")
    return Ddl(name, schema, options, comment)


def _table_name(c: Cursor) -> str:
    parts = [c.name("the table's name")]
    while c.take("."):
        parts.append(c.name("a name after '.'"))
    if len(parts) > 3:
        c.fail("a table's name has three parts at most: catalog.database.table", parts[3])
    return ".".join(p.text for p in parts)


def _refuse(c: Cursor) -> None:
    if c.token.keyword in _REFUSED:
        c.fail(_REFUSED[c.token.keyword])


def _options(c: Cursor) -> dict[str, str]:
    c.expect("(", " after WITH")
    # After a misplaced quote any token may be a piece of a password.
    c.quotes_tokens = False
    options: dict[str, str] = {}

    def option() -> None:
        key = c.string("an option's key")
        if key.text in options:
            c.fail(f"option '{key.text}' is there twice", key)
        c.expect("=", f" after '{key.text}'")
        options[key.text] = c.string(f"the value of '{key.text}'").text

    if not c.take(")"):
        c.comma_separated(option)
    return options
