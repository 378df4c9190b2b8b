"""The statement around the columns: names, comments, options and unsupported clauses.

Any text is parsed to a Ddl or raises a DdlError with a position in it, and no other exception.

A schema that is written as Flink DDL and parsed is the same schema.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.ddl import Ddl, parse
from bridge.errors import DdlError
from bridge.schema import (
    ArrayType,
    DataType,
    MapType,
    MetadataColumn,
    PhysicalColumn,
    RowField,
    RowType,
    ScalarType,
    TableSchema,
    quote,
)

ID = TableSchema((PhysicalColumn("id", ScalarType("INT")),))
TAIL = "(id INT) WITH ('connector' = 'kafka')"


def error_of(text: str) -> DdlError:
    with pytest.raises(DdlError) as error:
        parse(text, "orders.sql")
    return error.value


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("CREATE TABLE t", "t"),
        ("create table T", "T"),
        ("CREATE TEMPORARY TABLE t", "t"),
        ("CREATE TABLE IF NOT EXISTS t", "t"),
        ("CREATE TEMPORARY TABLE IF NOT EXISTS db.t", "db.t"),
        ("CREATE TABLE cat . db . t", "cat.db.t"),
        ("CREATE TABLE `my cat`.`d``b`.`t.x`", "my cat.d`b.t.x"),
        ("CREATE TABLE table", "table"),
        ("CREATE TABLE größe_1$", "größe_1$"),
        ("-- a comment\n/* two\nlines */ CREATE // here too\n TABLE t", "t"),
    ],
)
def test_head(head: str, name: str) -> None:
    assert parse(f"{head} {TAIL}") == Ddl(name, ID, {"connector": "kafka"})


@pytest.mark.parametrize("tail", ["", ";", " ; ", "\n;\n-- done\n", "/* done */"])
def test_tail(tail: str) -> None:
    assert parse(f"CREATE TABLE t {TAIL}{tail}") == Ddl("t", ID, {"connector": "kafka"})


def test_comment_of_the_table() -> None:
    ddl = parse("CREATE TABLE t (id INT) COMMENT 'it''s ours' WITH ('connector' = 'kafka')")
    assert ddl.comment == "it's ours"


def test_option_values_are_unchanged() -> None:
    text = "CREATE TABLE t (id INT) WITH ('A.b' = ' x''y\\n\"z`\n--/* // ', 'empty' = '', 'ключ' = '值')"
    assert parse(text).options == {"A.b": " x'y\\n\"z`\n--/* // ", "empty": "", "ключ": "值"}


def test_options_may_be_empty_and_keep_their_order() -> None:
    assert parse("CREATE TABLE t (id INT) WITH ()").options == {}
    assert list(parse("CREATE TABLE t (id INT) WITH ('b' = '1', 'a' = '2')").options) == ["b", "a"]


def test_dos_line_ends_and_a_byte_order_mark() -> None:
    assert (
        parse("\ufeffCREATE TABLE t (\r\n  id INT -- the id\r\n)\r\nWITH ('connector' = 'kafka')").schema
        == ID
    )
    error = error_of("CREATE TABLE t (\r\n  id INT,\r\n  ID2 INTT\r\n) WITH ()")
    assert str(error).startswith("orders.sql:3:7: unknown type `INTT`")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", (1, 1), "expected CREATE TABLE, found the end of the statement"),
        ("INSERT INTO t SELECT 1", (1, 1), "expected CREATE TABLE, found 'INSERT'"),
        ("CREATE VIEW v AS SELECT 1", (1, 8), "expected TABLE after CREATE (a pipeline has one"),
        ("CREATE OR REPLACE TABLE t (id INT)", (1, 8), "expected TABLE after CREATE"),
        ("CREATE TABLE", (1, 13), "expected the table's name"),
        ("CREATE TABLE 't' (id INT)", (1, 14), "expected the table's name (names with characters other"),
        ("CREATE TABLE my-t (id INT)", (1, 16), "expected '(' and the columns, found '-'"),
        ("CREATE TABLE a.b.c.d (id INT)", (1, 20), "the name of a table has at most three parts"),
        ("CREATE TABLE a. (id INT)", (1, 17), "expected a name after '.'"),
        ("CREATE TABLE t WITH ('a' = 'b')", (1, 16), "expected '(' and the columns, found 'WITH'"),
        ("CREATE TABLE t ()", (1, 17), "expected a column, PRIMARY KEY or WATERMARK"),
        ("CREATE TABLE t (id INT,)", (1, 24), "expected a column, PRIMARY KEY or WATERMARK"),
        ("CREATE TABLE t (id INT", (1, 23), "expected ',' or ')' after column `id`, found the end"),
        (
            "CREATE TABLE t (id INT)",
            (1, 24),
            "expected WITH ('connector' = ..., ...) after the columns, found the end",
        ),
        (
            "CREATE TABLE t (id INT);",
            (1, 24),
            "expected WITH ('connector' = ..., ...) after the columns, found ';'",
        ),
        ("CREATE TABLE t (id INT) COMMENT WITH ()", (1, 33), "expected the table's comment in single quotes"),
        (
            "CREATE TABLE t (id INT)\nPARTITIONED BY (id) WITH ()",
            (2, 1),
            "PARTITIONED BY has no effect on a Kafka topic, which is partitioned by key; remove it, and cluster",
        ),
        ("CREATE TABLE t (id INT) DISTRIBUTED BY (id) WITH ()", (1, 25), "DISTRIBUTED BY has no effect"),
        (
            "CREATE TABLE t (id INT) WITH () LIKE s",
            (1, 33),
            "LIKE refers to another table, which is not supported",
        ),
        ("CREATE TABLE t (id INT) WITH () AS SELECT 1", (1, 33), "CREATE TABLE AS SELECT runs a query"),
        ("CREATE TABLE t (id INT) WITH ('a')", (1, 34), "expected '=' after 'a', found something else"),
        ("CREATE TABLE t (id INT) WITH ('a' = 'b' 'c' = 'd')", (1, 41), "expected ',' or ')'"),
        ("CREATE TABLE t (id INT) WITH ('a' = 'b',)", (1, 41), "expected an option's key in single quotes"),
        ("CREATE TABLE t (id INT) WITH ('a' = 1)", (1, 37), "expected the value of 'a' in single quotes"),
        ("CREATE TABLE t (id INT) WITH ('a' = 'b',\n 'a' = 'c')", (2, 2), "option 'a' is set twice"),
        ("CREATE TABLE t (id INT) WITH () GARBAGE", (1, 33), "expected the end of the statement"),
        ("CREATE TABLE t (id INT) WITH ();\nSELECT 1", (2, 1), "a second statement starts here"),
        ("CREATE TABLE t (id INT) WITH ('a' = 'b)", (1, 37), "this string is not closed; end it with '"),
        ("CREATE TABLE t (id INT) WITH ('a' = 'b'')", (1, 37), "this string is not closed; end it with '"),
        ("CREATE TABLE `t (id INT)", (1, 14), "this name is empty or not closed; end it with `"),
        ("CREATE TABLE `` (id INT)", (1, 14), "this name is empty or not closed"),
        ("CREATE TABLE t /* (id INT)", (1, 16), "this comment is not closed; end it with */"),
        (
            "CREATE TABLE t (id INT COMMENT U&'\\0041')",
            (1, 32),
            "strings with the prefix U& are not supported; write",
        ),
        (
            "CREATE TABLE t (id INT COMMENT _utf8'x')",
            (1, 32),
            "strings with the prefix _utf8 are not supported",
        ),
        ('CREATE TABLE "t" (id INT)', (1, 14), "expected the table's name"),
    ],
)
def test_refused(text: str, place: tuple[int, int], message: str) -> None:
    error = error_of(text)
    assert error.message.startswith(message)
    assert (error.file, error.line, error.column) == ("orders.sql", *place)
    assert str(error) == f"orders.sql:{place[0]}:{place[1]}: {error.message}"


@pytest.mark.parametrize(
    "options",
    [
        "'properties.password' = hunter2",
        "'properties.password' = 'x'hunter2'y'",
        "'properties.password' = 'x') hunter2",
        "'properties.password' = 'x', hunter2 = 'y'",
        "'properties.password' = `hunter2`",
        "'properties.password' = 'hunter2",
        "'properties.password' = 'hunter2', 'properties.password' = 'hunter2'",
    ],
)
def test_messages_contain_no_option_value(options: str) -> None:
    assert "hunter2" not in str(error_of(f"CREATE TABLE t (id INT) WITH ({options})"))


VOCABULARY = r"""
    a b `c d` 'text' 1 2.5 , ( ) [ ] < > . - + / | = ; \
    INT STRING ARRAY MAP ROW DECIMAL TIMESTAMP INTERVAL DAY NOT NULL AS FOR CAST CASE WHEN THEN END
    COMMENT METADATA FROM VIRTUAL PRIMARY KEY ENFORCED CONSTRAINT UNIQUE WATERMARK WITH LIKE
    FLOOR TO TIMESTAMPADD REGEXP_EXTRACT
