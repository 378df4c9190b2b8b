"""An INSERT must fit its sink: columns, types, changes and key.

Several INSERTs write columns of one table with a PRIMARY KEY.
"""

from __future__ import annotations

import pytest

from bridge.schema import ScalarType
from bridge.sql import as_json, as_rows
from bridge.sql.plan import ResultColumn
from tests.sql.scripts import SOURCES, load, plan, refusal, script_refusal, sink

VIEWS = "SELECT region, COUNT(*) FROM views GROUP BY region"
SINK = "'default_catalog.default_database.s'"


@pytest.mark.parametrize("connector", ["upsert-kafka", "delta", "debezium"])
def test_updates_with_a_primary_key(connector: str) -> None:
    found = plan(VIEWS, connector=connector)
    assert (found.key, found.is_updating) == (("a",), True)


@pytest.mark.parametrize("connector", ["debezium", "print", "blackhole"])
def test_updates_without_a_primary_key(connector: str) -> None:
    """The key is that of the query."""
    assert plan(VIEWS, key="", connector=connector).key == ("a",)


@pytest.mark.parametrize(
    ("connector", "key"), [("kafka", ""), ("delta", ""), ("upsert-kafka", "a"), ("delta", "b"), ("print", "")]
)
def test_rows_that_are_only_added(connector: str, key: str) -> None:
    """As in Flink, they replace each other by the PRIMARY KEY of the sink."""
    found = plan("SELECT region, user_id FROM views", key=key, connector=connector)
    assert (found.key, found.is_updating) == (tuple(filter(None, [key])), False)


def test_columns_are_named_and_cast_as_in_the_sink() -> None:
    found = plan("SELECT id, id FROM users", "a BIGINT, b DECIMAL(20, 0)", "a")
    assert found.columns == (
        ResultColumn("a", ScalarType("BIGINT")),
        ResultColumn("b", ScalarType("DECIMAL", (20, 0))),
    )
    assert found.spark_sql == (
        "SELECT `users`.`id` AS `a`, TRY_CAST(`users`.`id` AS DECIMAL(20, 0)) AS `b` FROM `users` AS `users`"
    )


def test_a_cast_to_another_decimal_is_cast_again() -> None:
    found = plan("SELECT id, CAST(id AS DECIMAL(20, 4)) FROM users", "a BIGINT, b DECIMAL(20, 0)", "a")
    assert "CAST(TRY_CAST(`users`.`id` AS DECIMAL(20, 4)) AS DECIMAL(20, 0)) AS `b`" in found.spark_sql


def test_distinct_rows_are_cast_as_a_whole() -> None:
    found = plan("SELECT DISTINCT page FROM views", "a BIGINT", "a")
    assert found.spark_sql == (
        "SELECT CAST(`query`.`a` AS BIGINT) AS `a` FROM (SELECT DISTINCT `views`.`page` AS `a` FROM `views` AS "
        "`views`) "
        "AS `query`"
    )


def insert(
    columns: str, query: str, table: str = "a STRING, b BIGINT, c INT", connector: str = "upsert-kafka"
) -> str:
    return f"{SOURCES}{sink(table, 'a', connector)}INSERT INTO s ({columns})\n{query};\n"


def test_columns_that_are_listed_in_another_order() -> None:
    found = load(insert("b, a", "SELECT COUNT(*), city FROM users GROUP BY city")).inserts[0]
    assert found.spark_sql == (
        "SELECT `users`.`city` AS `a`, COUNT(*) AS `b`, CAST(NULL AS INT) AS `c` FROM `users` AS `users` "
        "GROUP BY `users`.`city`"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            insert("a, d", "SELECT region, 1 FROM views"),
            "5:19: `s` has no column `d`; known names are `a`, `b`, `c`",
        ),
        (insert("a, a", "SELECT region, 1 FROM views"), "5:19: column `a` is named twice"),
        (
            insert("b, c", "SELECT 1, 1 FROM views"),
            "5:16: column `a` of `s` is in the PRIMARY KEY, and the list of columns leaves it out; add it",
        ),
        (
            insert("a", "SELECT region FROM views", "a STRING, b INT NOT NULL"),
            "5:16: column `b` of `s` is NOT NULL, and the list of columns leaves it out; add it",
        ),
        (
            insert("a, b", "SELECT region, 1 FROM views", "a STRING, b AS UPPER(a)"),
            "5:19: column `b` is computed or VIRTUAL and cannot be written",
        ),
    ],
)
def test_lists_of_columns_that_are_refused(text: str, message: str) -> None:
    assert script_refusal(text) == f"t.sql:{message}"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT region FROM views",
            f"6:1: Column types of query result and sink for {SINK} do not match.\nCause: Different number of "
            f"columns.\n\n"
            "Query schema: [region: STRING]\nSink schema:  [a: STRING, b: BIGINT]",
        ),
        (
            "SELECT region,\n  price FROM views",
            f"7:3: Column types of query result and sink for {SINK} do not match.\n"
            "Cause: Incompatible types for sink column 'b' at position 1.\n\n"
            "Query schema: [region: STRING, price: DECIMAL(10, 2)]\nSink schema:  [a: STRING, b: BIGINT]",
        ),
        (
            "SELECT region, COUNT(*) > 1 FROM views GROUP BY region",
            f"6:16: Column types of query result and sink for {SINK} do not match.\n"
            "Cause: Incompatible types for sink column 'b' at position 1.\n\n"
            "Query schema: [region: STRING, EXPR$1: BOOLEAN]\nSink schema:  [a: STRING, b: BIGINT]",
        ),
        (
            "SELECT name, id FROM users",
            "5:13: the PRIMARY KEY of sink `s` is [a], but the key of the query is [b], so rows would overwrite each "
            "other or be left behind; declare the query's key as PRIMARY KEY, or keep one row of each: ROW_NUMBER() "
            "OVER (PARTITION BY a ORDER BY ...) in a subquery, and WHERE it is 1",
        ),
        (
            "SELECT name, COUNT(*) FROM users GROUP BY name, city",
            "5:13: the rows of this query are updated, but it selects no key (name, city) by which a row replaces its "
            "former one; select the columns of the key of each source, or those of GROUP BY",
        ),
        (
            "SELECT city, id FROM users UNION ALL SELECT name, id FROM users",
            "5:13: the rows of this query are updated, but it selects no key by which a row replaces its former one; "
            "select the columns of the key of each source, or those of GROUP BY",
        ),
    ],
)
def test_refused(query: str, message: str) -> None:
    assert refusal(query) == f"t.sql:{message}"


