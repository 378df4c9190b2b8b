"""What `bridge validate` prints about a script."""

from __future__ import annotations

import json

import pytest

from bridge.sql import as_json, as_rows
from tests.sql.scripts import SOURCES, load, sink

TEXT = (
    f"SET 'state.backend' = 'x';\n{SOURCES}{sink('a STRING, b BIGINT', 'a')}"
    "CREATE VIEW v AS SELECT city FROM users;\n"
    "INSERT INTO s SELECT city, COUNT(*) FROM v GROUP BY city;\n"
    "EXPLAIN SELECT id FROM users;\n"
)
SQL = (
    "SELECT `v`.`city` AS `a`, COUNT(*) AS `b` FROM (SELECT `users`.`city` AS `city` FROM `users` AS `users`) AS `v` "
    "GROUP BY `v`.`city`"
)


def test_rows() -> None:
    script = load(TEXT)
    rows = as_rows(script)
    assert rows == {
        "statements": "8",
        "table views": "kafka views",
        "table users": "upsert-kafka users, PRIMARY KEY (id)",
        "table orders": f"delta {script.base}/lake/orders, PRIMARY KEY (id)",
        "table s": "upsert-kafka s, PRIMARY KEY (a)",
        "views": "v",
        "INSERT s": "line 7: aggregate of users; rows are updated, by key (a)",
        "INSERT s: state": "users (id, city)",
        "INSERT s: computed again": "rows by a (from users.city)",
        "INSERT s: Spark SQL": SQL,
        "INSERT s: fingerprint": script.inserts[0].fingerprint,
        "EXPLAIN 1": "SELECT `users`.`id` AS `id` FROM `users` AS `users`",
        "warning 1": "SET 'state.backend' has no effect: state is in Delta tables",
    }


def test_json() -> None:
    script = load(TEXT)
    shown = json.loads(json.dumps(as_json(script)))
    assert shown["statements"][0] == {"kind": "SetOption", "line": 1}
    assert [table["name"] for table in shown["tables"]] == ["views", "users", "orders", "s"]
    assert shown["inserts"] == [
        {
            "name": "s",
            "line": 7,
            "sink": "s",
            "kind": "aggregate",
            "operations": ["aggregate"],
            "columns": [{"name": "a", "type": "STRING"}, {"name": "b", "type": "BIGINT"}],
            "key": ["a"],
            "merge_columns": [],
            "is_updating": True,
            "sources": shown["sources"],
            "states": [{"source": "users", "key": ["id"], "columns": ["id", "city"]}],
            "views": ["v"],
            "parts": [{"column": "a", "sources": {"users": "city"}}],
            "parts_sql": "",
            "accumulators": {},
            "counted_values": {},
            "windows": None,
            "spark_sql": SQL,
            "fingerprint": script.inserts[0].fingerprint,
        }
    ]
    assert shown["sources"] == [
        {
            "name": "users",
            "connector": "upsert-kafka",
            "place": "users",
            "key": ["id"],
            "columns": ["id", "city"],
            "is_updating": True,
        }
    ]


@pytest.mark.parametrize(
    ("connector", "key", "changes"),
    [
        ("kafka", "", "rows are only added"),
        ("delta", "a", "rows are only added, and the last one of a key (a) counts"),
    ],
)
def test_rows_that_are_only_added(connector: str, key: str, changes: str) -> None:
    text = f"{SOURCES}{sink('a STRING', key, connector)}INSERT INTO s SELECT region FROM views;"
    assert as_rows(load(text))["INSERT s"] == f"line 5: projection of views; {changes}"
