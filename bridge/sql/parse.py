"""Parses the statements of a script. Queries stay tokens; everything around them is parsed here."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from bridge.ddl.cursor import Cursor
from bridge.ddl.part import Part
from bridge.ddl.refused_parts import refuse_parts
from bridge.ddl.statement import parse_create_table, table_name
from bridge.ddl.stray_tokens import refuse_stray_tokens
from bridge.ddl.tokens import Source, Token
from bridge.sql.create_table import Clauses, clauses_of, expanded, without_proctime
from bridge.sql.split import split
from bridge.sql.statements import (
    CreateTable,
    CreateView,
    Explain,
    Insert,
    Name,
    QueryKeyword,
    QueryText,
    SetOption,
    Statement,
)
from bridge.sql.window_calls import replace_calls

__all__ = ["LEGAL", "parse_script"]

LEGAL = (
    "SET 'key' = 'value', CREATE [TEMPORARY] TABLE, CREATE [TEMPORARY] VIEW, INSERT INTO, "
    "EXECUTE STATEMENT SET BEGIN ... END, BEGIN STATEMENT SET; ... END, and EXPLAIN"
)
_CREATE = "TABLE or VIEW after CREATE [TEMPORARY] (a script defines nothing else)"


def parse_script(text: str, file: str) -> tuple[Statement, ...]:
    """Parses all statements in order; those of a statement set are in the result like all others.

    Raises DdlError with file, line and column for what is not legal, and UnsupportedError for legal parts of Flink SQL
    that are not supported. Messages contain no option values.
    """
    return tuple(_statements(Source(text, file)))


def _statements(source: Source) -> Iterator[Statement]:
    opened: Token | None = None
    inserts = 0
    tables: dict[str, Clauses] = {}
    for written in split(source):
        part, c = written, written.cursor()
        start = c.token
        if c.take("EXECUTE", "STATEMENT", "SET") or c.at("BEGIN", "STATEMENT", "SET"):
            opened, inserts = _open_set(c, start, opened), 0
            part = written.without(c.index)
            if part.tokens[0].kind == "end":
                continue
        elif opened is not None and c.take("END"):
            _expect_end(c)
            if not inserts:
                c.fail("this statement set has no INSERT INTO", opened)
            opened = None
            continue
        statement = _statement(part, opened is not None, tables)
        inserts += 1
        yield statement
    if opened is not None:
        raise source.error("this statement set is not closed; end it with END;", opened.start)


def _open_set(c: Cursor, start: Token, opened: Token | None) -> Token:
    """Consumes the head of a statement set after EXECUTE STATEMENT SET, or at BEGIN STATEMENT SET."""
    if opened is not None:
        c.fail("a statement set cannot contain another one; end the first one with END;", start)
    if start.keyword == "EXECUTE":
        c.expect("BEGIN", " after EXECUTE STATEMENT SET")
        return start
    c.index += 3
    if c.token.kind != "end":
        c.fail_expected("';' after BEGIN STATEMENT SET")
    return start


def _statement(part: Part, in_set: bool, tables: dict[str, Clauses]) -> Statement:
    c = part.cursor()
    start = c.token
    if in_set:
        _refuse_glued_end(c)
        if not c.at("INSERT"):
            c.fail_expected("INSERT INTO or END (a statement set consists of INSERTs)")
    if c.take("SET"):
        return _set_option(c, start)
    if c.take("CREATE"):
        return _create(part, c, start, tables)
    if c.at("INSERT"):
        return _insert(part, c, start)
    if c.take("EXPLAIN"):
        return _explain(part, c, start)
    if c.at("SELECT") or c.at("WITH") or c.at("VALUES"):
        c.fail(
            "a query on its own has no sink; write INSERT INTO a table (a script has no terminal to show rows)"
        )
    if c.token.kind in ("word", "name"):
        c.fail(f"{c.token} does not start a statement of a script; legal are {LEGAL}")
    c.fail_expected(f"a statement: {LEGAL}")


def _refuse_glued_end(c: Cursor) -> None:
    """Raises DdlError for `... FROM t END`, in which END would be read as an alias."""
    words = [t.keyword for t in c.tokens]
    last = c.tokens[-2]
    if last.keyword == "END" and words.count("END") > words.count("CASE"):
        c.fail("expected ';' before END, as in Flink", last)


def _expect_end(c: Cursor) -> None:
    if c.token.kind != "end":
        c.fail_expected("';' or the end of the statement")


def _set_option(c: Cursor, start: Token) -> SetOption:
    if c.token.kind != "string":
        c.fail_expected("the key in single quotes: SET 'key' = 'value'")
    # A value may be a secret.
    key, c.quotes_tokens = c.next(), False
    c.expect("=", f" after '{key.text}'")
    value = c.string(f"the value of '{key.text}'")
    _expect_end(c)
    return SetOption(c.source, start.start, Name(key.text, key.start), value.text)


def _create(part: Part, c: Cursor, start: Token, tables: dict[str, Clauses]) -> CreateTable | CreateView:
    if c.take("OR", "REPLACE"):
        c.fail("OR REPLACE is not supported: a script defines each name once; remove it", c.peek(-2))
    c.take("TEMPORARY")
    if c.take("VIEW"):
        return _create_view(part, c, start)
    if not c.take("TABLE"):
        c.fail_expected(_CREATE)
    if_not_exists = c.take("IF", "NOT", "EXISTS")
    name = _name(c)
    part, proctime = _rewritten(part, name, tables)
    c = part.cursor()
    ddl = parse_create_table(c)
    _expect_end(c)
    keys = {
        t.text: t.start
        for t, after in pairwise(part.tokens)
        if t.kind == "string" and after.keyword == "=" and t.text in ddl.options
    }
    return CreateTable(c.source, start.start, name, ddl, if_not_exists, keys, proctime)


def _rewritten(part: Part, name: Name, tables: dict[str, Clauses]) -> tuple[Part, tuple[str, ...]]:
    """The statement without LIKE and without PROCTIME() columns, and the names of these."""
    clauses = clauses_of(part)
    if clauses is None:
        return part, ()
    if clauses.like is not None:
        clauses = expanded(part, clauses, tables)
        part = clauses.part(part)
    tables.setdefault(name.text, clauses)
    kept, proctime = without_proctime(clauses)
    return (kept.part(part), proctime) if proctime else (part, ())


def _create_view(part: Part, c: Cursor, start: Token) -> CreateView:
    if_not_exists = c.take("IF", "NOT", "EXISTS")
    name, columns = _name(c), _columns(c)
    if c.take("COMMENT"):
        c.string("the view's comment")
    c.expect("AS", " and the query of the view")
    return CreateView(c.source, start.start, name, columns, _query(part, c), if_not_exists)


def _insert(part: Part, c: Cursor, start: Token) -> Insert:
    c.expect("INSERT")
    if c.at("OVERWRITE"):
        c.fail("INSERT OVERWRITE is for bounded tables; write INSERT INTO")
    c.expect("INTO", " after INSERT")
    sink = _name(c)
    if c.at("PARTITION"):
        c.fail(
            "PARTITION is not supported: neither topics nor clustered Delta tables have such partitions; remove it"
        )
    columns = () if _opens_query(c) else _columns(c)
    return Insert(c.source, start.start, sink, columns, _query(part, c))


def _explain(part: Part, c: Cursor, start: Token) -> Explain:
    if c.take("PLAN"):
        c.expect("FOR", " after PLAN")
    if c.at("INSERT"):
        return Explain(c.source, start.start, _insert(part, c, c.token))
    if c.token.keyword not in ("SELECT", "WITH", "("):
        c.fail_expected(
            "[PLAN FOR] and INSERT INTO or SELECT after EXPLAIN (details of the plan cannot be chosen)"
        )
    return Explain(c.source, start.start, _query(part, c))


def _query(part: Part, c: Cursor) -> QueryText:
    if not _opens_query(c) and c.token.keyword not in tuple(QueryKeyword):
        c.fail_expected("SELECT, WITH or VALUES")
    query = part.without(c.index)
    parsed, windows = replace_calls(query)
    refuse_parts(parsed)
    refuse_stray_tokens(parsed)
    return QueryText(query, windows, parsed)


def _opens_query(c: Cursor) -> bool:
    return c.token.keyword == "(" and c.peek(1).keyword in ("SELECT", "WITH", "VALUES", "(")


def _name(c: Cursor) -> Name:
    start = c.token.start
    return Name(table_name(c), start)


def _columns(c: Cursor) -> tuple[Name, ...]:
    if not c.take("("):
        return ()
    tokens = c.comma_separated(lambda: c.name("a column"))
    return tuple(Name(t.text, t.start) for t in tokens)
