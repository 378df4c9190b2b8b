"""The verdict as JUnit XML, which CI systems show test by test."""

from __future__ import annotations

import re
from xml.etree import ElementTree as XML

from bridge.quality.history import History
from bridge.quality.summary import trend_note
from bridge.quality.verdict import Outcome, Verdict

__all__ = ["junit"]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(verdict: Verdict, history: History, *, fail_on: str) -> str:
    """One test case per expectation, in the suite's order. What fails under `fail_on` is a failure (an error where it
    could not be evaluated), what does not is skipped with its message, so a build breaks where the exit code is 3.

    Characters that XML cannot hold are replaced. Example keys are named, other values of rows are not.
    """
    fatal = verdict.fatal(fail_on)
    subject = verdict.subject
    counts = {
        "tests": len(verdict.expectations),
        "failures": sum(o.reason is None for o in fatal),
        "errors": sum(o.reason is not None for o in fatal),
        "skipped": len(verdict.failed) - len(fatal),
    }
    numbers = {name: str(count) for name, count in counts.items()} | {"time": f"{verdict.seconds:.3f}"}
    root = XML.Element("testsuites", {"name": "bridge check", **numbers})
    suite = XML.SubElement(
        root,
        "testsuite",
        {
            "name": _xml_text(f"{subject.pipeline}.{verdict.suite}"),
            "timestamp": verdict.started_at.replace(tzinfo=None).isoformat(timespec="seconds"),
            **numbers,
        },
    )
    properties = XML.SubElement(suite, "properties")
    for name in ("run", "topic", "table", "version", "since", "suite_file", "trigger", "bridge"):
        value = getattr(subject, name)
        if value not in (None, ""):
            XML.SubElement(properties, "property", {"name": name, "value": _xml_text(str(value))})
    for outcome in verdict.expectations:
        case = XML.SubElement(
            suite, "testcase", {"classname": _xml_text(subject.pipeline), "name": _xml_text(outcome.title)}
        )
        if not outcome.success:
            _add_result(case, outcome, history, verdict, fatal=outcome in fatal)
    XML.indent(root)
    return XML.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_result(case: XML.Element, o: Outcome, history: History, verdict: Verdict, *, fatal: bool) -> None:
    kind = "skipped" if not fatal else "error" if o.reason else "failure"
    what = o.reason or o.observed or "not met"
    message = what if fatal else f"not met, but only of severity {o.severity}: {what}"
    attributes = {"message": _xml_text(message)} | ({"type": o.severity} if fatal else {})
    lines = [
        f"expected: {o.expected}" if o.expected else "",
        trend_note(o, history, verdict.started_at) or "",
    ]
    lines += [f"key: {', '.join(f'{n} = {v}' for n, v in key.items())}" for key in o.example_keys]
    XML.SubElement(case, kind, attributes).text = _xml_text("\n".join(line for line in lines if line))


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
