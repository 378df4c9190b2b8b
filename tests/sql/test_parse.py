"""The statements of a script, and what is not one.

Statements are separated by `;`, outside of strings, names and comments.

Calls of window table functions are read from the text, with positions in it.
"""

from __future__ import annotations

import pytest

from bridge.ddl.tokens import Source
from bridge.errors import DdlError, DefinitionError
from bridge.sql.parse import LEGAL, parse_script, replace_calls, split
from bridge.sql.statements import (
    CreateTable,
    CreateView,
    Explain,
    Insert,
    Name,
    QueryText,
    SetOption,
    Statement,
    WindowCall,
    WindowFunction,
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


M = 60_000


def calls(text: str) -> tuple[str, list[WindowCall]]:
    """The text that sqlglot gets, and the calls in it."""
    (part,) = split(Source(text, "t.sql"))
    replaced, found = replace_calls(part)
    return replaced.source.text, list(found.values())


@pytest.mark.parametrize(
    ("call", "function", "size", "step", "offset"),
    [
        ("TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTES))", "TUMBLE", 10 * M, 10 * M, 0),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)", "TUMBLE", 60 * M, 60 * M, 0),
        ("TABLE(tumble(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '-8' HOUR))", "TUMBLE", 1440 * M, 1440 * M,
         -480 * M),
        ("TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES))", "HOP", 10 * M, 5 * M, 0),
        ("TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '2' MINUTES, INTERVAL '10' MINUTES))", "CUMULATE", 10 * M,
         2 * M, 0),
        ("TABLE(TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1.5' SECOND(3)))", "TUMBLE", 1500,
         1500, 0),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1.001' SECOND, INTERVAL '-0.5' SECOND)", "TUMBLE", 1001, 1001,
         -500),
        ("HOP(DATA => TABLE t, SIZE => INTERVAL '28' DAY, SLIDE => INTERVAL '7' DAY, TIMECOL => DESCRIPTOR(ts), "
         "OFFSET => INTERVAL '1' DAY)", "HOP", 28 * 1440 * M, 7 * 1440 * M, 1440 * M),
    ],
)  # fmt: skip
def test_calls(call: str, function: str, size: int, step: int, offset: int) -> None:
    text, (found,) = calls(f"SELECT a FROM {call} AS w WHERE b > 1")
    assert (found.function, found.size_ms, found.step_ms, found.offset_ms) == (
        WindowFunction(function),
        size,
        step,
        offset,
    )
    assert (found.table.text, found.column.text) == ("t", "ts")
    assert text.split() == "SELECT a FROM `w 0` AS w WHERE b > 1".split()
    assert len(text) == len(f"SELECT a FROM {call} AS w WHERE b > 1")


def test_several_calls_keep_their_places() -> None:
    text = (
        "SELECT * FROM TABLE(\n TUMBLE(TABLE a.b.`c d`, DESCRIPTOR(x), INTERVAL '1' DAY)) AS l\n"
        "JOIN TABLE(TUMBLE(TABLE e, DESCRIPTOR(y), INTERVAL '1' DAY)) AS r ON l.k = r.k"
    )
    replaced, found = calls(text)
    assert {(c.table.text, c.column.text) for c in found} == {("a.b.c d", "x"), ("e", "y")}
    assert [text[c.start : c.start + 6] for c in found] == ["TUMBLE", "TUMBLE"]
    assert replaced.index("AS l") == text.index("AS l") and replaced.count("\n") == text.count("\n")


def test_names_are_no_calls() -> None:
    for text in (
        "SELECT tumble FROM t",
        "SELECT * FROM tumble AS t",
        "SELECT * FROM hop JOIN cumulate ON a = b",
    ):
        assert calls(text) == (text, [])


USAGE = "TABLE name, DESCRIPTOR(column), INTERVAL ... (size)[, INTERVAL ... (offset)]"
HOP = "TABLE name, DESCRIPTOR(column), INTERVAL ... (slide), INTERVAL ... (size)[, INTERVAL ... (offset)]"


@pytest.mark.parametrize(
    ("call", "at", "message"),
    [
        ("TUMBLE(TABLE t, DESCRIPTOR(ts))", 15, f"TUMBLE has no SIZE; TUMBLE takes {USAGE}"),
        ("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY)", 15, f"HOP has no SIZE; HOP takes {HOP}"),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '1' DAY, 1)", 83, f"TUMBLE takes {USAGE}"),
        ("TUMBLE(TABLE t, ts, INTERVAL '1' DAY)", 31,
         "expected DESCRIPTOR and the column of the WATERMARK in parentheses, found 'ts'"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a, b), INTERVAL '1' DAY)", 43, "expected ')' (a window has one time column), "
         "found ','"),
        ("TUMBLE(TABLE (SELECT 1), DESCRIPTOR(a), INTERVAL '1' DAY)", 28, "a query in a window table function is "
         "not supported; create a view, and name it here"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '1' WEEK)", 59, "Flink takes a WEEK in SIZE for an hour; write "
         "'7' DAY"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '1' MONTH)", 59, "SIZE in months has no fixed length, as in "
         "Flink; write it in DAY"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '0' DAY)", 55, "the length of SIZE must be a number above 0"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '-1' DAY)", 55, "the length of SIZE must be a number (whole, or a "
         "fraction of SECOND)"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '0.0005' SECOND)", 55, "SIZE must be whole milliseconds"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '1:30' HOUR TO MINUTE)", 62, "intervals of more than one unit are "
         "not supported; write SIZE in HOUR only"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), 10)", 46, "expected INTERVAL for SIZE: INTERVAL '10' MINUTES, found '10'"),
        ("HOP(TABLE t, DESCRIPTOR(a), INTERVAL '4' MINUTES, INTERVAL '10' MINUTES)", 65, "HOP requires a size that is "
         "an integral multiple of its slide, and 600,000 ms is none of 240,000 ms"),
        ("TUMBLE(DATA => TABLE t, WHEN => 1)", 39, "TUMBLE has no argument WHEN; legal are DATA, "
         "TIMECOL, SIZE, OFFSET"),
        ("TUMBLE(DATA => TABLE t, DATA => TABLE t)", 39, "DATA of TUMBLE is given twice"),
    ],
)  # fmt: skip
def test_bad_calls(call: str, at: int, message: str) -> None:
    with pytest.raises(DdlError) as error:
        calls(f"SELECT a FROM {call}")
    assert str(error.value) == f"t.sql:1:{at}: {message}"


def test_the_call_is_a_value() -> None:
    _, (found,) = calls("SELECT a FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' SECOND)")
    assert found == WindowCall(WindowFunction.TUMBLE, Name("t", 27), Name("ts", 41), 1000, 1000, 0, 14)
