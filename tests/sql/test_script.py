"""A whole script: files, references, views, EXPLAIN and warnings.

A script with any mistake loads or is refused with a position; it never ends in another exception.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bridge.ddl.tokens import Source, tokenize
from bridge.errors import DefinitionError, OptionError
from bridge.sql import InsertPlan, load_script
from bridge.sql.script import view_columns
from tests.sql.scripts import KAFKA, SOURCES, load, sink

S = sink("a STRING, b BIGINT", "a")
COUNT = "INSERT INTO s SELECT city, COUNT(*) FROM users GROUP BY city;"


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "counts.sql"
    file.write_text(f"{SOURCES}{S}{COUNT}", encoding="utf-8")
    script = load_script(file, environ={})
    assert (script.name, script.file, script.base) == ("counts", str(file), str(tmp_path))
    assert [table.name for table in script.tables] == ["views", "users", "orders", "s"]
    orders = script.tables[2]
    assert orders.place == str(tmp_path / "lake" / "orders")


def test_settings_name_the_script_and_its_state() -> None:
    script = load("SET 'pipeline.name' = 'x'; SET 'bridge.state' = 'lake/${env:AREA:all}';")
    assert (script.name, script.state) == ("x", "lake/all")


def test_an_empty_script() -> None:
    script = load("-- nothing\n")
    assert (script.statements, script.tables, script.inserts, script.sources) == ((), (), (), ())


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "cannot be read: No such file or directory"), (b"\xff", "is not UTF-8 text")],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, reason: str) -> None:
    file = tmp_path / "x.sql"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DefinitionError) as error:
        load_script(file)
    assert str(error.value) == f"{file}: the script {reason}"


def test_references_in_options() -> None:
    text = f"CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'topic' = '${{env:T}}', {KAFKA}, 'format' = 'json');"
    (table,) = load(text, {"T": "orders"}).tables
    assert table.place == "orders"


def test_a_secret_is_in_no_message(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("p4ss\n")
    text = "CREATE TABLE t (a INT) WITH ('connector' = 'delta', 'path' = '${file:secret}');"
    with pytest.raises(OptionError) as error:
        load_script(tmp_path / "t.sql", text=text, environ={})
    assert str(error.value) == (
        f"{tmp_path}/t.sql:1:53: table `t`: 'path' cannot come from a secret, because reports show it; use ${{env:...}}"
    )


@pytest.mark.parametrize(
    "where", ["SET 'bridge.state' = '{}';", f"{SOURCES}{S}INSERT INTO s SELECT '{{}}', id FROM users"]
)
def test_secrets_are_for_options_only(tmp_path: Path, where: str) -> None:
    (tmp_path / "secret").write_text("p4ss\n")
    with pytest.raises(DefinitionError, match="are allowed in WITH only") as error:
        load_script(tmp_path / "t.sql", text=where.replace("{}", "${file:secret}"), environ={})
    assert "p4ss" not in str(error.value)


def test_a_view_is_part_of_the_query() -> None:
    view = "CREATE VIEW v (k, n) AS SELECT city, id FROM users WHERE name <> '${env:NAME:x}';\n"
    script = load(f"{SOURCES}{S}{view}INSERT INTO s SELECT k, COUNT(*) FROM v GROUP BY k;")
    (found,) = script.inserts
    assert (script.views, found.views) == (("v",), ("v",))
    assert found.spark_sql == (
        "SELECT `v`.`k` AS `a`, COUNT(*) AS `b` FROM (SELECT `users`.`city` AS `k`, `users`.`id` AS `n` FROM "
        "`users` AS "
        "`users` WHERE `users`.`name` <> 'x') AS `v` GROUP BY `v`.`k`"
    )
    assert found.sources[0].columns == ("id", "name", "city")


def test_sources_of_a_script_are_read_once() -> None:
    other = sink("a BIGINT, b STRING", "a", name="t")
    script = load(f"{SOURCES}{S}{other}{COUNT}INSERT INTO t SELECT id, name FROM users;")
    (users,) = script.sources
    assert (users.name, users.columns) == ("users", ("id", "name", "city"))
    assert [plan.sources[0].columns for plan in script.inserts] == [("id", "city"), ("id", "name")]


def test_explain() -> None:
    script = load(f"{SOURCES}{S}EXPLAIN {COUNT}EXPLAIN SELECT id FROM users;")
    insert, query = script.explained
    assert isinstance(insert, InsertPlan)
    assert insert.name == "s"
    assert query == "SELECT `users`.`id` AS `id` FROM `users` AS `users`"
    assert script.inserts == ()


def test_warnings() -> None:
    table = f"CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'topic' = 't', {KAFKA}, 'format' = 'json', " \
        "'sink.semantic' = 'at-least-once');"  # fmt: skip
    assert load(f"SET 'state.backend' = 'rocksdb';{table}").warnings == (
        "SET 'state.backend' has no effect: state is in Delta tables",
        "table t: 'sink.semantic' is deprecated; use 'sink.delivery-guarantee'",
    )


def test_columns_of_views() -> None:
    text = f"{SOURCES}CREATE VIEW v AS SELECT id, UPPER(name) AS label FROM users; CREATE VIEW w AS SELECT id FROM v;"
    found = view_columns("t.sql", text, environ={})
    assert {
        name: [(c.name, c.type and c.type.flink()) for c in columns] for name, columns in found.items()
    } == {
        "v": [("id", "BIGINT"), ("label", "STRING")],
        "w": [("id", "BIGINT")],
    }


HEAD = f"{SOURCES}{sink('a STRING, b BIGINT', 'a')}"
QUERIES = {
    "aggregate": "SELECT region, COUNT(DISTINCT page) FILTER (WHERE ok) FROM views AS v WHERE v.page > 3 AND price / 2 "
    "< 1.5 GROUP BY region HAVING AVG(page) > 1",
    "join": "SELECT COALESCE(u.name, 'x') AS n, o.id FROM orders o LEFT JOIN users AS u ON o.user_id = u.id AND u.city "
    "LIKE 'a%' FULL JOIN (SELECT DISTINCT region FROM views) USING (region)",
    "top-n": "SELECT region, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY region ORDER BY ts DESC, page) AS rn "
    "FROM views) AS t WHERE rn <= 3",
    "union": "WITH w AS (SELECT city AS k, id FROM users) SELECT k, id FROM w UNION ALL SELECT place.b.c, tags['x'] "
    "FROM views WHERE region IN ('a', 'b') OR NOT ok",
    "values": "VALUES ('x', 1), (NULL, CAST('2' AS BIGINT)), (CASE WHEN 1 = 1 THEN 'y' ELSE 'z' END, -2)",
}
WORDS = "SELECT FROM WHERE GROUP BY ( ) , . * 1 'x' `q` NULL AND ON AS OVER ; = views region CASE END INTERVAL".split()


def message(text: str) -> str:
    try:
        load(text)
    except DefinitionError as error:
        return str(error)
    return "t.sql: accepted"


def check(text: str) -> None:
    assert message(text).startswith("t.sql:")


@pytest.mark.parametrize("name", QUERIES)
def test_one_token_is_missing_twice_there_or_another_one(name: str) -> None:
    text = f"INSERT INTO s {QUERIES[name]};"
    chosen = random.Random(name)
    for token in tokenize(Source(text, "t.sql"))[:-1]:
        before, own, after = text[: token.start], text[token.start : token.end], text[token.end :]
        for changed in ("", f"{own} {own}", chosen.choice(WORDS), f"{own} {chosen.choice(WORDS)}"):
            check(f"{HEAD}{before} {changed} {after}")


@pytest.mark.parametrize("name", QUERIES)
def test_the_script_ends_at_any_token(name: str) -> None:
    text = f"BEGIN STATEMENT SET; INSERT INTO s (b, a) {QUERIES[name]}; END;"
    for token in tokenize(Source(text, "t.sql")):
        check(f"{HEAD}{text[: token.start]}")
