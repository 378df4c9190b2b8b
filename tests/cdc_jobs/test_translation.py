"""Projections and filters become the SELECT of an INSERT; errors have their place in the job.

Projections are taken apart as Flink CDC does.

Projections and filters of a job go the way of a SELECT: the vectors of Flink become the same Spark SQL.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from bridge.cdc_jobs.translation import Projected, expression_names, project, unescaped
from bridge.ddl.tokens import Source
from bridge.errors import DdlError
from bridge.sql import InsertPlan
from tests.cdc_jobs.jobs import DELTA, KAFKA, SINK, load, refusal
from tests.expressions.places import SOURCE, selected, transformed
from tests.expressions.vectors import drawn_seed, spark_text, vectors

PLAIN_KAFKA = KAFKA.replace("debezium-json", "json").replace(", PRIMARY KEY (id) NOT ENFORCED", "")


def transform(*lines: str, table: str = "shop.orders") -> str:
    return f"transform:\n  - source-table: {table}\n" + "".join(f"    {line}\n" for line in lines)


def plan(shop: Path, text: str) -> InsertPlan:
    script = load(shop, text).script
    assert script is not None
    (insert,) = script.inserts
    return insert


def test_a_projection_and_a_filter(shop: Path) -> None:
    text = DELTA + SINK + transform("projection: id, UPPER(name) AS label", "filter: price > 2")
    insert = plan(shop, text)
    assert [(c.name, c.type.flink()) for c in insert.columns] == [
        ("id", "BIGINT"),
        ("label", "STRING"),
    ]
    assert (insert.sink, insert.key, insert.is_updating) == ("shop.orders", ("id",), True)
    assert "UPPER(`source_shop.orders`.`name`) AS `label`" in insert.spark_sql
    assert "WHERE `source_shop.orders`.`price` > 2" in insert.spark_sql


def test_other_tables_are_sent_as_they_are(shop: Path) -> None:
    job = load(shop, DELTA + SINK + transform("filter: price > 2"))
    assert [(table.source, table.is_direct) for table in job.tables] == [
        ("shop.items", True),
        ("shop.orders", False),
    ]
    assert [d.name for d in job.publishes] == ["job.shop.items"]


def test_a_filter_by_a_computed_column(shop: Path) -> None:
    text = transform("projection: id, UPPER(name) AS label", "filter: label = 'A' AND price > 1")
    insert = plan(shop, DELTA + SINK + text)
    assert [c.name for c in insert.columns] == ["id", "label"]
    assert "WHERE `computed_transform_shop.orders`.`label` = 'A'" in insert.spark_sql


def test_the_topic_and_the_state_of_a_script(shop: Path) -> None:
    sink = SINK + "  sink.delivery-guarantee: exactly-once\n  sink.add-tableId-to-header-enabled: true\n"
    route = "route:\n  - {source-table: shop.orders, sink-table: ods.o}\n"
    pipeline = "pipeline: {name: j, bridge.state: state, parallelism: 2}\n"
    job = load(shop, DELTA + sink + transform("filter: price > 2") + route + pipeline)
    assert job.script is not None
    assert (job.script.name, job.script.state, job.folder) == ("j", "state", f"{shop}/state/j")
    (topic,) = [t.topic for t in job.script.tables if t.name == "ods.o"]
    assert topic is not None
    assert topic.names == ("ods.o",)
    assert topic.sink.headers == (("namespace", ""), ("schemaName", "ods"), ("tableName", "o"))
    assert (topic.sink.transactional_id_prefix, topic.sink.parallelism) == ("j.ods.o", 2)


def test_a_topic_as_the_source(shop: Path) -> None:
    sink = SINK.replace("upsert-", "") + "  value.format: canal-json\n"
    insert = plan(shop, KAFKA + sink + "route:\n  - {source-table: shop.orders, sink-table: out}\n")
    assert (insert.sink, insert.key, insert.sources[0].place) == ("out", ("id",), "orders")
    assert [c.type.flink() for c in insert.columns] == ["BIGINT", "STRING", "DECIMAL(10, 2)"]


def test_rows_that_are_only_added_get_their_key_from_the_rule(shop: Path) -> None:
    insert = plan(shop, PLAIN_KAFKA + SINK + transform("primary-keys: id"))
    assert (insert.key, insert.is_updating, insert.keeps_last) == (("id",), False, True)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (["projection: \\*, UPER(name) AS n"], "job.yaml:11:21: the function UPER is not supported"),
        (['projection: "id, UPER(name) AS n"'], "job.yaml:11:22: the function UPER is not supported"),
        (["projection: 'id, UPER(name) AS n'"], "job.yaml:11:22: the function UPER is not supported"),
        (
            ["projection: |", "  id,", "  UPER(name) AS n"],
            "job.yaml:13:7: the function UPER is not supported",
        ),
        (
            ["projection: id,", "  UPER(name) AS n"],
            "job.yaml:11:17: the function UPER is not supported in this version: did you mean `UPPER`? (line 1, column "
            "5 of the text)",
        ),
        (
            ["projection: id, nam"],
            "job.yaml:11:21: table shop.orders has no column `nam`; did you mean `name`?",
        ),
        (["filter: pric > 2"], "job.yaml:11:13: there is no column `pric`; did you mean"),
        (["filter: price >"], "job.yaml:11:19: unexpected '>'"),
        (["filter: name"], "job.yaml:11:13: a condition is BOOLEAN, and this is STRING"),
        (
            ["filter: __data_event_type__ = '+I'"],
            "job.yaml:11:13: __data_event_type__ is not a part of a row",
        ),
        (["filter: '-- nothing'"], "job.yaml:11: transform.0.filter: it is empty; set a value"),
        (["filter: name = 'a"], "job.yaml:11:20: this string is not closed"),
        (["filter: UUID() = name"], "job.yaml:11:13: UUID is not deterministic"),
        (
            ["projection: id, UPPER(name) AS name", "filter: name = 'A'"],
            "job.yaml:12: transform.0.filter: `name` is a column of the table and a computed column of the projection",
        ),
        (
            ["projection: name"],
            "job.yaml:11: transform.0.projection: it leaves out `id`, which is in the key of table shop.orders, (id); "
            "add it",
        ),
        (
            ["projection: CAST(id AS STRING) AS id"],
            "job.yaml:10: transform.0: the rows of this query are updated, but it selects no key by which a row",
        ),
        (
            ["projection: id, name", "primary-keys: name"],
            "job.yaml:12: transform.0.primary-keys: the key of table shop.orders is (id); by another key, (name), rows",
        ),
        (
            ["projection: id, COUNT(name) AS n"],
            "job.yaml:11: transform.0.projection: Expression 'id' is not being grouped",
        ),
    ],
)
def test_places_of_errors(shop: Path, rule: list[str], message: str) -> None:
    assert refusal(shop, DELTA + SINK + transform(*rule)).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            DELTA.replace("  primary-keys: id\n", "") + SINK + transform("filter: id > 1"),
            "job.yaml:2: source.primary-keys: upsert-kafka needs the key of table shop.items; write primary-keys: "
            "shop.items:id, as Delta tables have no key, or primary-keys in its transform rule",
        ),
        (
            PLAIN_KAFKA + SINK,
            "job.yaml:6: source.ddl: upsert-kafka needs the key of table shop.orders; write PRIMARY KEY (...) NOT "
            "ENFORCED in its CREATE TABLE",
        ),
        (
            DELTA + "  scan.startup.mode: latest-offset\n" + SINK + transform("filter: id > 1"),
            "job.yaml:6: source.scan.startup.mode: a table with a projection or filter is read whole; the legal "
            "value is initial",
        ),
        (
            DELTA
            + SINK
            + transform("filter: id > 1")
            + transform("filter: id > 2", table="shop.\\.*").split("\n", 1)[1],
            "job.yaml:12: transform.1.source-table: table shop.orders is matched by transform.0, too; rules that",
        ),
        (
            KAFKA.replace("BIGINT", "BIGIN") + SINK,
            "job.yaml:8:10: unknown type `BIGIN`; did you mean `BIGINT`?",
        ),
        (
            KAFKA.replace("DECIMAL(10, 2)", "TIME") + SINK,
            "job.yaml:8:37: type TIME: Delta has no TIME type; declare STRING",
        ),
        (
            KAFKA.replace(", PRIMARY KEY (id) NOT ENFORCED", "") + SINK + transform("primary-keys: id"),
            "job.yaml:14: transform.0: table `shop.orders` has updates and deletes but no PRIMARY KEY",
        ),
        (
            KAFKA + "  scan.startup.mode: never\n" + SINK,
            "job.yaml:10: source.scan.startup.mode: table `shop.orders`: 'scan.startup.mode': Unsupported value",
        ),
        (
            KAFKA + SINK + "  properties.acks: some\n",
            "job.yaml:13: sink.properties.acks: table `shop.orders`: 'properties.acks': 'some' is not legal;",
        ),
    ],
)
def test_places_of_other_errors(shop: Path, text: str, message: str) -> None:
    assert refusal(shop, text).startswith(message)


def test_a_rule_without_a_table_is_warned_of(shop: Path) -> None:
    job = load(shop, DELTA + SINK + transform("filter: id > 1", table="shop.nothing"))
    assert job.warnings == ("transform.0: no table of the source matches 'shop.nothing'",)
    assert job.script is None


COLUMNS = ("id", "name", "price")


def projected(text: str, table: tuple[str, ...] = ("shop", "orders")) -> list[tuple[str, str]]:
    """The columns, each with its expression as it gets into the script."""
    source = unescaped(Source(text, "f"))
    return [(c.name, _text(source, c)) for c in project(Source(text, "f"), COLUMNS, table)]


def _text(source: Source, column: Projected) -> str:
    return "".join(p if isinstance(p, str) else source.text[slice(*p)] for p in column.expression)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("\\*", [("id", ""), ("name", ""), ("price", "")]),
        ("*", [("id", ""), ("name", ""), ("price", "")]),
        ("price, id", [("price", ""), ("id", "")]),
        (
            "\\*, UPPER(name) AS name, price * 2 as twice",
            [("id", ""), ("name", "UPPER(name)"), ("price", ""), ("twice", "price * 2")],
        ),
        (
            "UPPER(name) AS name, \\*",
            [("name", "UPPER(name)"), ("id", ""), ("price", "")],
        ),
        ("COALESCE(name, 'a, b') AS `a name`, id", [("a name", "COALESCE(name, 'a, b')"), ("id", "")]),
        (
            "\\*, price \\* 2 /* \\* */ AS twice, REPLACE(name, '\\*', ' *') AS `\\*`",
            [
                ("id", ""),
                ("name", ""),
                ("price", ""),
                ("twice", "price  * 2"),
                ("\\*", "REPLACE(name, '\\*', ' *')"),
            ],
        ),
        ("CAST(id AS STRING) AS id", [("id", "CAST(id AS STRING)")]),
        (
            "id, __namespace_name__ AS n, __schema_name__ || '.' || __table_name__ AS t",
            [("id", ""), ("n", "''"), ("t", "'shop' || '.' || 'orders'")],
        ),
    ],
)
def test_columns(text: str, columns: list[tuple[str, str]]) -> None:
    assert projected(text) == columns


def test_the_metadata_of_a_table_with_three_parts() -> None:
    assert projected("__namespace_name__ AS n", ("it's", "public", "t")) == [("n", "'it''s'")]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("id, nam", 5, "table shop.orders has no column `nam`; did you mean `name`?"),
        ("id, UPPER(name)", 5, "an expression needs a name: UPPER(name) AS upper_name"),
        ("__table_name__", 1, "an expression needs a name"),
        ("id,, name", 4, "a column is missing here; remove the comma, or name one"),
        ("id, name,", 10, "a column is missing here"),
        ("id, __data_event_type__ AS op", 5, "__data_event_type__ is not a part of a row"),
        ("id AS __id", 7, "column `__id`: names that start with two underscores are reserved for the bridge"),
        ("id AS 'x'", 1, "an expression needs a name"),
        ("'open", 1, "this string is not closed"),
    ],
)
def test_what_is_refused(text: str, column: int, message: str) -> None:
    with pytest.raises(DdlError) as error:
        projected(text)
    assert str(error.value).startswith(f"f:1:{column}: {message}")


def test_words_of_an_expression() -> None:
    assert expression_names(Source("new_name = 'SHANGHAI' AND `a b` > 1", "f")) == {"new_name", "AND", "a b"}


_DRAWN, _AT_ONCE, _PARTS = 100, 20, 8


def _accepted(expressions: Iterable[str]) -> list[tuple[str, str]]:
    """Those that a computed column takes, with their Spark SQL there."""
    found = []
    for text in expressions:
        try:
            found.append((text, spark_text(text)))
        except DdlError:
            continue
    return found


def _of_columns() -> dict[str, str]:
    """The vectors with columns that Flink does not refuse, with their types; without maps that JSON cannot have."""
    return {
        v.expression: v.type
        for v in vectors()
        if v.refused is None and "c_" in v.expression and not re.search("MAP<(?!STRING|CHAR|VARCHAR)", v.type)
    }


def _check(folder: Path, expressions: Mapping[str, str]) -> None:
    accepted = _accepted(expressions)
    for at in range(0, len(accepted), _AT_ONCE):
        chosen = accepted[at : at + _AT_ONCE]
        items = "rid, " + ", ".join(f"{text} AS v{n}" for n, (text, _) in enumerate(chosen))
        conditions = [
            (text, computed) for text, computed in chosen if expressions[text].startswith("BOOLEAN")
        ]
        condition = " AND ".join(f"({text})" for text, _ in conditions)
        query = selected(items, condition)
        assert f"FROM ({query}) AS `transform_orders`" in transformed(folder, items, condition)
        parts = [f", {_qualified(computed)} AS `v{n}`" for n, (_, computed) in enumerate(chosen)]
        parts += [f"({_qualified(computed)})" for _, computed in conditions]
        assert [part for part in parts if part not in query] == []


def _qualified(text: str) -> str:
    """The text of a computed column with the columns of the table as in a SELECT."""
    return re.sub(r"(?<!`\.)`(c_\w+)`", rf"`{SOURCE}`.`\1`", text)


def test_a_sample_becomes_the_same(tmp_path: Path) -> None:
    seed = drawn_seed()
    every = _of_columns()
    _check(tmp_path, {text: every[text] for text in random.Random(seed).sample(list(every), _DRAWN)})


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_all_become_the_same(tmp_path: Path, part: int) -> None:
    every = _of_columns()
    _check(tmp_path, {text: every[text] for text in list(every)[part::_PARTS]})
