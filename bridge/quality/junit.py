"""Renders a verdict as JUnit XML for CI systems."""

from __future__ import annotations

import re
from xml.etree import ElementTree as XML

from bridge.quality.summary import trend_note
from bridge.quality.verdict import History, Outcome, Verdict

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(verdict: Verdict, history: History, *, fail_on: str) -> str:
    """Returns JUnit XML with one test case per expectation, in the order of the suite.

    An expectation that fails under `fail_on` is a failure, or an error where it could not be evaluated. One that fails
    with a lower severity is skipped, with its message. So a build fails exactly when `bridge check` exits with 3.

    Replaces characters that XML does not allow. Contains example keys, and no other values of rows.
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
    observed = o.reason or o.observed or "not met"
    message = observed if fatal else f"not met, with severity {o.severity} only: {observed}"
    attributes = {"message": _xml_text(message)} | ({"type": o.severity} if fatal else {})
    lines = [
        f"expected: {o.expected}" if o.expected else "",
        trend_note(o, history, verdict.started_at) or "",
    ]
    lines += [f"key: {', '.join(f'{n} = {v}' for n, v in key.items())}" for key in o.example_keys]
    XML.SubElement(case, kind, attributes).text = _xml_text("\n".join(line for line in lines if line))


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
