"""Clauses that only sqlglot or Spark knows, and words that are no aliases."""

from __future__ import annotations

import pytest

from tests.sql.scripts import plan, refusal

END = "is a reserved word and no name; quote it with `...`, or complete what it begins"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT region, page NULL FROM views", f"21: NULL {END}"),
        ("SELECT region, page FROM views AS END", f"35: END {END}"),
        (
            "SELECT region, page FROM views SORT BY page",
            "40: SORT is not supported in this version: remove it",
        ),
        (
            "SELECT region, page FROM views QUALIFY page > 1",
            "40: QUALIFY is not supported in this version: remove it",
        ),
    ],
)
def test_refused(query: str, message: str) -> None:
    assert refusal(query) == f"t.sql:6:{message}"


def test_a_quoted_alias_may_be_any_word() -> None:
    assert plan("SELECT region AS `NULL`, page AS `group` FROM views AS `select`").key == ("a",)
