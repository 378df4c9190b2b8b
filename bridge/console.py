"""Prints what the command line shows: a line per batch, a spinner on a terminal, tables and error messages."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.status import Status
from rich.table import Table
from rich.text import Text

from bridge.metrics import BatchReport, RunName, Summary
from bridge.metrics.events import event

_PIPE_WIDTH = 160
"""The assumed width of a pipe, wide enough that results are not wrapped."""

_UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"

LOG_FORMATS = ("text", "json")
_LOGGED = ("bridge.metrics", "bridge.publish")
"""Loggers whose warnings are for users; those of `bridge.kafka` are librdkafka's."""


class _Log:
    """How this process writes."""

    as_json = False


def log_as(format: str) -> None:
    """From now on write lines for people (`text`), or each line as a JSON object (`json`): batches as events do, all
    others with `at`, `level` and `message`."""
    _Log.as_json = format == "json"
    for name in _LOGGED:
        logger = logging.getLogger(name)
        if not any(isinstance(handler, _OnStandardError) for handler in logger.handlers):
            logger.addHandler(_OnStandardError(logging.WARNING))


class _OnStandardError(logging.Handler):
    """Prints what the bridge logs, which is told in no batch: as all else, also as JSON."""

    def emit(self, record: logging.LogRecord) -> None:
        text = f"warning: {record.getMessage()}"
        sys.stderr.write((_json_line("warning", text) if _Log.as_json else text) + "\n")


def printable(text: str) -> str:
    """Returns the text with a sign in place of each character that a terminal may obey, such as ESC, but for ends of
    lines and tabs: names, values and errors are written by others."""
    return text if text.isprintable() else "".join(c if _is_shown(c) else _UNPRINTABLE for c in text)


def _is_shown(character: str) -> bool:
    return character.isprintable() or character in "\n\t\u00a0\u3000"


def _plain(text: str) -> str:
    """Returns what rich prints as the text, without markup."""
    return escape(printable(text))


