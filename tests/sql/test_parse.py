"""The statements of a script, and what is not one.

Statements are separated by `;`, outside of strings, names and comments.
"""

from __future__ import annotations

import pytest

from bridge.ddl.tokens import Source
from bridge.errors import DdlError, DefinitionError
from bridge.sql.parse import LEGAL, parse_script, split
from bridge.sql.statements import (
    CreateTable,
    CreateView,
    Explain,
    Insert,
    Name,
    QueryText,
    SetOption,
    Statement,
)

TABLE = "CREATE TABLE t (id INT) WITH ('connector' = 'print')"


def parsed(text: str) -> tuple[Statement, ...]:
    return parse_script(text, "t.sql")


def query(text: QueryText) -> str:
    return " ".join(t.text for t in text.tokens)


def test_set() -> None:
    (statement,) = parsed("\n SET 'a.b' = 'it''s';")
    assert isinstance(statement, SetOption)
    assert (statement.key, statement.value, statement.line) == (Name("a.b", 6), "it's", 2)


@pytest.mark.parametrize(
    ("head", "name", "if_not_exists"),
    [
        ("CREATE TABLE t", "t", False),
        ("create temporary table T", "T", False),
        ("CREATE TABLE IF NOT EXISTS db.t", "db.t", True),
        ("CREATE TABLE `my db`.`t;x`", "my db.t;x", False),
    ],
)
def test_create_table(head: str, name: str, if_not_exists: bool) -> None:
    (statement,) = parsed(f"{head} (id INT) WITH ('connector' = 'print', 'x' = 'y')")
    assert isinstance(statement, CreateTable)
    assert (statement.name.text, statement.if_not_exists) == (name, if_not_exists)
    assert statement.ddl.name == name
    assert statement.ddl.options == {"connector": "print", "x": "y"}
    assert statement.source.text[statement.options["x"] :].startswith("'x' = 'y'")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("CREATE VIEW v AS SELECT 1", []),
        ("CREATE TEMPORARY VIEW IF NOT EXISTS v (a, `b c`) COMMENT 'x' AS SELECT 1", ["a", "b c"]),
    ],
)
def test_create_view(text: str, columns: list[str]) -> None:
    (statement,) = parsed(text)
    assert isinstance(statement, CreateView)
    assert (statement.name.text, [c.text for c in statement.columns]) == ("v", columns)
    assert query(statement.query) == "SELECT 1"


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("INSERT INTO t SELECT 1", [], "SELECT 1"),
        ("INSERT INTO t (a, b) SELECT 1, 2", ["a", "b"], "SELECT 1 , 2"),
        ("INSERT INTO t (SELECT 1)", [], "( SELECT 1 )"),
        ("INSERT INTO t (a) (SELECT 1)", ["a"], "( SELECT 1 )"),
        ("INSERT INTO t VALUES (1)", [], "VALUES ( 1 )"),
        ("INSERT INTO t WITH x AS (SELECT 1) SELECT 2", [], "WITH x AS ( SELECT 1 ) SELECT 2"),
    ],
)
def test_insert(text: str, columns: list[str], rows: str) -> None:
    (statement,) = parsed(text)
    assert isinstance(statement, Insert)
    assert (statement.sink.text, [c.text for c in statement.columns]) == ("t", columns)
    assert query(statement.query) == rows


@pytest.mark.parametrize(
    "text",
    [
        "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1; INSERT INTO u SELECT 2; END;",
        "EXECUTE STATEMENT SET\nBEGIN\nINSERT INTO t SELECT CASE WHEN a THEN 1 END; INSERT INTO u SELECT 2; END",
        "BEGIN STATEMENT SET; INSERT INTO t SELECT 1; INSERT INTO u SELECT 2; END;",
        "BEGIN STATEMENT SET; INSERT INTO t SELECT 1; END; INSERT INTO u SELECT 2;",
    ],
)
def test_statement_sets(text: str) -> None:
    found = parsed(text)
    assert [s.sink.text for s in found if isinstance(s, Insert)] == ["t", "u"]
    assert len(found) == 2


@pytest.mark.parametrize("head", ["EXPLAIN", "EXPLAIN PLAN FOR"])
def test_explain(head: str) -> None:
    insert, select = parsed(f"{head} INSERT INTO t SELECT 1; {head} SELECT 2")
    assert isinstance(insert, Explain)
    assert isinstance(insert.explained, Insert)
    assert isinstance(select, Explain)
    assert isinstance(select.explained, QueryText)


