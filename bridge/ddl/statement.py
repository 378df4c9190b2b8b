"""Parses a complete CREATE TABLE statement."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.ddl.elements import parse_elements
from bridge.ddl.tokens import Cursor, Source
from bridge.schema import TableSchema

_REFUSED = {
    "PARTITIONED": "PARTITIONED BY has no effect on a Kafka topic, which is partitioned by key; remove it, and cluster "
    "the Delta table with delta.cluster-by",
    "DISTRIBUTED": "DISTRIBUTED BY has no effect on a Kafka topic, which is partitioned by key; remove it",
    "LIKE": "LIKE refers to another table, which is not supported in this version; list the columns and the options",
    "AS": "CREATE TABLE AS SELECT runs a query, which is not supported; declare the columns here, and run the "
    "query with INSERT INTO in a script",
}


@dataclass(frozen=True)
class Ddl:
    """A CREATE TABLE. `name` is the dotted name without quotes; `options` are the options in WITH, unchanged."""

    name: str
    schema: TableSchema
    options: dict[str, str]
    comment: str | None = None


def parse(text: str, file: str = "<ddl>") -> Ddl:
    """Parses one Flink CREATE TABLE statement, with optional comments and a final ';'.

    Raises DdlError with file, line and column for illegal and unsupported syntax. Messages contain no option values.
    It checks neither options nor reserved column names.
    """
    c = Cursor(Source(text, file))
    ddl = parse_create_table(c)
    if c.take(";") and c.token.kind != "end":
        c.fail("a second statement starts here; a pipeline has one CREATE TABLE")
    if c.token.kind != "end":
        c.fail_expected("the end of the statement")
    return ddl


def parse_create_table(c: Cursor) -> Ddl:
    """Parses the CREATE TABLE at the cursor, which is left after it. Raises what `parse` raises."""
    if not c.take("CREATE"):
        c.fail_expected("CREATE TABLE")
    c.take("TEMPORARY")
    if not c.take("TABLE"):
        c.fail_expected("TABLE after CREATE (a pipeline has one CREATE [TEMPORARY] TABLE)")
    c.take("IF", "NOT", "EXISTS")
    name = table_name(c)
    if not c.take("("):
        c.fail_expected("'(' and the columns")
    schema = parse_elements(c)
    comment = c.string("the table's comment").text if c.take("COMMENT") else None
    _refuse(c)
    if not c.take("WITH"):
        c.fail_expected("WITH ('connector' = ..., ...) after the columns")
    options = _options(c)
    _refuse(c)
    return Ddl(name, schema, options, comment)


def table_name(c: Cursor) -> str:
    """Consumes the name of a table and returns it with dots and without quotes."""
    parts = [c.name("the table's name")]
    while c.take("."):
        parts.append(c.name("a name after '.'"))
    if len(parts) > 3:
        c.fail("the name of a table has at most three parts: catalog.database.table", parts[3])
    return ".".join(p.text for p in parts)


def _refuse(c: Cursor) -> None:
    if c.token.keyword in _REFUSED:
        c.fail(_REFUSED[c.token.keyword])


def _options(c: Cursor) -> dict[str, str]:
    c.expect("(", " after WITH")
    # After a misplaced quote, any token may be part of a password.
    c.quotes_tokens = False
    options: dict[str, str] = {}

    def option() -> None:
        key = c.string("an option's key")
        if key.text in options:
            c.fail(f"option '{key.text}' is set twice", key)
        c.expect("=", f" after '{key.text}'")
        options[key.text] = c.string(f"the value of '{key.text}'").text

    if not c.take(")"):
        c.comma_separated(option)
    return options
