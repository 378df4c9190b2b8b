"""Tables of a source: keys of Delta tables, topics and columns of topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cdc_jobs.jobs import DELTA, KAFKA, SINK, load, refusal

TWO = KAFKA.replace("topic: orders", "topic: orders;items").replace(
    "    )\n", "    );\n    CREATE TABLE items (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)\n"
)


@pytest.mark.parametrize(
    ("keys", "orders", "items"),
    [
        ("id", ("id",), ("id",)),
        ("shop.orders:id;shop.items:order_id, id", ("id",), ("order_id", "id")),
        ("shop.\\.*:id", ("id",), ("id",)),
        ("items:order_id;shop.\\.*:id", ("id",), ("order_id",)),
    ],
)
def test_keys(shop: Path, keys: str, orders: tuple[str, ...], items: tuple[str, ...]) -> None:
    job = load(shop, DELTA.replace("primary-keys: id", f"primary-keys: {keys}") + SINK)
    assert {table.source: table.key for table in job.tables} == {"shop.orders": orders, "shop.items": items}
    assert {d.primary_key for d in job.publishes} == {orders, items}


def test_a_key_of_a_rule_alone_needs_no_script(shop: Path) -> None:
    text = DELTA.replace("  primary-keys: id\n", "") + SINK
    job = load(shop, text + "transform:\n  - {source-table: 'shop.\\.*', primary-keys: id}\n")
    assert job.script is None
    assert {d.primary_key for d in job.publishes} == {("id",)}


def test_where_a_publish_begins(shop: Path) -> None:
    assert {d.publish.start.mode for d in load(shop, DELTA + SINK).publishes} == {"snapshot"}
    latest = DELTA + "  scan.startup.mode: latest-offset\n" + SINK
    assert {d.publish.start.mode for d in load(shop, latest).publishes} == {"latest"}


def test_topics_are_found_by_the_names_of_tables(shop: Path) -> None:
    job = load(shop, TWO + SINK)
    assert {table.source: table.place for table in job.tables} == {"shop.orders": "orders", "items": "items"}


def test_a_table_may_name_its_topic(shop: Path) -> None:
    text = TWO.replace("orders;items", "a;b").replace("    );\n", "    ) WITH ('topic' = 'b');\n")
    text = text.replace(
        "items (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)",
        "items (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('topic' = 'a')",
    )
    job = load(shop, text + SINK)
    assert {table.source: table.place for table in job.tables} == {"shop.orders": "b", "items": "a"}


def test_options_of_a_topic(shop: Path) -> None:
    more = "  debezium-json.ignore-parse-errors: true\n  value.debezium-json.timestamp-format.standard: ISO-8601\n"
    job = load(shop, KAFKA + "  scan.startup.mode: earliest-offset\n" + more + SINK)
    assert job.script is not None
    topic = job.script.tables[0].topic
    assert topic is not None
    assert (topic.startup.mode, topic.names) == ("earliest-offset", ("orders",))
    assert topic.value.options["ignore-parse-errors"] is True
    assert topic.value.options["timestamp-format.standard"] == "ISO-8601"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            DELTA.replace("primary-keys: id", "primary-keys: key"),
            "job.yaml:5: source.primary-keys: table shop.items has no column `key`; known names are `id`, `order_id`",
        ),
        (
            DELTA.replace("primary-keys: id", "primary-keys: shop.orders:id;id"),
            "source.primary-keys: 'id' names no table; write one list for all tables (id), or table:columns for each",
        ),
        (
            DELTA.replace("primary-keys: id", "primary-keys: shop.orders:id"),
            "job.yaml:5: source.primary-keys: upsert-kafka needs the key of table shop.items; write primary-keys: "
            "shop.items:id",
        ),
        (
            DELTA.replace("shop.\\.*", "shop.order"),
            "job.yaml:4: source.tables: there is no Delta table 'shop.order' in ",
        ),
        (DELTA.replace("shop.\\.*", "shop.*"), "job.yaml:4: source.tables: '*' is not a regular expression"),
        (DELTA.replace("lake", "lak"), "job.yaml:4: source.tables: there is no folder lak"),
        (
            DELTA + "  scan.startup.mode: timestamp\n",
            "job.yaml:6: source.scan.startup.mode: 'timestamp': legal values are initial (the table, then its "
            "changes) and latest-offset",
        ),
        (
            TWO.replace("orders;items", "a;b"),
            "job.yaml:3: source.topic: which of a, b is the topic of table shop.orders? Name it like its topic, or "
            "write WITH ('topic' = '...') behind its columns",
        ),
        (
            KAFKA.replace("topic: orders", "topic: orders;more"),
            "job.yaml:3: source.topic: topic 'more' has no table; add its CREATE TABLE, or remove the topic",
        ),
    ],
)
def test_what_is_refused(shop: Path, text: str, message: str) -> None:
    assert message in refusal(shop, text + SINK)
