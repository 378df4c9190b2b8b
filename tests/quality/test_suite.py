"""A suite file is loaded completely, or rejected with the reason and the solution."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from bridge.errors import DefinitionError
from bridge.quality.gx import quiet
from bridge.quality.suite import load

ORDERS = Path(__file__).parents[2] / "expectations" / "orders.json"
NOT_NULL = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "a"}}


def written(folder: Path, content: Any) -> Path:
    file = folder / "suite.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def test_every_shipped_suite_loads() -> None:
    for file in ORDERS.parent.glob("*.json"):
        assert len(load(file)) == len(json.loads(file.read_text())["expectations"])


def test_loaded_expectations_keep_their_order() -> None:
    suite = load(ORDERS)
    assert suite.name == "orders"
    assert [e.expectation_type for e in suite.expectations[:2]] == [
        "expect_key_to_be_unique",
        "expect_column_values_to_not_be_null",
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"type": "expect_column_values_to_not_be_nul", "kwargs": {"column": "a"}},
            "expectation 2: there is no 'expect_column_values_to_not_be_nul'; "
            "did you mean 'expect_column_values_to_not_be_null'?",
        ),
        (
            {"type": "expect_keys_to_be_unique", "kwargs": {"column_list": ["a"]}},
            "did you mean 'expect_key_to_be_unique'?",
        ),
        (
            {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "a", "mosty": 0.9}},
            "expectation 2 (expect_column_values_to_not_be_null): mosty: extra fields not permitted",
        ),
        (
            {"type": "expect_column_values_to_not_be_null", "kwargs": {}},
            "expectation 2 (expect_column_values_to_not_be_null): column: field required",
        ),
        ({"type": "expect_column_values_to_not_be_null"}, '"kwargs" is missing'),
        ({"expectation_type": "expect_table_to_be_fresh", "kwargs": {}}, '"type" is missing'),
        (
            {**NOT_NULL, "severity": "dire"},
            "Invalid severity 'dire'. Must be one of: critical, warning, info",
        ),
        (
            {"type": "expect_key_to_be_unique", "kwargs": {"column_list": []}},
            'column_list must be a list of at least one column name, e.g. ["order_id"]',
        ),
        (
            {"type": "expect_table_to_be_fresh", "kwargs": {"column": "a", "max_age_seconds": -1}},
            "max_age_seconds: must be 0 seconds or more",
        ),
        (
            {
                "type": "expect_column_values_to_be_between",
                "kwargs": {"column": "a", "min_value": {"$PARAMETER": "low"}},
            },
            "'low' is a suite parameter, for which the bridge has no value; replace it by its value",
        ),
    ],
)
def test_an_invalid_expectation_is_rejected(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    file = written(tmp_path, {"name": "s", "expectations": [NOT_NULL, wrong]})
    with pytest.raises(DefinitionError) as refused:
        load(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "suite.json:1:2: not JSON"),
        ("[]", "a suite is"),
        ({"name": "s"}, "a suite is"),
        ({"expectations": [NOT_NULL]}, "a suite is"),
        ({"name": "s", "expectations": []}, "could never fail; add an expectation"),
        ({"expectation_suite_name": "s", "expectations": []}, "the format of Great Expectations 0.x"),
        ('{"name": "s", "name": "t", "expectations": []}', "the name 'name' occurs twice"),
        ({"name": "s", "expectation": 1, "expectations": [NOT_NULL]}, "unexpected keyword argument"),
    ],
)
def test_a_file_that_is_not_a_suite_is_rejected(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        load(written(tmp_path, content))
    assert message in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"none\.json: the quality suite cannot be read: No such file"):
        load(tmp_path / "none.json")


def test_logging_and_warnings_are_as_before() -> None:
    before = warnings.showwarning, logging.getLogger("great_expectations").level
    load(ORDERS)
    assert (warnings.showwarning, logging.getLogger("great_expectations").level) == before
    with quiet():
        assert os.environ["GX_ANALYTICS_ENABLED"] == "false"


def test_importing_the_steps_does_not_import_great_expectations() -> None:
    code = (
        "import sys, bridge.quality.suite, bridge.quality.run, bridge.quality.report;"
        "print('great_expectations' in sys.modules)"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "False"


def test_first_import_leaves_the_warnings_of_others_alone() -> None:
    code = (
        "import warnings; before = warnings.showwarning\n"
        f"from bridge.quality.suite import load; load({str(ORDERS)!r})\n"
        "print(warnings.showwarning is before)"
    )
    made = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert made.stdout.strip() == "True"
    assert made.stderr == ""