def duration(seconds: float) -> str:
    """Formats a duration: 0.8 s, 12 s, 3 min 20 s, 5 h 3 min, 2 d 7 h."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def batch_line(report: BatchReport) -> str:
    """Formats the report of one batch as one line without markup; a warning adds a second line."""
    counts = f"+I {report.inserted:,}  +U {report.updated:,}  -D {report.deleted:,}"
    if report.verb == "ingest":
        what = f"{report.records_in:,} records  {counts}  unchanged {report.unchanged:,}"
    elif report.verb == "insert":
        what = counts
    else:
        what = f"{report.records_out:,} records, {report.tombstones:,} of them tombstones"
    parts = [f"{report.verb} {report.pipeline}", f"batch {report.batch}", f"version {report.version}", what]
    if report.lost:
        parts.append(f"{report.lost:,} records lost")
    if report.pending_records:
        parts.append(
            f"{report.pending_records:,} {'records' if report.verb == 'ingest' else 'versions'} behind"
        )
    if report.bad_records:
        parts.append(f"{report.bad_records:,} bad records not applied")
    if report.unexpected_rows:
        parts.append(f"{report.unexpected_rows:,} rows failed the gate")
    if report.keys_in_two_partitions:
        parts.append(f"{report.keys_in_two_partitions:,} keys in two partitions")
    if report.event_time_lag_seconds is not None:
        parts.append(f"event time {duration(max(0.0, report.event_time_lag_seconds))} behind")
    if report.engine:
        parts.append(f"computed from {report.engine}" if report.verb == "insert" else f"by {report.engine}")
    if report.reader:
        parts.append(f"read by {report.reader}")
    if report.sender:
        encoder = f", encoded by {report.encoder}" if report.encoder != report.sender else ""
        parts.append(f"sent by {report.sender}{encoder}")
    took = f"{report.seconds:.2f} s" if report.seconds < 1 else duration(report.seconds)
    line = "  ".join([*parts, took])
    return f"{line}\n  warning: {report.warning}" if report.warning else line


class Screen:
    """Writes output: with colours and a spinner on a terminal, as plain lines elsewhere; `quiet` drops progress."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.out = Console(highlight=False, soft_wrap=True)
        if not self.out.is_terminal:
            self.out.width = _PIPE_WIDTH
        self.err = Console(stderr=True, highlight=False, soft_wrap=True)
        self.quiet = quiet
        self._status: Status | None = None

    def info(self, text: str) -> None:
        """Prints a line of progress, unless quiet."""
        if self.quiet:
            return
        if _Log.as_json:
            self.lines(_json_line("warning" if text.startswith("warning: ") else "info", text))
        else:
            self.out.print(_plain(text))

    def conclusion(self, text: str) -> None:
        """Prints a line of a result."""
        if _Log.as_json:
            self.lines(_json_line("info", text))
        else:
            self.out.print(printable(text), markup=False)

    def lines(self, text: str) -> None:
        """Prints a result unchanged: without wrapping, colours or markup."""
        sys.stdout.write(text + "\n")

    def batch(self, report: BatchReport) -> None:
        """Prints a line for a batch; serves as a `Listener`."""
        if _Log.as_json and not self.quiet:
            run = RunName(report.pipeline, report.verb, report.topic)
            level = "warning" if report.warning else "info"
            self.lines(json.dumps({**event("batch", run, report.as_dict()), "level": level}, default=str))
            return
        self.info(batch_line(report))
        if self._status is not None:
            self._status.update(_status_text(report))

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Shows that an operation is running: a spinner on a terminal, one line elsewhere."""
        if self.quiet or _Log.as_json or not self.out.is_terminal:
            self.info(what)
            yield
            return
        with self.out.status(_plain(what)) as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None

    def table(self, title: str, rows: Mapping[str, str]) -> None:
        """Prints a result as two columns, one row per entry."""
        if _Log.as_json:
            self.lines(_json_line("info", title, **rows))
            return
        table = Table(
            title=_plain(title), title_justify="left", title_style="bold", show_header=False, box=None
        )
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in rows.items():
            table.add_row(_plain(name), _plain(value))
        self.out.print(table)

    def grid(self, title: str, head: Sequence[str], rows: Iterable[tuple[tuple[str, str], str, str]]) -> None:
        """Prints a result of several columns. The first cell of a row is (text, style); the style repeats what the text
        says."""
        if _Log.as_json:
            for (text, _), *cells in rows:
                self.lines(_json_line("info", title, **dict(zip(head, (text, *cells), strict=True))))
            return
        table = Table(
            title=_plain(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False
        )
        for name in head:
            table.add_column(name, overflow="fold", no_wrap=name == head[0])
        for (text, style), *cells in rows:
            table.add_row(Text(printable(text), style), *(_plain(cell) for cell in cells))
        self.out.print(table)

    def result(self, title: str, value: Any, *, json: bool, rows: Mapping[str, str] | None = None) -> None:
        """Prints a result: as JSON all of `value`; as a table `rows`, or without them the non-empty entries of the
        mapping `value`, with one line per element of a list."""
        if json:
            self.json(value)
        elif rows is not None:
            self.table(title, rows)
        else:
            lines = {n: "\n".join(v) if isinstance(v, list | tuple) else v for n, v in value.items()}
            self.table(title, {n.replace("_", " "): str(v) for n, v in lines.items() if v not in (None, "")})

    def json(self, value: Any) -> None:
        """Prints a result as plain JSON on standard output."""
        sys.stdout.write(json.dumps(value, indent=2, default=str) + "\n")

    def error(self, title: str, message: str) -> None:
        """Prints an error message, without a traceback, on standard error."""
        if _Log.as_json:
            sys.stderr.write(_json_line("error", message, title=title) + "\n")
            return
        if self.err.is_terminal:
            self.err.print(
                Panel(_plain(message), title=_plain(title), title_align="left", border_style="red")
            )
        else:
            self.err.print(_plain(f"{title}: {message}"))


def _json_line(level: str, message: str, **more: str) -> str:
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return json.dumps({"at": at, "level": level, "message": message, **more}, ensure_ascii=False)


def _status_text(report: BatchReport) -> str:
    behind = f"{report.pending_records:,} behind" if report.pending_records else "up to date"
    return _plain(f"{report.verb} {report.pipeline}: {behind}; Ctrl-C stops after the current batch")


def summary_rows(summary: Summary) -> dict[str, str]:
    """Formats the summary of a run for `Screen.table`."""
    rate = summary.records_in / summary.seconds if summary.seconds else 0.0
    rows = {"batches": f"{summary.batches:,}"}
    if summary.version is not None:
        rows["table version"] = str(summary.version)
    if summary.verb == "ingest":
        rows["records in"] = f"{summary.records_in:,} ({rate:,.0f}/s)"
        rows["applied"] = f"+I {summary.inserted:,}  +U {summary.updated:,}  -D {summary.deleted:,}"
        rows["unchanged"] = f"{summary.unchanged:,}"
    else:
        rate = summary.records_out / summary.seconds if summary.seconds else 0.0
        rows["records out"] = (
            f"{summary.records_out:,} ({rate:,.0f}/s), {summary.tombstones:,} of them tombstones"
        )
    if summary.lost:
        rows["records lost"] = (
            f"{summary.lost:,} not acknowledged by the broker, which 'sink.delivery-guarantee' = 'none' allows"
        )
    if summary.bad_records:
        rows["bad records not applied"] = f"{summary.bad_records:,}"
    if summary.unexpected_rows:
        rows["rows that failed the gate"] = f"{summary.unexpected_rows:,}"
    if summary.maintained:
        rows["maintenance"] = "once" if summary.maintained == 1 else f"{summary.maintained} times"
    if summary.warning:
        rows["warning"] = summary.warning
    rows["time"] = duration(summary.seconds)
    return rows


def explanation_rows(explanation: Mapping[str, Any]) -> dict[str, str]:
    """Formats an explanation of `pipelines.ingest.explain` for `Screen.table`."""

    def files(which: str) -> str:
        return f"{explanation[f'files{which}']:,} files, {explanation[f'bytes{which}'] / 1e6:,.1f} MB"

    rows = {
        "records": f"{explanation['records']:,} of {explanation['pending_records']:,} pending",
        "keys": f"{explanation['keys']:,}, {explanation['deletes']:,} of them deletes",
        "table": f"{files('')}, {explanation['rows']:,} rows",
        "not pruned by statistics": files("_in_range"),
        "with a key of the batch": f"{files('_touched')}, {explanation['rows_touched']:,} of their rows",
        "why": explanation["why"],
    }
    ways = {part: explanation[part] for part in ("reader", "engine") if explanation[part]}
    return rows | ways


def range_rows(explanation: Mapping[str, Any]) -> dict[str, str]:
    """Formats an explanation of `pipelines.publish.explain` for `Screen.table`."""
    rows = {
        "topic": explanation["topic"],
        "table": f"{explanation['table']}, {explanation['pending_versions']:,} versions pending",
        "range": explanation["range"],
    }
    ways = {part: explanation[part] for part in ("sender", "encoder") if explanation[part]}
    most = explanation["transactions"]
    return rows | ways | ({"transactions": f"at most {most:,}"} if most else {})
