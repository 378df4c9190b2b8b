"""GROUP BY: its expressions, and what may stand beside them."""

from __future__ import annotations

import pytest

from tests.sql.scripts import plan, refusal


@pytest.mark.parametrize(
    "query",
    [
        "SELECT UPPER(region), COUNT(*) FROM views GROUP BY UPPER(region)",
        "SELECT upper(v.region), COUNT(*) FROM views AS v GROUP BY UPPER(region)",
        "SELECT CONCAT(UPPER(region), 'x') AS x, COUNT(*) FROM views GROUP BY CONCAT(UPPER(region), 'x')",
        "SELECT place.b.c, COUNT(*) FROM views GROUP BY views.place.b.c HAVING place.b.c <> 'x'",
    ],
)
def test_equal_expressions(query: str) -> None:
    assert plan(query).key == ("a",)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT region, COUNT(*) FROM views GROUP BY UPPER(region)", "8: Expression 'region' is not being "
         "grouped; add "
         "it to GROUP BY, or use it in an aggregate function"),
        ("SELECT region, page + COUNT(*) FROM views GROUP BY region", "16: Expression 'page' is not being grouped; add "
         "it to GROUP BY, or use it in an aggregate function"),
        ("SELECT region AS r, COUNT(*) FROM views GROUP BY r", "50: there is no column `r`; known names are `user_id`, "
         "`page`, `ts`, `region`, `price`, `ok`, `tags`, `place`"),
        ("SELECT region, COUNT(*) FROM views GROUP BY 1", "45: GROUP BY takes columns, not positions; write the "
         "expression"),
        ("SELECT region, COUNT(*) FROM views GROUP BY COUNT(*)", "45: COUNT is an aggregate function, which is "
         "not legal here; call it in the SELECT or HAVING of a query"),
    ],
)  # fmt: skip
def test_refused(query: str, message: str) -> None:
    assert refusal(query) == f"t.sql:6:{message}"
