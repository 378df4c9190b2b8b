"""The verdict for people and for programs: one HTML file that needs nothing else, and JSON."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from bridge.errors import BridgeError
from bridge.quality.verdict import Outcome, Verdict
from bridge.quality.wording import percent

__all__ = ["html", "to_json", "write_report"]

_SEVERITIES = ("critical", "warning", "info")


def html(verdict: Verdict, facts: Mapping[str, object] | None = None) -> str:
    """The report as one HTML document that opens offline: no script, and no reference to anything outside.

    `facts` (label -> value) are listed in their order; a value of None is left out. The only values of the
    table in it are example keys, observed aggregates, and what `facts` brings. All text is escaped.
    """
    template = _templates().get_template("report.html.j2")
    shown = {label: _shown(value) for label, value in (facts or {}).items() if value is not None}
    return template.render(
        verdict=verdict,
        outcomes=sorted(verdict.expectations, key=_failed_first),
        errors=sum(o.reason is not None for o in verdict.expectations),
        facts=shown,
    )


def write_report(verdict: Verdict, facts: Mapping[str, object] | None, path: str | Path) -> Path:
    """Write `html` to `path`, making its folders; a reader sees the old report or the new one, never a part.

    Raises BridgeError when the place cannot be written to; what was there stays.
    """
    target = Path(path)
    text = html(verdict, facts)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, target)
    except OSError as e:
        with suppress(OSError):
            temporary.unlink()
        raise BridgeError(f"{target}: the quality report cannot be written: {e.strerror}") from e
    return target


def to_json(verdict: Verdict) -> str:
    """The verdict with all its fields as one JSON object, indented."""
    return json.dumps(verdict.as_dict(), indent=2, ensure_ascii=False)


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("bridge.quality"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"grouped": "{:,}".format, "percent": percent, "seconds": _seconds, "moment": _moment}
    return made


def _failed_first(outcome: Outcome) -> tuple[bool, int]:
    return outcome.success, _SEVERITIES.index(outcome.severity)


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 10 else f"{value:,.0f} s"


def _moment(value: datetime) -> str:
    return f"{value.day} {value:%B %Y, %H:%M:%S} UTC"


def _shown(value: object) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    return _moment(value) if isinstance(value, datetime) else str(value)
