"""What a script comes to: frozen values that a run executes. Nothing here is executed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from sqlglot import exp

from bridge.ddl.tokens import Token
from bridge.definition import BadRecords, Run
from bridge.expressions.precision import loses_digits
from bridge.metrics.monitoring import NOWHERE, Monitoring
from bridge.schema import DataType
from bridge.sql.accumulators import Accumulator, Averages
from bridge.sql.connectors import Table
from bridge.sql.failing_rows import FailingRows
from bridge.sql.plain_aggregates import PlainAggregate
from bridge.sql.statements import Statement
from bridge.sql.tree import Substitute, spark_text
from bridge.sql.window import WindowSpan


@dataclass(frozen=True)
class Scan:
    """One place in a query where a table is read; `name` stands there for the table."""

    name: str
    source: str
    apart: frozenset[str]
    """The scans of the other queries of a UNION ALL, whose rows do not meet those of this one."""


@dataclass(frozen=True)
class JoinedRows:
    """A query in Spark SQL that reads scans: the rows that an inner join gains when its tables only gain rows.

    `SELECT v.id, c.at FROM views AS v JOIN clicks AS c ON v.id = c.id` gains the joined rows of the added views and all
    clicks, and those of the added clicks and the views before. With every scan of a table for itself, that holds for
    joins of any number of tables, also of a table with itself: one after the other scan gives its added rows, those
    before it give the rows before, those after it all rows.
    """

    spark_sql: str
    scans: tuple[Scan, ...]


def joined_rows(query: exp.Query, sources: Collection[str]) -> JoinedRows:
    """The query with a name for each scan of its `sources`. It may project, filter, join by inner joins and UNION ALL
    only, so that each of its rows comes from one row of some scans."""
    copy = query.copy()
    # A name with two underscores is no user's; numbers tell the scans of a table apart.
    nodes = [table for table in copy.find_all(exp.Table, bfs=False) if table.name in sources]
    names = {id(table): f"__scan{number}_{table.name}" for number, table in enumerate(nodes)}
    scans = []
    for table in nodes:
        apart = {names[id(other)] for other in nodes if _are_apart(table, other)}
        scans.append(Scan(names[id(table)], table.name, frozenset(apart)))
    for table in nodes:
        table.set("this", exp.to_identifier(names[id(table)], quoted=True))
    return JoinedRows(spark_text(copy), tuple(scans))


def _are_apart(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether the nodes are in different queries of a UNION."""
    above = _with_ancestors(other)
    meeting = next(node for node in _with_ancestors(one) if any(node is found for found in above))
    return one is not other and isinstance(meeting, exp.Union)


def _with_ancestors(node: exp.Expr) -> list[exp.Expr]:
    """The node and those above it, up to the query."""
    found = [node]
    while (above := found[-1].parent) is not None:
        found.append(above)
    return found


_VERSION = 1
"""Raised when the same query comes to other rows, or to other state, than before."""


class QueryKind(str, Enum):
    """How the rows of a result are computed, by the outermost operation of the query."""

    PROJECTION = "projection"
    AGGREGATE = "aggregate"
    DISTINCT = "distinct"
    JOIN = "join"
    UNION = "union"
    TOP_N = "top-n"
    VALUES = "values"


@dataclass(frozen=True)
class ResultColumn:
    """A column of the sink, with its type there."""

    name: str
    type: DataType


@dataclass(frozen=True)
class SourceTable:
    """A table that INSERTs read. `columns` are those that they use, in the order of the table."""

    name: str
    connector: str
    place: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    is_updating: bool


@dataclass(frozen=True)
class StateTable:
    """A Delta table that keeps the rows of a source, because a query needs them again: by `key`, or all appended rows
    if it has none."""

    source: str
    key: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class PartColumn:
    """A column of the result by which it is computed in parts: the rows with a value of it come from the rows with the
    same value in `sources`, a column of each source; with `parts_sql` of one source."""

    name: str
    sources: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class EventTime:
    """The WATERMARK of a source: `late_sql` counts, of changed rows of the source, those whose windows are all closed
    (`late`) and those without a time (`timeless`)."""

    source: str
    column: str
    delay_ms: int
    idle_timeout_ms: int
    late_sql: str
    spans: tuple[WindowSpan, ...]
    """Those of the window table functions that read the source."""

    @property
    def longest_ms(self) -> int:
        """The size of the largest of its windows."""
        return max(span.size_ms for span in self.spans)

    def last_end_ms(self, time_ms: int) -> int:
        """The end, exclusive, of the last window that has rows of this time; epoch milliseconds."""
        return max(span.last_end_ms(time_ms) for span in self.spans)


