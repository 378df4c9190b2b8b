"""Results are compared with the expectations of a case: values, changes, rejections, and combined outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bridge.errors import OptionError
from tests.cases import schema_changes
from tests.cases.case import Part
from tests.cases.expectations import check_changelog
from tests.cases.outcome import Kind, Mismatch, Outcome, summary, worst
from tests.cases.refusal import check_refusal
from tests.cases.values import comparable, from_case, payload, types


def test_the_changes_of_one_commit_may_stand_in_any_order() -> None:
    shape = [(name, types([(name, "INT")])[name]) for name in ("k", "v")]
    wanted: list[Sequence[Any]] = [["+I", 1, 1], ["-U", 1, 1], ["+U", 1, 2], ["-U", 2, 1], ["+U", 2, 2]]
    first, last = [("+I", 1, 1)], [("-U", 1, 1), ("-U", 2, 1), ("+U", 1, 2), ("+U", 2, 2)]
    check_changelog(wanted, [first, last], shape, "t")
    with pytest.raises(Mismatch, match="changelog, at 0"):
        check_changelog(wanted, [last, first], shape, "t")
    with pytest.raises(Mismatch, match="changelog, at 2"):
        check_changelog(wanted, [first, [*last[:3], ("+U", 2, 3)]], shape, "t")
    with pytest.raises(Mismatch, match="wanted 5, there are 1"):
        check_changelog(wanted, [first], shape, "t")


def test_a_step_s_columns_are_those_it_expects() -> None:
    columns: list[tuple[str, str]] = [("id", "INT"), ("v", "VARCHAR(10)")]
    assert schema_changes.after(Part({}), columns) == columns
    added = schema_changes.after(Part({"expected_columns": ["id", "v", "w"]}), columns)
    assert added == [*columns, ("w", "STRING")]
    wider = schema_changes.after(
        Part({"expected_columns": [["id", "BIGINT"], ["v", "VARCHAR(10)"]]}), columns
    )
    assert wider == [("id", "BIGINT"), ("v", "VARCHAR(10)")]
    told = Part(
        {"expected_column_added": "n DECIMAL(5, 2)", "expected_column_type": "id BIGINT (int -> long)"}
    )
    assert schema_changes.after(told, columns) == [
        ("id", "BIGINT"),
        ("v", "VARCHAR(10)"),
        ("n", "DECIMAL(5, 2)"),
    ]


def test_the_worst_vector_decides_and_all_reasons_are_told() -> None:
    passed, waits = Outcome(Kind.PASS), Outcome(Kind.UNSUPPORTED, "csv")
    differs, failed = Outcome(Kind.DIVERGENCE, "decision 2"), Outcome(Kind.FAIL, "boom")
    assert worst([(0, passed), (1, passed)]) == passed
    some = worst([(0, waits), (1, waits), (2, passed), (3, waits), (4, differs)])
    assert some == Outcome(Kind.DIVERGENCE, "[4] divergence: decision 2; [0-1, 3] unsupported: csv")
    assert worst([(0, waits), (1, failed), (2, differs)]).kind is Kind.FAIL
    line = summary([passed, passed, failed, differs, waits])
    assert line == "2 passed, 1 failed, 1 diverging, 1 unsupported"


def test_a_refusal_is_the_same_when_it_names_the_same() -> None:
    theirs = "Could not find the field 'nope' for 'key.fields'"
    check_refusal(OptionError("'key.fields' names 'nope', which is no column"), theirs)
    check_refusal(OptionError(theirs), theirs)
    with pytest.raises(Mismatch, match="without \\['nope'\\]"):
        check_refusal(OptionError("'key.fields' is not for this connector"), theirs)
    with pytest.raises(Mismatch, match="another reason"):
        check_refusal(OptionError("something else"), "words that name nothing")


def test_values_are_compared_by_their_type() -> None:
    shape = types(
        [
            ("f", "FLOAT"),
            ("g", "DOUBLE"),
            ("d", "DECIMAL(5, 2)"),
            ("t", "TIMESTAMP(3)"),
            ("b", "BOOLEAN"),
            ("i", "INT"),
        ]
    )

    def same(name: str, one: Any, other: Any) -> bool:
        type = shape[name]
        left, right = (comparable(from_case(v, type), type) for v in (one, other))
        return bool(left == right)

    assert same("f", 8.1, 8.100000381469727) and not same("f", 8.1, 8.2)
    assert same("f", "NaN", float("nan")) and not same("f", "NaN", 0.0) and not same("f", "NaN", None)
    assert same("g", "NaN", "nan") and not same("g", "NaN", "Infinity")
    assert same("d", "1.5", 1.50) and not same("d", "1.5", "1.51")
    assert same("t", "2020-03-08T13:12:11.12", "2020-03-08 13:12:11.120")
    assert not same("b", True, False) and comparable(True, shape["b"]) != comparable(1, shape["i"])
    assert (payload(""), payload(None), payload({"hex": "C0FF"})) == (b"", None, b"\xc0\xff")
