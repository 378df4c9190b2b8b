"""Renders a verdict as a self-contained HTML report: no scripts, no network."""

from __future__ import annotations

import os
import re
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from bridge.errors import BridgeError
from bridge.quality.charts import charts
from bridge.quality.summary import headline, in_order, sentences, state_of, trend_note
from bridge.quality.verdict import History, PastRun, Verdict
from bridge.quality.wording import age, moment, percent


def html(verdict: Verdict, history: History, now: PastRun) -> str:
    """Returns the report as one HTML document without scripts and external resources.

    `now` is the run of `verdict`; the trends show it after the runs of `history`. The only values of the table in the
    report are example keys and observed aggregates. All text is escaped.
    """
    runs = (*history.runs, now)
    return (
        templates("bridge.quality")
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


def write(text: str, path: str | Path, what: str) -> Path:
    """Writes a file and creates its folders. A reader sees the old file or the complete new one.

    Raises BridgeError, which calls the file `what`, when it cannot be written; the old file stays in place.
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
    """Returns the age of the newest event in its largest unit, as (number, unit and `old` or `ahead`)."""
    if now.event_time is None:
        return None
    lag = (verdict.started_at - now.event_time).total_seconds()
    direction = "old" if lag >= 0 else "ahead"
    number, unit = ("<1", "second") if abs(lag) < 1 else age(abs(lag)).split()[:2]
    return number, f"{unit} {direction}"


def _facts(verdict: Verdict, now: PastRun) -> dict[str, str]:
    """Returns the known facts about this run, by label."""
    subject = verdict.subject
    triggers = {"check": "bridge check", "schedule": "schedule", "gate": "gate"}
    facts: dict[str, str] = {
        "Checked at": moment(verdict.started_at, seconds=True),
        "Duration": f"{verdict.seconds:.1f} s" if verdict.seconds < 10 else f"{verdict.seconds:,.0f} s",
        "Triggered by": triggers[subject.trigger],
        "Last arrival of rows": moment(now.arrival, seconds=True) if now.arrival else "",
        "Newest event time": moment(now.event_time, seconds=True) if now.event_time else "",
        "Suite file": _breakable_path(subject.suite_file),
        "Bridge version": subject.bridge,
        "Run": subject.run,
    }
    return {label: fact for label, fact in facts.items() if fact}


@cache
def templates(*packages: str) -> Environment:
    """Returns the templates of these packages; of those with the same name that of the first."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
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
    """Marks up a path so that it can wrap after each slash, and only there."""
    return Markup("/<wbr>").join(escape(part) for part in re.split("/", path))