SCAN = "TableSourceScan(table=[[default_catalog, default_database, users]])"
KEYED = "write to an 'upsert-kafka' table with PRIMARY KEY (a), or use a format with updates, such as 'debezium-json'"


@pytest.mark.parametrize(
    ("query", "connector", "changes", "way_out"),
    [
        (VIEWS, "kafka", "update changes which is produced by node GroupAggregate(groupBy=[region])", KEYED),
        (
            VIEWS,
            "delta",
            "update changes which is produced by node GroupAggregate(groupBy=[region])",
            "declare PRIMARY KEY (a) NOT ENFORCED for it",
        ),
        (
            "SELECT city, COUNT(*) FROM users GROUP BY city",
            "kafka",
            "update and delete changes which is produced by node GroupAggregate(groupBy=[city])",
            KEYED,
        ),
        (
            "SELECT name, id FROM users",
            "kafka",
            f"update and delete changes which is produced by node {SCAN}",
            KEYED.replace("(a)", "(b)"),
        ),
        (
            "SELECT u.name, o.id FROM orders o LEFT JOIN users u ON o.user_id = u.id",
            "kafka",
            "update and delete changes which is produced by node Join(joinType=[LeftOuterJoin], "
            "where=[o.user_id = u.id])",
            KEYED.replace("(a)", "(b)"),
        ),
        (
            "SELECT region, user_id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY region ORDER BY ts) AS rn "
            "FROM views) "
            "WHERE rn = 1",
            "kafka",
            "update and delete changes which is produced by node Rank(rankStart=1, rankEnd=1, partitionBy=[region])",
            KEYED,
        ),
        (
            "SELECT DISTINCT region, user_id FROM views",
            "kafka",
            "update changes which is produced by node GroupAggregate(groupBy=[region, user_id])",
            KEYED.replace("(a)", "(a, b)"),
        ),
    ],
)
def test_a_sink_that_takes_no_updates(query: str, connector: str, changes: str, way_out: str) -> None:
    assert refusal(query, key="", connector=connector) == (
        f"t.sql:5:13: Table sink {SINK} doesn't support consuming {changes}; {way_out}"
    )


def test_a_sink_of_several_topics() -> None:
    table = sink("a STRING, b BIGINT", "a").replace("'topic' = 's'", "'topic' = 's;t'")
    assert script_refusal(f"{SOURCES}{table}INSERT INTO s SELECT region, page FROM views") == (
        "t.sql:5:13: table `s`: with a list of topics the 'topic' metadata column must be specified in a table that is "
        "published; declare a column STRING METADATA FROM 'topic', which names the topic of each row"
    )


def test_a_cast_that_makes_keys_equal_is_known() -> None:
    exact = plan("SELECT page, COUNT(*) FROM views GROUP BY page", "a BIGINT, b BIGINT")
    assert exact.keeps_keys and exact.has_one_row_a_key
    cut = plan("SELECT price, COUNT(*) FROM views GROUP BY price", "a DECIMAL(10, 0), b BIGINT")
    assert not cut.keeps_keys and not cut.has_one_row_a_key


def test_times_of_a_delta_table_are_cut_where_it_is_read() -> None:
    """They are no part of the result then, as several values of the table are one."""
    found = {}
    for digits in (3, 6):
        table = (
            f"CREATE TABLE t (id INT, ts TIMESTAMP({digits}), PRIMARY KEY (id) NOT ENFORCED) "
            "WITH ('connector' = 'delta', 'path' = 't');\n"
        )
        query = "INSERT INTO s SELECT ts, COUNT(*) FROM t GROUP BY ts;"
        found[digits] = load(f"{table}{sink(f'ts TIMESTAMP({digits}), n BIGINT', 'ts')}{query}").inserts[0]
    assert found[6].parts and "UNIX_MILLIS" not in found[6].spark_sql
    assert (
        not found[3].parts
        and "FROM (SELECT `t`.`id`, CAST(TIMESTAMP_MILLIS(UNIX_MILLIS(" in found[3].spark_sql
    )


