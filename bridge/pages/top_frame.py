"""Draws the page of `bridge top`: a line for each direction of a pipeline, and the partitions of those that lag."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from textwrap import wrap
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from bridge.console import duration, printable
from bridge.pages.pipeline_line import Line

_WIDE = 110
_BARS = 8
_TOLD = 5
_HEAD = ("pipeline", "verb", "state", "records/s", "lag", "fresh", "commit", "way")
_NUMBERS = range(3, 7)
_STYLES = {"running": "green", "stopped": "yellow", "never ran": "dim", "unknown": "red"}


def frame(lines: Sequence[Line], at_ms: int, width: int, height: int, selected: int) -> Text:
    """The page of a terminal, at most `height` lines: of more lines than there is room for, those around the selected
    one."""
    below = details(lines[selected], width) if lines else []
    room = max(2, height - 2 - len(below))
    first, last = _window([2 if _told(line) else 1 for line in lines], selected, room)
    more = f"  {first + 1} to {last} of {len(lines)}" if last - first < len(lines) else ""
    at = datetime.fromtimestamp(at_ms / 1000, timezone.utc)
    head = Text(f"bridge top  {at:%Y-%m-%d %H:%M:%S} UTC{more}  q ends, ↑ ↓ select", "bold")
    shown = [head, *overview(lines[first:last], width, selected - first), *below]
    for line in shown:
        line.truncate(width, overflow="ellipsis")
    return Text("\n").join(shown[:height])


def overview(lines: Sequence[Line], width: int, selected: int | None = None) -> list[Text]:
    """The names of columns, then a line each, which fits into `width`; a reason or an error follows in a second one."""
    lines = [_printable(line) for line in lines]
    columns = len(_HEAD) if width >= _WIDE else len(_HEAD) - 1
    rows = [_HEAD[:columns], *(_cells(line)[:columns] for line in lines)]
    widths = [max(cell_len(row[n]) for row in rows) for n in range(columns)]
    spare = width - 2 * (columns - 1) - sum(widths[1:7])
    widths[0] = max(8, min(widths[0], spare if columns == 7 else spare // 2))
    drawn = [_row(rows[0], widths, "dim")]
    for number, (line, row) in enumerate(zip(lines, rows[1:], strict=True)):
        drawn.append(_row(row, widths, "reverse" if number == selected else "", _STYLES.get(line.state, "")))
        drawn[-1].truncate(width, overflow="ellipsis")
        if told := _told(line):
            drawn.append(Text(f"  {told}", "red" if line.error else "yellow"))
    return drawn


def details(line: Line, width: int) -> list[Text]:
    """What a line has no room for, and its partitions that lag most as bars with their offsets."""
    line = _printable(line)
    about = [
        Text(),
        Text(f"{line.pipeline} {line.verb or ''}".rstrip(), "bold").append(f"  {line.file}", "dim"),
    ]
    if line.last_commit is not None:
        about.append(Text(f"last commit {line.last_commit}, version {line.version}"))
    if way := _way(line):
        about.append(Text(way))
    told = _told(line)
    if cell_len(told) > width - 2:  # which is cut above
        letters = width if cell_len(told) == len(told) else max(1, width // 2)
        about += [Text(part) for part in wrap(told, letters)[:_TOLD]]
    return [*about, *_bars(line, width)]


def _bars(line: Line, width: int) -> list[Text]:
    behind = sorted(((lag, name) for name, lag in line.lag_by_partition.items() if lag), reverse=True)
    if not behind:
        return []
    most = behind[0][0]
    names = min(max(cell_len(name) for _, name in behind[:_BARS]), max(10, width // 3))
    counts = len(f"{most:,}")
    room = max(5, width - names - counts - 4)
    drawn = []
    for lag, name in behind[:_BARS]:
        start = f"  {_padded(_cut_left(name, names), names)} {lag:>{counts},} "
        drawn.append(Text(start).append("█" * max(1, round(room * lag / most)), "cyan"))
    if len(behind) > _BARS:
        drawn.append(Text(f"  and {len(behind) - _BARS:,} more partitions that lag", "dim"))
    return drawn


def _window(heights: Sequence[int], selected: int, room: int) -> tuple[int, int]:
    """The first line to show and the one after the last: they have the selected one, and fit into `room`."""
    first, last = selected, selected
    while True:
        if last < len(heights) and sum(heights[first : last + 1]) <= room:
            last += 1
        elif first > 0 and sum(heights[first - 1 : last]) <= room:
            first -= 1
        else:
            return first, max(last, min(selected + 1, len(heights)))


def _cells(line: Line) -> tuple[str, ...]:
    lag = "–" if line.lag is None else f"{line.lag:,}"
    return (
        line.pipeline,
        line.verb or "–",
        line.state,
        "–" if line.records_per_second is None else f"{line.records_per_second:,.0f}",
        f"{lag} versions" if line.verb == "publish" and line.lag is not None else lag,
        _short(line.freshness_seconds),
        _short(line.last_commit_seconds),
        _way(line),
    )


def _row(cells: Sequence[str], widths: Sequence[int], style: str, state: str = "") -> Text:
    row = Text(style=style)
    for number, (cell, wide) in enumerate(zip(cells, widths, strict=True)):
        text = f"{cell:>{wide}}" if number in _NUMBERS else _padded(_cut(cell, wide), wide)
        row.append(text, state if number == 2 else "").append("  ")
    row.rstrip()
    return row


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


def _cut_left(text: str, width: int) -> str:
    """Partitions differ at the end of their names."""
    if cell_len(text) <= width:
        return text
    while cell_len(text) >= width:
        text = text[1:]
    return f"…{text}"


def _padded(text: str, width: int) -> str:
    """A letter may be two cells wide."""
    return text + " " * (width - cell_len(text))


def _printable(line: Line) -> Line:
    """The line as a terminal may show it: most of its texts are written by others."""
    shown: dict[str, Any] = {n: printable(text) for n, text in vars(line).items() if isinstance(text, str)}
    lags = {printable(name): lag for name, lag in line.lag_by_partition.items()}
    return replace(line, **shown, lag_by_partition=lags)


def _way(line: Line) -> str:
    parts = (line.engine and f"by {line.engine}", line.reader and f"read by {line.reader}")
    return ", ".join(filter(None, parts))


def _told(line: Line) -> str:
    told = [f"failed: {line.error}" if line.error else None, line.reason]
    return " ".join("; ".join(filter(None, told)).split())


def _short(seconds: float | None) -> str:
    return "–" if seconds is None else re.sub(r"(\d) ([a-z])", r"\1\2", duration(seconds))