@dataclass(frozen=True)
class WindowPlan:
    """The windows by which the rows of a result come: a row is known when the watermark of all sources has passed the
    end of its window, `ends_after_ms` after the value of `column` of the result; `column` is empty if it has none."""

    event_times: tuple[EventTime, ...]
    lateness_ms: int
    column: str
    ends_after_ms: int


@dataclass(frozen=True)
class InsertPlan:
    """One INSERT. `name` is that of its sink, with a number if several INSERTs write to it."""

    name: str
    line: int
    sink: str
    kind: QueryKind
    operations: tuple[str, ...]
    columns: tuple[ResultColumn, ...]
    key: tuple[str, ...]
    """The columns of the sink by which a row of the result replaces its former one; empty if rows are only added."""
    row_key: tuple[ResultColumn, ...]
    """The columns of the key where the sink has none, and one by which the result is computed in parts, which its table
    has beside `columns`; see `sql.row_key`."""
    merge_columns: tuple[str, ...]
    """The columns outside of the key that this INSERT has in a sink that others write, too, and `columns` has no
    others; empty if it writes whole rows. See `sink`."""
    is_updating: bool
    """False if rows of the result are only ever added."""
    keeps_last: bool
    """True if such rows replace each other by `key`, the last one by the position of its record; see `positions`."""
    positioned: tuple[str, ...]
    """The topics of whose rows the positions of their records are needed; see `positions`."""
    keeps_keys: bool
    """Whether keys of the query that differ are keys that differ in the sink, too: its types do not make them equal."""
    sources: tuple[SourceTable, ...]
    states: tuple[StateTable, ...]
    views: tuple[str, ...]
    parts: tuple[PartColumn, ...]
    """The columns whose values in a batch say which rows of the result to compute again; empty if all of them."""
    parts_sql: str
    """The values of these columns in the rows that the query aggregates, where changed rows do not have them; empty if
    they do."""
    accumulators: Mapping[str, Accumulator]
    """How the columns of the result merge with those of the added rows; empty if the rows before are needed again."""
    averages: Averages | None
    """What the result keeps for those of them that are averages; None without them."""
    counted_values: Mapping[str, str]
    """For each COUNT(DISTINCT) among these columns the values that it counts, in Spark SQL, with the columns of the key
    of their groups; not each only once."""
    plain: PlainAggregate | None
    """Set if these columns are aggregates of columns of one source as they are, without any expression."""
    joined: JoinedRows | None
    """Set if rows of the result come from several rows of sources, and are only ever added, or are aggregated so that
    those of added rows are merged with the result."""
    spark_sql: str
    """The rows of the result, from tables that have the names of the sources."""
    failing: tuple[FailingRows, ...]
    """The rows for which the query fails; they are left out of it unless they stop the run."""
    windows: WindowPlan | None
    """Set if the rows of the result come when their windows close; they are then computed by no other way."""
    fingerprint: str
    """Changes whenever the query, its sources or its sink change in a way that changes the rows of the result."""

    @property
    def has_one_row_a_key(self) -> bool:
        """Whether no two rows of the query can have one key, as with GROUP BY and DISTINCT."""
        return bool(self.key) and self.keeps_keys and self.kind in (QueryKind.AGGREGATE, QueryKind.DISTINCT)

    @property
    def cuts_key(self) -> bool:
        """Whether a key column is a time to whose digits a query may have cut others; bounds of windows are whole."""
        types = [c.type for c in self.columns if c.name in self.key]
        return self.windows is None and any(loses_digits(None, type) for type in types)

    @property
    def kept_columns(self) -> tuple[ResultColumn, ...]:
        """The columns that the table of the result has beside those of the sink."""
        found = self.averages.columns if self.averages is not None else ()
        return tuple(ResultColumn(name, type) for name, type in found)

    def without_kept_columns(self) -> InsertPlan:
        """The same for a table that does not have them."""
        return replace(self, averages=None, accumulators={}) if self.averages is not None else self

    @property
    def kept_sql(self) -> str:
        """`spark_sql` with the columns that are kept."""
        return self.averages.spark_sql if self.averages is not None else self.spark_sql


