"""Window table functions in the text of a query: `TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTES))`.

sqlglot does not read them, so each call becomes the name of a table before a query is parsed. Tokens keep their places,
so errors name the text that is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from bridge.ddl.cursor import Cursor
from bridge.ddl.intervals import parse_interval
from bridge.ddl.part import Part
from bridge.ddl.statement import table_name
from bridge.ddl.tokens import Source, Token
from bridge.sql.statements import Name, WindowCall, WindowFunction

__all__ = ["replace_calls"]

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
