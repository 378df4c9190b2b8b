"""Several INSERTs write columns of one table with a PRIMARY KEY."""

from __future__ import annotations

import pytest

from bridge.sql import as_json, as_rows
from tests.sql.scripts import SOURCES, load, script_refusal, sink

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
def test_refused(inserts: list[str], more: dict[str, str], message: str) -> None:
    assert script_refusal(script(*inserts, **more)) == message


def test_explain_takes_an_insert_by_itself() -> None:
    explained = load(script(FIRST, SECOND, f"EXPLAIN {FIRST}")).explained
    assert len(explained) == 1
