"""Names of tables and views are used once and known."""

from __future__ import annotations

import pytest

from tests.sql.scripts import SOURCES, load, script_refusal, sink

S = sink("a STRING, b BIGINT", "a")


def test_each_statement_sees_those_before_it() -> None:
    script = load(
        f"{SOURCES}CREATE VIEW v AS SELECT * FROM users; CREATE TABLE t (a INT) WITH ('connector' = 'print');"
    )
    assert [table.name for table in script.tables] == ["views", "users", "orders", "t"]
    assert script.views == ("v",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{S}{S}", "2:14: `s`: a table with the name `s` already exists; rename or remove one"),
        (
            f"{S}CREATE TABLE IF NOT EXISTS S (a INT) WITH ('connector' = 'print')",
            "2:28: `S`: a table with the name `s` already exists, and IF NOT EXISTS would ignore this one; rename or "
            "remove one",
        ),
        (
            f"{SOURCES}CREATE VIEW v AS SELECT 1 AS a; CREATE VIEW `v` AS SELECT 2 AS b",
            "4:45: `v`: a view with the name `v` already exists; rename or remove one",
        ),
        (f"{SOURCES}INSERT INTO user SELECT 1", "4:13: there is no table `user`; did you mean `users`?"),
        ("INSERT INTO t SELECT 1", "1:13: there is no table `t`; the script creates none"),
        (
            f"{S}INSERT INTO s\nSELECT a, b\nFROM zzz",
            "4:6: there is no table or view `zzz`; known names are `s`",
        ),
        (
            "CREATE VIEW v AS SELECT 1 AS a; INSERT INTO v SELECT 1",
            "1:45: `v` is a view; an INSERT writes to a table",
        ),
        (
            f"{SOURCES}CREATE VIEW w AS SELECT * FROM v; CREATE VIEW v AS SELECT 1 AS a",
            "4:32: there is no table or view `v`; known names are `views`, `users`, `orders`",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert script_refusal(text) == f"t.sql:{message}"
