"""Projections and filters become the SELECT of an INSERT; errors have their place in the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.sql import InsertPlan
from tests.cdc_jobs.jobs import DELTA, KAFKA, SINK, load, refusal

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
