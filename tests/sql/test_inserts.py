"""Several INSERTs of one script.

What a result keeps for its averages.
"""

from __future__ import annotations

import pytest

from bridge.schema import ScalarType
from tests.sql.scripts import SOURCES, load, plan, refusal, script_refusal, sink

APPEND = sink("a STRING, b BIGINT", connector="kafka")
KEYED = sink("a STRING, b BIGINT", "a")


def test_two_inserts_into_an_append_only_sink() -> None:
    insert = "INSERT INTO s SELECT region, user_id FROM views;\n"
    script = load(f"{SOURCES}{APPEND}BEGIN STATEMENT SET;\n{insert}{insert}END;")
    assert [(plan.name, plan.sink, plan.line) for plan in script.inserts] == [("s", "s", 6), ("s-2", "s", 7)]


def test_two_inserts_into_a_sink_with_a_key() -> None:
    insert = "INSERT INTO s SELECT region, user_id FROM views;\n"
    assert script_refusal(f"{SOURCES}{KEYED}{insert}{insert}") == (
        "t.sql:5:13: `s` has a PRIMARY KEY and is written by the INSERT of line 6, too, so each would overwrite "
        "rows of the other; write one INSERT with UNION ALL or a join, or give each a list of the columns that it "
        "alone writes: INSERT INTO s (a, ...)"
    )


def test_an_insert_that_reads_its_sink() -> None:
    assert script_refusal(f"{SOURCES}{KEYED}INSERT INTO s SELECT a, b FROM s") == (
        "t.sql:5:13: `s` is read and written by the same INSERT, which would feed itself; write to another table"
    )


def test_a_view_with_a_list_of_columns_that_does_not_fit() -> None:
    assert script_refusal(f"{SOURCES}CREATE VIEW v (a, b) AS SELECT id FROM users") == (
        "t.sql:4:16: the view has 2 columns, and its query has 1"
    )


def test_an_insert_from_the_sink_of_another_one() -> None:
    other = sink("a STRING, b BIGINT", "a", name="t")
    inserts = "INSERT INTO s SELECT region, user_id FROM views; INSERT INTO t SELECT a, b FROM s;"
    assert [plan.key for plan in load(f"{SOURCES}{KEYED}{other}{inserts}").inserts] == [("a",), ("a",)]


def test_two_inserts_into_a_delta_table() -> None:
    delta = sink("a STRING, b BIGINT", connector="delta")
    insert = "INSERT INTO s SELECT region, user_id FROM views;\n"
    assert script_refusal(f"{SOURCES}{delta}{insert}{insert}") == (
        "t.sql:6:13: a second INSERT into the Delta table `s` is not supported in this version: its commits carry the "
        "progress of one INSERT. Write one INSERT with UNION ALL"
    )


def test_an_aggregate_of_all_rows_needs_a_key() -> None:
    query = "SELECT 'all', COUNT(*) FROM users"
    text = f"{SOURCES}{sink('a STRING, b BIGINT', connector='print')}INSERT INTO s {query};"
    assert script_refusal(text) == (
        "t.sql:5:15: an aggregate without GROUP BY into `s`, which has no PRIMARY KEY is not supported in this "
        "version: select a constant beside it, and declare that column as PRIMARY KEY: SELECT 'all' AS id, COUNT(*) ..."
    )
    kept = plan(query)
    assert kept.key == ("a",) and kept.spark_sql.endswith("HAVING COUNT(*) > 0")


def test_constants_beside_rows_that_are_only_added() -> None:
    query = "SELECT region, user_id FROM views UNION ALL SELECT 'x', 1"
    assert refusal(query, key="").endswith(
        "VALUES beside rows of a table that are only added is not supported in this version: write an INSERT INTO ... "
        "VALUES of its own"
    )


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
