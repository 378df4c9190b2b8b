"""Renders a verdict as a Markdown summary for a CI job, a pull request or a chat."""

from __future__ import annotations

import re

from bridge.quality.summary import headline, in_order, sentences, state_of, trend_note
from bridge.quality.verdict import History, PastRun, Verdict
from bridge.quality.wording import moment

_MARKS = {
    "met": "✅ met",
    "failed": "❌ **not met**",
    "warned": "⚠️ not met",
    "unknown": "❓ **not evaluated**",
}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&])")


def markdown(verdict: Verdict, history: History, now: PastRun) -> str:
    """Returns a headline, the sentences of the HTML report and a table of all expectations, failed ones first.

    Escapes text of the suite and the table, so that none of it becomes a link, a mention or markup.
    """
    subject = verdict.subject
    lines = [
        f"## {_escaped(subject.pipeline or verdict.suite)}: {_escaped(headline(verdict))}",
        "",
        _escaped(" ".join(sentences(verdict, history, now))),
        "",
        "| Result | Severity | Expectation | Observed | History |",
        "|---|---|---|---|---|",
    ]
    for o in in_order(verdict):
        observed = o.reason or o.observed
        if o.evaluated_on == "changes":
            observed += " (changed rows)"
        keys = "; ".join(", ".join(f"{n} = {v}" for n, v in key.items()) for key in o.example_keys)
        cells = [
            o.severity,
            _escaped(o.title),
            _escaped(observed) + (f"<br>e.g. {_escaped(keys)}" if keys else ""),
            _escaped(trend_note(o, history, verdict.started_at) or ""),
        ]
        lines.append(f"| {_MARKS[state_of(o)]} | {' | '.join(cells)} |")
    facts = [
        f"{moment(verdict.started_at, seconds=True)}, {verdict.seconds:.1f} s",
        f"topic {subject.topic}" if subject.topic else "",
        f"table {subject.table}" + (f" version {subject.version}" if subject.version is not None else ""),
        f"suite {subject.suite_file or verdict.suite}",
        f"bridge {subject.bridge}" if subject.bridge else "",
    ]
    return "\n".join([*lines, "", _escaped(" · ".join(f for f in facts if f)), ""])


def _escaped(text: str) -> str:
    """Escapes text so that Markdown shows it unchanged, on one line; an @ mentions nobody."""
    escaped = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    return (
        escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;").replace("@", "@\u200b")
    )