NO_VIEW = "expected TABLE or VIEW after CREATE [TEMPORARY] (a script defines nothing else), found 'CATALOG'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DROP TABLE t", f"1:1: 'DROP' does not start a statement of a script; legal are {LEGAL}"),
        ("'x'", f"1:1: expected a statement: {LEGAL}, found a string"),
        (
            "SELECT 1",
            "1:1: a query on its own has no sink; write INSERT INTO a table (a script has no terminal to show rows)",
        ),
        ("CREATE CATALOG c", f"1:8: {NO_VIEW}"),
        (
            "CREATE OR REPLACE VIEW v AS SELECT 1",
            "1:8: OR REPLACE is not supported: a script defines each name once; remove it",
        ),
        ("SET a = b", "1:5: expected the key in single quotes: SET 'key' = 'value', found 'a'"),
        ("SET 'a' = secret", "1:11: expected the value of 'a' in single quotes, found something else"),
        (f"{TABLE} x", "1:54: expected ';' or the end of the statement, found something else"),
        ("INSERT OVERWRITE t SELECT 1", "1:8: INSERT OVERWRITE is for bounded tables; write INSERT INTO"),
        ("INSERT t SELECT 1", "1:8: expected INTO after INSERT, found 't'"),
        ("INSERT INTO t TABLE u", "1:15: expected SELECT, WITH or VALUES, found 'TABLE'"),
        (
            "INSERT INTO t PARTITION (a = 1) SELECT 1",
            "1:15: PARTITION is not supported: neither topics nor clustered Delta tables have such partitions; "
            "remove it",
        ),
        ("CREATE VIEW v SELECT 1", "1:15: expected AS and the query of the view, found 'SELECT'"),
        (
            "EXPLAIN CHANGELOG_MODE SELECT 1",
            "1:9: expected [PLAN FOR] and INSERT INTO or SELECT after EXPLAIN (details of the plan cannot be chosen), "
            "found 'CHANGELOG_MODE'",
        ),
        (
            "BEGIN STATEMENT SET INSERT INTO t SELECT 1; END",
            "1:21: expected ';' after BEGIN STATEMENT SET, found 'INSERT'",
        ),
        ("BEGIN STATEMENT SET; END", "1:1: this statement set has no INSERT INTO"),
        (
            "\nBEGIN STATEMENT SET; INSERT INTO t SELECT 1;",
            "2:1: this statement set is not closed; end it with END;",
        ),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT a FROM b END",
            "1:59: expected ';' before END, as in Flink",
        ),
        (
            "BEGIN STATEMENT SET; SET 'a' = 'b'; END",
            "1:22: expected INSERT INTO or END (a statement set consists of INSERTs), found 'SET'",
        ),
        (
            "BEGIN STATEMENT SET; BEGIN STATEMENT SET; END",
            "1:22: a statement set cannot contain another one; end the first one with END;",
        ),
        (
            "BEGIN STATEMENT SET; INSERT INTO t SELECT 1; END x",
            "1:50: expected ';' or the end of the statement, found 'x'",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(DefinitionError) as error:
        parsed(text)
    assert str(error.value) == f"t.sql:{message}"


def texts(script: str) -> list[str]:
    return [" ".join(t.text for t in part.tokens[:-1]) for part in split(Source(script, "t.sql"))]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("", []),
        (" ; ;\n-- nothing\n", []),
        ("a b; c", ["a b", "c"]),
        ("a;;b;", ["a", "b"]),
        ("a ';' b; c", ["a ; b", "c"]),
        ("a 'it''s; one' b", ["a it's; one b"]),
        ("a `x;``y`; b", ["a x;`y", "b"]),
        ("a -- no; end\nb; c", ["a b", "c"]),
        ("a // no; end\nb; c", ["a b", "c"]),
        ("a /* no; end\n; */ b; c", ["a b", "c"]),
        ("\ufeffa;\r\nb;\r\n", ["a", "b"]),
    ],
)
def test_statements(script: str, found: list[str]) -> None:
    assert texts(script) == found


def test_offsets_are_those_of_the_script() -> None:
    first, second = split(Source("a b;\n  c d;", "t.sql"))
    assert [t.start for t in second.tokens] == [7, 9, 10]
    assert str(second.source.error("here", second.tokens[1].start)) == "t.sql:2:5: here"
    assert [t.text for t in first.without(1).tokens] == ["b", ""]
    assert second.cursor().token.text == "c"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "a;\nb 'c",
            "t.sql:2:3: this string is not closed; end it with ' (a quote within the string is written '')",
        ),
        ("a; /* b", "t.sql:1:4: this comment is not closed; end it with */"),
        (
            "a;\n b /*+ OPTIONS('x' = 'y') */ c",
            "t.sql:2:4: hints (/*+ ... */) are not supported; write options into WITH of the table, and "
            "remove the hint",
        ),
    ],
)
def test_refused_split(script: str, message: str) -> None:
    with pytest.raises(DdlError) as error:
        texts(script)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "script", ["a -- /*+ no hint */\nb", "a // /*+ no hint */\nb", "a '/*+ no hint */'", "a + b"]
)
def test_no_hints(script: str) -> None:
    assert len(texts(script)) == 1
