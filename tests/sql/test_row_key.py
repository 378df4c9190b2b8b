"""Keys of updated rows whose sink has none, and which sinks refuse rows without one."""

from __future__ import annotations

from tests.sql.scripts import plan, refusal

WAY_OUT = (
    "select the columns of the key of each source, or those of GROUP BY. Of a table without a PRIMARY KEY declare it, "
    "or keep one row of each key before the join: ROW_NUMBER() OVER (PARTITION BY key ORDER BY ...) in a subquery, and "
    "WHERE it is 1"
)


def test_updated_rows_without_a_key_get_one_where_the_sink_has_none() -> None:
    query = "SELECT v.region, v.user_id FROM views AS v LEFT JOIN users AS u ON v.user_id = u.id"
    for connector in ("print", "blackhole"):
        found = plan(query, key="", connector=connector)
        names = ("__key0", "__key1", "__key2", "__key3")
        assert (found.key, tuple(c.name for c in found.row_key)) == (names, names)
        assert [c.type.flink() for c in found.row_key] == ["STRING", "INT", "BIGINT", "BIGINT"]
        assert found.positioned == ("views",)
        assert "`v`.`__offset` AS `__key2`, `u`.`id` AS `__key3`" in found.spark_sql
        assert [(p.name, dict(p.sources)) for p in found.parts] == [
            ("b", {"views": "user_id", "users": "id"})
        ]


def test_such_rows_have_a_column_for_their_parts() -> None:
    """The column of the join is kept where it is not selected."""
    found = plan(
        "SELECT v.region, u.name FROM views AS v LEFT JOIN users AS u ON v.user_id = u.id",
        "a STRING, b STRING",
        "",
        "print",
    )
    assert [c.name for c in found.row_key] == [*found.key, "__part"]
    assert [(p.name, dict(p.sources)) for p in found.parts] == [
        ("__part", {"views": "user_id", "users": "id"})
    ]
    assert "`v`.`user_id` AS `__part`" in found.spark_sql


def test_of_subqueries_too() -> None:
    query = (
        "SELECT r.name FROM (SELECT v.region, u.name FROM views AS v JOIN users AS u ON v.user_id = u.id) AS r "
        "JOIN (SELECT name FROM users) AS n ON n.name = r.name"
    )
    found = plan(query, "a STRING", "", "print")
    assert [c.type.flink() for c in found.row_key] == ["STRING", "INT", "BIGINT", "BIGINT", "BIGINT"]
    assert "`r`.`__key2` AS `__key2`, `r`.`__key3` AS `__key3`, `n`.`__key0` AS `__key4`" in found.spark_sql


def test_sinks_with_a_key_or_rows_only_refuse_them() -> None:
    query = "SELECT v.region, u.id FROM views AS v LEFT JOIN users AS u ON v.user_id = u.id"
    assert refusal(query) == (
        "t.sql:5:13: the rows of this query are updated, but it selects no key by which a row replaces its former one; "
        f"{WAY_OUT}"
    )
    assert refusal(query, key="", connector="kafka") == (
        "t.sql:5:13: Table sink 'default_catalog.default_database.s' doesn't support consuming update and delete "
        "changes which is produced by node Join(joinType=[LeftOuterJoin], where=[v.user_id = u.id]); write to an "
        "'upsert-kafka' table with a PRIMARY KEY, or use a format with updates, such as 'debezium-json'"
    )
