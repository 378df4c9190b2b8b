"""The verdict as one HTML file that needs nothing else: no script, no network."""

from __future__ import annotations

import os
import re
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from bridge.errors import BridgeError
from bridge.quality.charts import charts
from bridge.quality.history import History, PastRun
from bridge.quality.summary import headline, in_order, sentences, state_of, trend_note
from bridge.quality.verdict import Verdict
from bridge.quality.wording import age, moment, percent

__all__ = ["html", "write", "write_report"]


def html(verdict: Verdict, history: History, now: PastRun) -> str:
    """The report as one HTML document that opens offline: no script, and no reference to anything outside.

    `now` is the run of `verdict` beside those of `history`; trends are drawn from both. The only values of the table in
    it are example keys and observed aggregates. All text is escaped.
    """
    runs = (*history.runs, now)
    return (
        _templates()
        .get_template("report.html.j2")
        .render(
            verdict=verdict,
            history=history,
            now=now,
            runs=runs,
            charts=charts(runs),
            headline=headline(verdict),
            sentences=sentences(verdict, history, now),
            outcomes=in_order(verdict),
            notes={o.identity: trend_note(o, history, verdict.started_at) for o in verdict.failed},
            newest=_newest(verdict, now),
            facts=_facts(verdict, now),
        )
    )


def write_report(verdict: Verdict, history: History, now: PastRun, path: str | Path) -> Path:
    """Write `html` to `path`, as `write` does."""
    return write(html(verdict, history, now), path, "the quality report")


def write(text: str, path: str | Path, what: str) -> Path:
    """Write a file, making its folders; a reader sees the old one or the new one, never a part.

    Raises BridgeError, which names it as `what`, when the place cannot be written to; what was there stays.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, target)
    except OSError as e:
        with suppress(OSError):
            temporary.unlink()
        raise BridgeError(f"{target}: {what} cannot be written: {e.strerror}") from e
    return target


def _newest(verdict: Verdict, now: PastRun) -> tuple[str, str] | None:
    """How old the newest event is, in its largest unit, and the word for it."""
    if now.event_time is None:
        return None
    late = (verdict.started_at - now.event_time).total_seconds()
    word = "old" if late >= 0 else "ahead"
    number, unit = ("<1", "second") if abs(late) < 1 else age(abs(late)).split()[:2]
    return number, f"{unit} {word}"


def _facts(verdict: Verdict, now: PastRun) -> dict[str, str]:
    """What can be said of this run; what is not known is left out."""
    subject = verdict.subject
    triggers = {"check": "bridge check", "schedule": "a schedule", "gate": "a gate"}
    facts: dict[str, str] = {
        "Checked at": moment(verdict.started_at, seconds=True),
        "Took": f"{verdict.seconds:.1f} s" if verdict.seconds < 10 else f"{verdict.seconds:,.0f} s",
        "Asked for by": triggers[subject.trigger],
        "Rows last arrived": moment(now.arrival, seconds=True) if now.arrival else "",
        "Newest event time": moment(now.event_time, seconds=True) if now.event_time else "",
        "Suite file": _breakable_path(subject.suite_file),
        "Bridge version": subject.bridge,
        "Run": subject.run,
    }
    return {label: fact for label, fact in facts.items() if fact}


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("bridge.quality"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "grouped": "{:,}".format,
        "percent": percent,
        "moment": moment,
        "state": state_of,
        "place": _breakable_path,
    }
    return environment


def _breakable_path(path: str) -> Markup:
    """A path that may be folded after each slash, and only there."""
    return Markup("/<wbr>").join(escape(part) for part in re.split("/", path))
