"""What people see: one line per batch, a spinner on a terminal, short tables, one-screen errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.status import Status
from rich.table import Table
from rich.text import Text

from bridge.metrics import BatchReport, Summary

__all__ = ["Screen", "batch_line", "duration", "explanation_rows", "summary_rows"]

_PIPE_WIDTH = 160
"""A pipe has no width of its own; results should not be folded for one."""


def duration(seconds: float) -> str:
    """Seconds as people say them: 0.8 s, 12 s, 3 min 20 s, 5 h 3 min, 2 d 7 h."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def batch_line(report: BatchReport) -> str:
    """One finished batch on one line, without markup."""
    if report.verb == "ingest":
        counts = f"+I {report.inserted:,}  +U {report.updated:,}  -D {report.deleted:,}"
        what = f"{report.records_in:,} records  {counts}  unchanged {report.unchanged:,}"
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
        parts.append(f"{report.bad_records:,} bad records left out")
    if report.unexpected_rows:
        parts.append(f"{report.unexpected_rows:,} rows not as expected")
    if report.keys_in_two_partitions:
        parts.append(f"{report.keys_in_two_partitions:,} keys seen in two partitions")
    if report.event_time_lag_seconds is not None:
        parts.append(f"event time {duration(max(0.0, report.event_time_lag_seconds))} behind")
    if report.engine:
        parts.append(f"by {report.engine}")
    line = "  ".join([*parts, duration(report.seconds)])
    return f"{line}\n  warning: {report.warning}" if report.warning else line


class Screen:
    """Where output goes. A terminal gets colours and a spinner, a pipe gets plain lines, `quiet` only results."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.out = Console(highlight=False, soft_wrap=True)
        if not self.out.is_terminal:
            self.out.width = _PIPE_WIDTH
        self.err = Console(stderr=True, highlight=False, soft_wrap=True)
        self.quiet = quiet
        self._status: Status | None = None

    def info(self, text: str) -> None:
        """A line of progress; dropped when quiet."""
        if not self.quiet:
            self.out.print(escape(text))

    def lines(self, text: str) -> None:
        """A result as it stands: never folded, coloured or taken for markup."""
        sys.stdout.write(text + "\n")

    def batch(self, report: BatchReport) -> None:
        """A Listener: one line per batch."""
        self.info(batch_line(report))
        if self._status is not None:
            self._status.update(_status_text(report))

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Show that something is going on: a spinner on a terminal, one line elsewhere."""
        if self.quiet or not self.out.is_terminal:
            self.info(what)
            yield
            return
        with self.out.status(escape(what)) as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None

    def table(self, title: str, rows: Mapping[str, str]) -> None:
        """A result: two columns, one row per entry."""
        table = Table(
            title=escape(title), title_justify="left", title_style="bold", show_header=False, box=None
        )
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in rows.items():
            table.add_row(escape(name), escape(value))
        self.out.print(table)

    def grid(self, title: str, head: Sequence[str], rows: Iterable[tuple[tuple[str, str], str, str]]) -> None:
        """A result of several columns; the first cell of each row is (text, style), and its text says it all."""
        table = Table(
            title=escape(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False
        )
        for name in head:
            table.add_column(name, overflow="fold", no_wrap=name == head[0])
        for (text, style), *cells in rows:
            table.add_row(Text(text, style), *(escape(cell) for cell in cells))
        self.out.print(table)

    def result(self, title: str, value: Any, *, json: bool, rows: Mapping[str, str] | None = None) -> None:
        """A result for programs (`json`: all of `value`) or for people: `rows`, else the entries of the mapping `value`
        that are not empty; lists have a line for each of theirs."""
        if json:
            self.json(value)
        elif rows is not None:
            self.table(title, rows)
        else:
            lines = {n: "\n".join(v) if isinstance(v, list | tuple) else v for n, v in value.items()}
            self.table(title, {n.replace("_", " "): str(v) for n, v in lines.items() if v not in (None, "")})

    def json(self, value: Any) -> None:
        """A result for programs: plain JSON on standard output."""
        sys.stdout.write(json.dumps(value, indent=2, default=str) + "\n")

    def error(self, title: str, message: str) -> None:
        """One screen on standard error; no traces."""
        if self.err.is_terminal:
            self.err.print(
                Panel(escape(message), title=escape(title), title_align="left", border_style="red")
            )
        else:
            self.err.print(escape(f"{title}: {message}"))


def _status_text(report: BatchReport) -> str:
    behind = f"{report.pending_records:,} behind" if report.pending_records else "up to date"
    return escape(f"{report.verb} {report.pipeline}: {behind}; Ctrl-C stops after the running batch")


def summary_rows(summary: Summary) -> dict[str, str]:
    """The end of a run, for `Screen.table`."""
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
            f"{summary.lost:,} that the broker has not acknowledged, as 'sink.delivery-guarantee' = 'none' allows"
        )
    if summary.bad_records:
        rows["bad records left out"] = f"{summary.bad_records:,}"
    if summary.unexpected_rows:
        rows["rows not as expected"] = f"{summary.unexpected_rows:,}"
    if summary.maintained:
        rows["maintained"] = "once" if summary.maintained == 1 else f"{summary.maintained} times"
    if summary.warning:
        rows["warning"] = summary.warning
    rows["time"] = duration(summary.seconds)
    return rows


def explanation_rows(found: Mapping[str, Any]) -> dict[str, str]:
    """What `pipelines.explain` has found, for `Screen.table`."""

    def files(which: str) -> str:
        return f"{found[f'files{which}']:,} files, {found[f'bytes{which}'] / 1e6:,.1f} MB"

    rows = {
        "records": f"{found['records']:,} of {found['pending_records']:,} that are pending",
        "keys": f"{found['keys']:,}, {found['deletes']:,} of them to delete",
        "table": f"{files('')}, {found['rows']:,} rows",
        "cannot be ruled out by statistics": files("_in_range"),
        "hold a key of the batch": f"{files('_touched')}, {found['rows_touched']:,} of their rows",
        "why": found["why"],
    }
    if found["engine"]:
        rows["engine"] = found["engine"]
    return rows