@dataclass(frozen=True)
class Script:
    """A script that is accepted. `base` is the folder to which paths in it are relative."""

    name: str
    file: str
    base: str
    statements: tuple[Statement, ...]
    tables: tuple[Table, ...]
    views: tuple[str, ...]
    inserts: tuple[InsertPlan, ...]
    explained: tuple[InsertPlan | str, ...]
    """What the EXPLAINs of the script are about: a plan, or the Spark SQL of a query."""
    state: str | None = None
    """The folder of the script's state, from SET 'bridge.state'."""
    removes_closed: bool = False
    """Whether rows of closed windows are removed from the states, from SET 'bridge.state.closed-windows'."""
    bad_records: BadRecords = BadRecords.FAIL
    """What becomes of records and rows that cannot be applied, from SET 'bridge.bad-records'."""
    step_timeout_seconds: float = Run.step_timeout_seconds
    """See `definition.Run`; from SET 'bridge.step-timeout'."""
    monitoring: Monitoring = NOWHERE
    """From SET 'bridge.metrics', 'bridge.events', 'bridge.alert', 'bridge.otlp' and 'bridge.lineage'."""
    warnings: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[SourceTable, ...]:
        """All tables that INSERTs read, each once, with all columns that one of them uses."""
        found: dict[str, SourceTable] = {}
        for source in (s for plan in self.inserts for s in plan.sources):
            used = {*source.columns, *(found[source.name].columns if source.name in found else ())}
            table = next(t for t in self.tables if t.name == source.name)
            names = tuple(n for n in table.ddl.schema.names if n in used)
            found[source.name] = SourceTable(
                source.name, source.connector, source.place, source.key, names, source.is_updating
            )
        return tuple(found.values())

    def windowed_reads(self, source: str) -> tuple[tuple[InsertPlan, EventTime], ...]:
        """The INSERTs that read a table, each with its event time there, if none of them needs rows of closed windows
        again; else empty."""
        plans = [plan for plan in self.inserts if any(s.name == source for s in plan.sources)]
        if not all(plan.windows is not None for plan in plans):
            return ()
        times = [(plan, plan.windows.event_times) for plan in plans if plan.windows is not None]
        return tuple((plan, time) for plan, found in times for time in found if time.source == source)


def words(tokens: Iterable[Token], substitute: Substitute) -> tuple[str, ...]:
    """Returns the tokens of a query so that spaces, comments, quotes of names and case make no difference.

    Column names that differ only in case cannot exist, so no two queries become equal.
    """
    return tuple(
        f"'{substitute(t.text, t.start)}'" if t.kind == "string" else t.text.casefold() for t in tokens
    )


def fingerprint(
    query: Sequence[str],
    sources: Sequence[Table],
    used: Sequence[Sequence[str]],
    sink: object,
    watermarks: Sequence[object] = (),
) -> str:
    """Returns a digest of the query's words, of the columns that it uses of each source, of the sink's columns, and of
    the `watermarks` that close its windows.

    It depends on neither sqlglot nor Spark, so that a new version of them does not ask for a rebuild; and not on
    brokers, credentials or client settings.
    """
    tables = [
        {
            "name": table.name,
            "connector": table.connector.value,
            "place": table.written_place,
            "key": list(table.key),
            "columns": [_described(table, name) for name in names],
        }
        for table, names in zip(sources, used, strict=True)
    ]
    parts = [_VERSION, list(query), tables, sink, *([list(watermarks)] if watermarks else [])]
    text = json.dumps(parts, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _described(table: Table, name: str) -> list[str]:
    column = next(c for c in table.ddl.schema if c.name == name)
    type = getattr(column, "type", None)
    origin = getattr(column, "expression", None) or getattr(column, "key", "")
    return [name, type.flink() if type is not None else "", str(origin)]
