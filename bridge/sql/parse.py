"""Parses the statements of a script, and leaves their queries as tokens.

sqlglot does not read window table functions, such as `TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTES))`,
so each call becomes the name of a table. Tokens keep their places, so errors name the text that is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from bridge.ddl.intervals import parse_interval
from bridge.ddl.part import Part
from bridge.ddl.refused_parts import refuse_parts, refuse_stray_tokens
from bridge.ddl.statement import parse_create_table, table_name
from bridge.ddl.tokens import Cursor, Source, Token, tokenize
from bridge.sql.create_table import Clauses, clauses_of, expanded, without_proctime
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
    WindowCall,
    WindowFunction,
)

_INTERVALS = {
    WindowFunction.TUMBLE: ("SIZE",),
    WindowFunction.HOP: ("SLIDE", "SIZE"),
    WindowFunction.CUMULATE: ("STEP", "SIZE"),
}
"""The intervals of each function in the order of its arguments; an OFFSET may follow."""


def replace_calls(part: Part) -> tuple[Part, Mapping[str, WindowCall]]:
    """Replaces each call in FROM by a name that no table can have; returns the calls by these names.

    The text of the script is as long as before, with the name and blanks in the place of a call. Raises DdlError, with
    the place, for arguments that are missing, unknown or illegal.
    """
    tokens, text = list(part.tokens), part.source.text
    calls: dict[str, WindowCall] = {}
    for at in reversed(range(len(tokens))):
        if not _is_call(tokens, at):
            continue
        c = part.cursor()
        c.index = at
        has_table = c.take("TABLE", "(")
        call = _call(c)
        if has_table:
            c.expect(")", " after the window table function")
        name = f"w {len(calls)}"
        calls[name] = call
        begin, end = tokens[at].start, tokens[c.index - 1].end
        # All lines stay where they are: the word DESCRIPTOR has room for the name.
        place = next(t.start for t in part.tokens[at:] if t.keyword == "DESCRIPTOR")
        blanks = "".join("\n" if letter == "\n" else " " for letter in text[begin:end])
        text = text[:begin] + blanks + text[end:]
        text = f"{text[:place]}`{name}`{text[place + len(name) + 2 :]}"
        tokens[at : c.index] = [Token("name", name, place, place + len(name) + 2)]
    return (Part(Source(text, part.source.file), tuple(tokens)), calls) if calls else (part, {})


def _is_call(tokens: list[Token], at: int) -> bool:
    """Whether a table in FROM begins here that is a window table function; Flink takes it with and without TABLE()."""
    if at == 0 or tokens[at - 1].keyword not in ("FROM", "JOIN", ","):
        return False
    words = [t.keyword for t in tokens[at : at + 4]]
    if words[:2] == ["TABLE", "("]:
        return words[2] in WindowFunction.__members__ and words[3:] == ["("]
    return words[0] in WindowFunction.__members__ and words[1:3] in (["(", "TABLE"], ["(", "DATA"])


def _call(c: Cursor) -> WindowCall:
    start = c.next()
    function = WindowFunction(start.keyword)
    c.expect("(")
    arguments = _Arguments(c, function)
    arguments.parse()
    return arguments.call(start)


class _Arguments:
    """The arguments of one call, by position or by name."""

    def __init__(self, c: Cursor, function: WindowFunction) -> None:
        self._c, self._function = c, function
        self._names = ("DATA", "TIMECOL", *_INTERVALS[function], "OFFSET")
        self._found: dict[str, Name | int] = {}
        self._places: dict[str, Token] = {}

    def parse(self) -> None:
        """Consumes all arguments and the parenthesis after them."""
        c = self._c
        by_name = c.peek(1).keyword == "=" and c.peek(2).keyword == ">"
        positions: Iterator[str] = iter(self._names)

        def argument() -> None:
            token = c.token
            name = self._named() if by_name else next(positions, "")
            if not name:
                c.fail(f"{self._function.value} takes {self._usage()}", token)
            if name in self._found:
                c.fail(f"{name} of {self._function.value} is given twice", token)
            read: dict[str, Callable[[], Name | int]] = {"DATA": self._table, "TIMECOL": self._column}
            self._places[name] = c.token
            self._found[name] = read.get(name, lambda: self._interval(name))()

        c.comma_separated(argument)

    def call(self, start: Token) -> WindowCall:
        """Checks what was found. Raises DdlError as Flink's planner does."""
        missing = next((name for name in self._names[:-1] if name not in self._found), None)
        if missing is not None:
            self._c.fail(
                f"{self._function.value} has no {missing}; {self._function.value} takes {self._usage()}",
                start,
            )
        table, column = self._found["DATA"], self._found["TIMECOL"]
        assert isinstance(table, Name) and isinstance(column, Name)
        size, offset = self._ms("SIZE"), self._ms("OFFSET", 0)
        step = self._ms(self._names[2])
        if size % step:
            word = self._names[2].lower()
            self._c.fail(
                f"{self._function.value} requires a size that is an integral multiple of its {word}, and {size:,} ms "
                f"is none of {step:,} ms",
                self._places["SIZE"],
            )
        return WindowCall(self._function, table, column, size, step, offset, start.start)

    def _ms(self, name: str, default: int | None = None) -> int:
        value = self._found.get(name, default)
        assert isinstance(value, int)
        return value

    def _named(self) -> str:
        c = self._c
        token = c.name("the name of an argument")
        if token.text.upper() not in self._names:
            c.fail(
                f"{self._function.value} has no argument {token.text}; legal are {', '.join(self._names)}",
                token,
            )
        c.expect("=", " and '>' after the name of an argument")
        c.expect(">", " after '='")
        return token.text.upper()

    def _table(self) -> Name:
        c = self._c
        c.expect("TABLE", " and the name of a table or view")
        if c.at("("):
            c.fail("a query in a window table function is not supported; create a view, and name it here")
        start = c.token.start
        return Name(table_name(c), start)

    def _column(self) -> Name:
        c = self._c
        c.expect("DESCRIPTOR", " and the column of the WATERMARK in parentheses")
        c.expect("(")
        token = c.name("the column of the WATERMARK")
        c.expect(")", " (a window has one time column)")
        return Name(token.text, token.start)

    def _interval(self, name: str) -> int:
        """The milliseconds of `INTERVAL 'n' UNIT`; only an OFFSET may be negative."""
        c = self._c
        c.expect("INTERVAL", f" for {name}: INTERVAL '10' MINUTES")
        seconds, amount = parse_interval(c, name, negative=name == "OFFSET")
        ms = int(seconds * 1000)
        if ms != seconds * 1000:
            c.fail(f"{name} must be whole milliseconds", amount)
        if ms == 0 and name != "OFFSET":
            c.fail(f"the length of {name} must be a number above 0", amount)
        return ms

    def _usage(self) -> str:
        intervals = ", ".join(f"INTERVAL ... ({name.lower()})" for name in _INTERVALS[self._function])
        return f"TABLE name, DESCRIPTOR(column), {intervals}[, INTERVAL ... (offset)]"


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


def split(source: Source) -> Iterator[Part]:
    """Yields each statement that is not empty, in order.

    Raises DdlError for a string, name or comment that is not closed, and for a hint, which would be lost as a comment.
    """
    tokens = tokenize(source)
    _refuse_hints(source, tokens)
    statement: list[Token] = []
    for token in tokens:
        if token.keyword != ";" and token.kind != "end":
            statement.append(token)
            continue
        if statement:
            yield Part(source, (*statement, Token("end", "", token.start, token.start)))
        statement = []


def _refuse_hints(source: Source, tokens: list[Token]) -> None:
    """Raises DdlError for `/*+ ... */` between two tokens: only comments and blanks are there."""
    before = 0
    for token in tokens:
        hint = source.text.find("/*+", before, token.start)
        line = source.text[max(before, source.text.rfind("\n", 0, hint) + 1) : hint] if hint >= 0 else "--"
        if "--" not in line and "//" not in line:
            raise source.error(
                "hints (/*+ ... */) are not supported; write options into WITH of the table, and remove the hint",
                hint,
            )
        before = token.end
