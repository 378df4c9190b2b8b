"""What a result keeps for its averages."""

from __future__ import annotations

import pytest

from bridge.schema import ScalarType
from tests.sql.scripts import plan

QUERY = "SELECT region, AVG(page) FILTER (WHERE ok), AVG(price) FROM views GROUP BY region"
COLUMNS = "a STRING, b BIGINT, c DECIMAL(12, 2)"


def test_the_sum_and_the_count_of_each_average() -> None:
    found = plan(QUERY, COLUMNS)
    assert {name: how.name for name, how in found.accumulators.items()} == {
        "a": "GROUP",
        "b": "AVERAGE",
        "c": "AVERAGE",
    }
    assert [c.name for c in found.columns] == ["a", "b", "c"]
    big = ScalarType("BIGINT")
    assert {c.name: c.type for c in found.kept_columns} == {
        "__sum_b": big,
        "__count_b": big,
        "__sum_c": ScalarType("DECIMAL", (20, 2)),
        "__count_c": big,
    }
    assert found.averages is not None and found.averages.values == {
        "b": "CAST(CAST(`__sum_b` DIV NULLIF(`__count_b`, 0) AS INT) AS BIGINT)",
        "c": "TRY_CAST(CAST(`__sum_c` / CAST(NULLIF(`__count_c`, 0) AS DECIMAL(20, 0)) AS DECIMAL(38, 6)) "
        "AS DECIMAL(12, 2))",
    }


def test_the_query_is_the_same_without_what_is_kept() -> None:
    found = plan(QUERY, COLUMNS)
    assert "__sum" not in found.spark_sql
    select, _, rest = found.spark_sql.partition(" FROM ")
    assert found.kept_sql == (
        f"{select}, CAST(SUM(`views`.`page`) FILTER(WHERE `views`.`ok`) AS BIGINT) AS `__sum_b`, "
        "CAST(COUNT(`views`.`page`) FILTER(WHERE `views`.`ok`) AS BIGINT) AS `__count_b`, "
        "CAST(SUM(`views`.`price`) AS DECIMAL(20, 2)) AS `__sum_c`, "
        "CAST(COUNT(`views`.`price`) AS BIGINT) AS `__count_c` "
        f"FROM {rest}"
    )
    plain = found.without_kept_columns()
    assert plain.kept_columns == () and plain.accumulators == {} and plain.kept_sql == found.spark_sql


def test_sums_of_decimals_whose_type_is_known() -> None:
    source = "(SELECT region AS r, price * 2 AS p FROM views) AS v"
    query = f"SELECT r, AVG(CAST(p AS DECIMAL(28, 3))) FROM {source} GROUP BY r"
    found = plan(query, "a STRING, b DECIMAL(38, 6)")
    assert found.kept_columns[0].type == ScalarType("DECIMAL", (38, 3))
    derived = query.replace("CAST(p AS DECIMAL(28, 3))", "p")
    assert plan(derived, "a STRING, b DECIMAL(38, 6)").accumulators == {}


@pytest.mark.parametrize(
    ("query", "columns", "connector"),
    [
        ("SELECT region, AVG(page) FROM views GROUP BY region", "a STRING, b INT", "delta"),
        ("SELECT region, AVG(DISTINCT page) FROM views GROUP BY region", "a STRING, b INT", ""),
        ("SELECT region, AVG(CAST(page AS DOUBLE)) FROM views GROUP BY region", "a STRING, b DOUBLE", ""),
        (
            "SELECT region, AVG(page), SUM(DISTINCT page) FROM views GROUP BY region",
            "a STRING, b INT, c INT",
            "",
        ),
        ("SELECT city, AVG(id) FROM users GROUP BY city", "a STRING, b BIGINT", ""),
    ],
)
def test_averages_that_are_computed_again(query: str, columns: str, connector: str) -> None:
    found = plan(query, columns, connector=connector)
    assert found.accumulators == {} and found.kept_columns == () and found.kept_sql == found.spark_sql