"""
scraps = st.lists(st.sampled_from([*VOCABULARY.split(), "\n"]), max_size=12).map(" ".join)


def refused_at(text: str) -> tuple[int, int] | None:
    try:
        assert isinstance(parse(text), Ddl)
    except DdlError as error:
        return error.line, error.column
    return None


def lands(text: str) -> None:
    """Parse `text`; a refusal must point at a place in it, at most one past the last character of a line."""
    place = refused_at(text)
    lines = text.split("\n")
    assert place is None or 1 <= place[0] <= len(lines)
    assert place is None or 1 <= place[1] <= len(lines[place[0] - 1]) + 1


@settings(deadline=None, max_examples=300)
@given(scraps)
def test_any_elements(scrap: str) -> None:
    lands(f"CREATE TABLE t (a INT, b ARRAY<INT>, {scrap}) WITH ('connector' = 'kafka')")


@settings(deadline=None, max_examples=500)
@given(scraps)
def test_any_expression(scrap: str) -> None:
    lands(f"CREATE TABLE t (a INT, b ARRAY<INT>, c AS a {scrap}) WITH ('connector' = 'kafka')")


@settings(deadline=None)
@given(scraps, st.text())
def test_any_statement(scrap: str, text: str) -> None:
    lands(f"CREATE TABLE t {scrap}")
    lands(f"CREATE TABLE t (a INT) WITH {scrap}")
    lands(text)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
nullable = st.booleans()


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@st.composite
def scalars(draw: st.DrawFn) -> ScalarType:
    name = draw(
        st.sampled_from(
            [
                *(
                    "CHAR",
                    "VARCHAR",
                    "STRING",
                    "BOOLEAN",
                    "BINARY",
                    "VARBINARY",
                    "BYTES",
                    "DECIMAL",
                    "TINYINT",
                ),
                *("SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"),
            ]
        )
    )
    parameters: tuple[int, ...] = ()
    if name == "DECIMAL":
        precision = draw(st.integers(1, 38))
        parameters = (precision, draw(st.integers(0, precision)))
    elif name.startswith("TIMESTAMP"):
        parameters = (draw(st.integers(0, 6)),)
    elif name in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
        parameters = (draw(st.integers(1, 2_147_483_646)),)
    return ScalarType(name, parameters, nullable=draw(nullable))


def distinct(items: st.SearchStrategy[str], most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(items, min_size=1, max_size=most, unique_by=str.casefold)


def rows(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = distinct(names, 4).flatmap(
        lambda ns: st.tuples(*(st.builds(RowField, st.just(n), types) for n in ns))
    )
    return st.builds(RowType, fields, nullable=nullable)


types: st.SearchStrategy[DataType] = st.recursive(
    scalars(),
    lambda inner: (
        st.builds(ArrayType, inner, nullable=nullable)
        | st.builds(MapType, inner, inner, nullable=nullable)
        | rows(inner)
    ),
    max_leaves=6,
)


@st.composite
def schemas(draw: st.DrawFn) -> TableSchema:
    columns: list[PhysicalColumn | MetadataColumn] = []
    for name in draw(distinct(names, 6)):
        if draw(st.booleans()):
            columns.append(PhysicalColumn(name, draw(types), draw(st.none() | texts)))
        else:
            columns.append(
                MetadataColumn(name, draw(types), draw(texts), draw(st.booleans()), draw(st.none() | texts))
            )
    physical = [c.name for c in columns if isinstance(c, PhysicalColumn)]
    key = draw(st.lists(st.sampled_from(physical), unique=True)) if physical else []
    return TableSchema(tuple(columns), tuple(key))


def render(ddl: Ddl) -> str:
    elements = []
    for column in ddl.schema:
        assert isinstance(column, (PhysicalColumn, MetadataColumn))
        parts = [quote(column.name), column.type.flink()]
        if isinstance(column, MetadataColumn):
            parts += ["METADATA FROM", text(column.key), "VIRTUAL" if column.virtual else ""]
        if column.comment is not None:
            parts += ["COMMENT", text(column.comment)]
        elements.append(" ".join(parts))
    if ddl.schema.primary_key:
        elements.append(f"PRIMARY KEY ({', '.join(map(quote, ddl.schema.primary_key))}) NOT ENFORCED")
    comment = f"COMMENT {text(ddl.comment)}" if ddl.comment is not None else ""
    options = ", ".join(f"{text(k)} = {text(v)}" for k, v in ddl.options.items())
    return f"CREATE TABLE {quote(ddl.name)} ({', '.join(elements)}) {comment} WITH ({options})"


# No deadline: other work on the machine must not fail this test.
@settings(deadline=None)
@given(st.builds(Ddl, names, schemas(), st.dictionaries(texts, texts, max_size=4), st.none() | texts))
def test_parse_undoes_render(ddl: Ddl) -> None:
    assert parse(render(ddl)) == ddl
