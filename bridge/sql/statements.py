"""The statements of a script, as they are written: nothing in them is resolved yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from bridge.ddl import Ddl
from bridge.ddl.part import Part
from bridge.ddl.tokens import Source, Token


@dataclass(frozen=True)
class Name:
    """A name with dots and without quotes, and the offset at which it starts."""

    text: str
    start: int


class QueryKeyword(str, Enum):
    """The word that a query starts with."""

    SELECT = "SELECT"
    VALUES = "VALUES"
    WITH = "WITH"


class WindowFunction(str, Enum):
    """The window table functions of Flink that a query may call."""

    TUMBLE = "TUMBLE"
    HOP = "HOP"
    CUMULATE = "CUMULATE"


@dataclass(frozen=True)
class WindowCall:
    """A window table function with its arguments, intervals in milliseconds. `step_ms` is the slide of HOP, the step of
    CUMULATE, and the size of TUMBLE; `start` is the offset of the function's name in the script."""

    function: WindowFunction
    table: Name
    column: Name
    size_ms: int
    step_ms: int
    offset_ms: int
    start: int


@dataclass(frozen=True)
class QueryText:
    """A query: `part` holds its tokens and nothing else. `windows` are the window table functions in it by the names
    that stand for them in `parsed`."""

    part: Part
    windows: Mapping[str, WindowCall] = field(default_factory=dict)
    parsed: Part | None = None

    @property
    def start(self) -> int:
        return self.part.tokens[0].start

    @property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens of the query as it is written, without the one of kind `end`."""
        return self.part.tokens[:-1]


@dataclass(frozen=True)
class Statement:
    """Base of all statements; `start` is the offset of its first word in `source`."""

    source: Source
    start: int

    @property
    def line(self) -> int:
        """The line of the script in which the statement starts; the first is 1."""
        return self.source.text.count("\n", 0, self.start) + 1


@dataclass(frozen=True)
class SetOption(Statement):
    """SET 'key' = 'value'."""

    key: Name
    value: str


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE [TEMPORARY] TABLE [IF NOT EXISTS]."""

    name: Name
    ddl: Ddl
    if_not_exists: bool
    options: Mapping[str, int] = field(default_factory=dict)
    """The offsets of the keys in WITH."""
    proctime: tuple[str, ...] = ()
    """Its columns AS PROCTIME(), which `ddl` does not have."""


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE [TEMPORARY] VIEW [IF NOT EXISTS] name [(columns)] AS query."""

    name: Name
    columns: tuple[Name, ...]
    query: QueryText
    if_not_exists: bool


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT INTO sink [(columns)] query; `columns` is empty if the statement lists none."""

    sink: Name
    columns: tuple[Name, ...]
    query: QueryText


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN [PLAN FOR] of an INSERT or of a query."""

    explained: Insert | QueryText
