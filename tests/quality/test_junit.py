"""JUnit XML: the counts agree with the exit code of the check."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as XML

import pytest

from bridge.quality.junit import junit
from bridge.quality.verdict import History
from tests.quality.pages import HOSTILE
from tests.quality.verdicts import BROKEN, FAILED, HISTORY, MET, PASSED, RAISED, verdict


def parsed(text: str) -> XML.Element:
    (suite,) = XML.fromstring(text)
    return suite


def test_each_expectation_is_a_case_in_the_order_of_the_suite() -> None:
    suite = parsed(junit(BROKEN, HISTORY, fail_on="error"))
    cases = suite.findall("testcase")
    assert [c.attrib for c in cases] == [
        {"classname": "orders", "name": o.title} for o in (MET, FAILED, RAISED)
    ]
    assert [[child.tag for child in case] for case in cases] == [[], ["skipped"], ["error"]]
    properties = {p.attrib["name"]: p.attrib["value"] for p in suite.findall("properties/property")}
    assert properties["version"] == "1042" and properties["run"] == "run-7" and "since" not in properties


@pytest.mark.parametrize(
    ("fail_on", "counts"),
    [
        ("error", {"tests": "3", "failures": "0", "errors": "1", "skipped": "1"}),
        ("warn", {"tests": "3", "failures": "1", "errors": "1", "skipped": "0"}),
    ],
)
def test_it_counts_what_fails_the_check(fail_on: str, counts: dict[str, str]) -> None:
    suite = parsed(junit(BROKEN, HISTORY, fail_on=fail_on))
    assert counts.items() <= suite.attrib.items()
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert len(suite.findall(f"testcase/{tag}")) == int(counts[name])


def test_a_failure_has_the_observed_value_its_history_and_example_keys() -> None:
    failure = parsed(junit(BROKEN, HISTORY, fail_on="warn")).find("testcase/failure")
    assert failure is not None
    assert failure.attrib == {"message": FAILED.observed, "type": "warning"}
    assert failure.text == (
        "expected: each key once\nFailing since 6 May 2024, 02:08 UTC (4 runs)\n"
        f"key: id = 5, region = None\nkey: id = 6, region = {HOSTILE}"
    )


def test_characters_outside_of_xml_are_replaced() -> None:
    odd = replace(FAILED, observed="a\x00b\x1b[31m\ufffe", severity="critical")
    failure = parsed(junit(verdict(odd), History(), fail_on="error")).find("testcase/failure")
    assert failure is not None and failure.attrib["message"] == "a\ufffdb\ufffd[31m\ufffd"


def test_a_passed_run_has_no_failures() -> None:
    suite = parsed(junit(PASSED, History(), fail_on="warn"))
    assert (suite.attrib["failures"], suite.attrib["time"]) == ("0", "3.142")