COLUMNS = "id BIGINT, name STRING, paid DECIMAL(10, 2)"
FIRST, SECOND = (
    "INSERT INTO s (id, name) SELECT id, name FROM users",
    "INSERT INTO s (paid, id) SELECT amount, id FROM orders",
)


def script(*inserts: str, columns: str = COLUMNS, connector: str = "upsert-kafka") -> str:
    """INSERTs begin on line 5."""
    return SOURCES + sink(columns, "id", connector) + "".join(f"{insert};\n" for insert in inserts)


@pytest.mark.parametrize("connector", ["upsert-kafka", "delta", "debezium"])
def test_each_has_the_key_and_its_own_columns(connector: str) -> None:
    one, other = load(script(FIRST, SECOND, connector=connector)).inserts
    assert (one.name, one.merge_columns, [c.name for c in one.columns]) == ("s", ("name",), ["id", "name"])
    assert (other.name, other.merge_columns, [c.name for c in other.columns]) == (
        "s-2",
        ("paid",),
        ["id", "paid"],
    )
    assert one.key == other.key == ("id",)
    assert "NULL" not in one.spark_sql + other.spark_sql


def test_an_insert_alone_writes_whole_rows() -> None:
    (plan,) = load(script(FIRST)).inserts
    assert plan.merge_columns == () and [c.name for c in plan.columns] == ["id", "name", "paid"]


def test_another_list_of_columns_is_another_query() -> None:
    alone = load(script(FIRST)).inserts[0].fingerprint
    shared = load(script(FIRST, SECOND)).inserts[0].fingerprint
    assert alone != shared == load(script(FIRST, SECOND)).inserts[0].fingerprint


def test_validate_shows_the_columns() -> None:
    shared = load(script(FIRST, SECOND))
    assert as_rows(shared)["INSERT s-2"].endswith("; writes the columns (paid) only")
    assert [plan["merge_columns"] for plan in as_json(shared)["inserts"]] == [["name"], ["paid"]]


@pytest.mark.parametrize(
    ("inserts", "more", "message"),
    [
        (
            [FIRST, "INSERT INTO s SELECT id, name, 1 FROM users"],
            {},
            "t.sql:6:13: `s` has a PRIMARY KEY and is written by the INSERT of line 5, too, so each would overwrite "
            "rows of the other; write one INSERT with UNION ALL or a join, or give each a list of the columns that it "
            "alone writes: INSERT INTO s (id, ...)",
        ),
        (
            [FIRST, "INSERT INTO s (id, paid, name) SELECT id, amount, 'x' FROM orders"],
            {},
            "t.sql:5:20: column `name` of `s` is in the list of the INSERT of line 6, too, so each would overwrite the "
            "other's values; leave it out of one list",
        ),
        (
            [FIRST, "INSERT INTO s (id) SELECT id FROM orders"],
            {},
            "t.sql:5:16: column `paid` of `s` is in the list of no INSERT; add it to one list, or remove it from "
            "CREATE TABLE",
        ),
        (
            [FIRST, "INSERT INTO s (id) SELECT id FROM orders"],
            {"columns": "id BIGINT, name STRING"},
            "t.sql:6:16: this INSERT writes no column of `s` outside of the PRIMARY KEY, and a row that several "
            "INSERTs write is there as long as such a column has a value; add one to the list",
        ),
        (
            [FIRST, "INSERT INTO s (paid) SELECT amount FROM orders"],
            {},
            "t.sql:6:16: column `id` of `s` is in the PRIMARY KEY, and the list of columns leaves it out; add it",
        ),
        (
            [FIRST, SECOND],
            {"columns": "id BIGINT, name STRING NOT NULL, paid DECIMAL(10, 2)"},
            "t.sql:5:13: column `name` of `s` is NOT NULL, but it is NULL in the rows that only another INSERT has, "
            "such as that of line 6; remove NOT NULL",
        ),
        (
            [FIRST, "INSERT INTO s (id, payed) SELECT id, amount FROM orders"],
            {},
            "t.sql:6:20: `s` has no column `payed`; did you mean `paid`?",
        ),
        (
            [FIRST, SECOND],
            {"connector": "print"},
            "t.sql:5:13: a second INSERT into `s`, a 'print' table with a PRIMARY KEY, is not supported in this version"
            ": create a table for each INSERT",
        ),
    ],
)
def test_refused_own_columns(inserts: list[str], more: dict[str, str], message: str) -> None:
    assert script_refusal(script(*inserts, **more)) == message


def test_explain_takes_an_insert_by_itself() -> None:
    explained = load(script(FIRST, SECOND, f"EXPLAIN {FIRST}")).explained
    assert len(explained) == 1
