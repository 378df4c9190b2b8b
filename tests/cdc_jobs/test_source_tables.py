"""Tables of a source: keys of Delta tables, topics and columns of topics.

Delta tables are found by their place, and their columns read from their logs.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T

from bridge.cdc_jobs.source_tables import delta_type, find_tables, read_columns
from bridge.cdc_jobs.table_ids import TableSelector
from bridge.columns import data_type
from bridge.errors import DefinitionError, TableError
from tests.cdc_jobs.jobs import DELTA, KAFKA, SINK, load, refusal, write_table

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


ONE = {"id": pa.array([1], pa.int64())}


def found(path: Path, tables: str | None) -> list[str]:
    selector = None if tables is None else TableSelector.parse(tables)
    return [".".join(table.id) for table in find_tables(str(path), selector)]


def test_the_id_is_the_place(shop: Path) -> None:
    lake = shop / "lake"
    assert found(lake, "shop.\\.*") == ["shop.items", "shop.orders"]
    assert found(lake, "shop.orders") == ["shop.orders"]
    assert found(lake / "shop", "\\.*") == ["items", "orders"]
    assert found(lake / "shop" / "orders", None) == ["orders"]
    assert [table.path for table in find_tables(str(lake), TableSelector.parse("orders"))] == [
        str(lake / "shop" / "orders")
    ]


def test_the_bridge_s_own_tables_are_left_out_unless_they_are_named(tmp_path: Path) -> None:
    for name in (
        "orders",
        "orders_quarantine",
        "orders_quality",
        "only_quality",
        "_hidden",
        "bridge-state/job/quality",
    ):
        write_table(tmp_path / name, ONE)
    assert found(tmp_path, "\\.*") == ["only_quality", "orders"]
    assert found(tmp_path, "\\.*,\\.*.\\.*.\\.*") == ["only_quality", "orders"]
    assert found(tmp_path, "orders_quarantine") == ["orders_quarantine"]


def test_object_stores_are_not_listed() -> None:
    named = find_tables("s3a://lake/raw/", TableSelector.parse("shop.orders, shop.items"))
    assert [(t.id, t.path) for t in named] == [
        (("shop", "orders"), "s3a://lake/raw/shop/orders"),
        (("shop", "items"), "s3a://lake/raw/shop/items"),
    ]
    assert find_tables("s3a://lake/orders", None)[0].id == ("orders",)
    with pytest.raises(DefinitionError, match="is an object store, which is not listed; name the tables: "):
        find_tables("s3a://lake/raw", TableSelector.parse("shop.\\.*"))


@pytest.mark.parametrize(
    ("path", "tables", "message"),
    [
        ("lake", None, "lake is no Delta table; name the tables in it with `tables`"),
        ("lake", "shop.order", "there is no Delta table 'shop.order' in "),
        ("lake", "shop.order, shop.items", "; it has shop.items, shop.orders"),
        ("lake", "other.\\.*", "'other.\\.*' selects no Delta table in "),
        ("nowhere", "t", "there is no folder "),
        ("lake/shop/orders", "items", "'items' does not select 'orders', the table at "),
    ],
)
def test_what_is_not_found(shop: Path, path: str, tables: str | None, message: str) -> None:
    with pytest.raises(DefinitionError) as error:
        found(shop / path, tables)
    assert message in str(error.value)


def test_columns(tmp_path: Path) -> None:
    write_table(
        tmp_path / "t",
        {
            "id": pa.array([1], pa.int64()),
            "d": pa.array([None], pa.decimal128(10, 2)),
            "at": pa.array([None], pa.timestamp("us")),
            "tags": pa.array([["a"]], pa.list_(pa.string())),
        },
    )
    assert [(name, type.flink()) for name, type in read_columns(str(tmp_path / "t"))] == [
        ("id", "BIGINT"),
        ("d", "DECIMAL(10, 2)"),
        ("at", "TIMESTAMP(6)"),
        ("tags", "ARRAY<STRING>"),
    ]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"the Delta table .*/none cannot be read: "):
        read_columns(str(tmp_path / "none"))
    log = tmp_path / "odd" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("no json")
    with pytest.raises(TableError, match=r"the Delta table .*/odd cannot be read: "):
        read_columns(str(tmp_path / "odd"))


SCALARS = st.sampled_from(
    [
        *(
            T.StringType(),
            T.BooleanType(),
            T.BinaryType(),
            T.ByteType(),
            T.ShortType(),
            T.IntegerType(),
            T.LongType(),
        ),
        *(
            T.FloatType(),
            T.DoubleType(),
            T.DateType(),
            T.TimestampType(),
            T.TimestampNTZType(),
            T.DecimalType(12, 3),
        ),
        *(T.VariantType(), T.DayTimeIntervalType()),
    ]
)
TYPES = st.recursive(
    SCALARS,
    lambda types: st.one_of(
        st.builds(T.ArrayType, types),
        st.builds(T.MapType, SCALARS, types),
        st.lists(types, min_size=1, max_size=3).map(
            lambda found: T.StructType([T.StructField(f"f{n}", type) for n, type in enumerate(found)])
        ),
    ),
    max_leaves=6,
)


@given(type=TYPES)
def test_types_are_those_that_a_publish_sees(type: T.DataType) -> None:
    """A publish reads the same schema with Spark, and compares it with the DDL that the job has made."""
    assert delta_type(json.loads(type.json())) == data_type(type)


def test_a_type_that_the_bridge_does_not_have() -> None:
    field = {"name": "v", "type": "variant", "nullable": True, "metadata": {}}
    assert delta_type("variant") is None
    assert delta_type({"type": "struct", "fields": [field]}) is None
    assert delta_type({"type": "array", "elementType": "variant", "containsNull": True}) is None


def test_a_folder_that_delta_rs_takes_for_another_one_is_refused(tmp_path: Path) -> None:
    """It would read the columns of the table in the folder whose name the escape means."""
    write_table(tmp_path / "a b" / "t", ONE)
    write_table(tmp_path / "t", {"other": pa.array(["x"])})
    (tmp_path / "a%20b").mkdir()
    (tmp_path / "t").rename(tmp_path / "a%20b" / "t")
    with pytest.raises(TableError) as refused:
        read_columns(str(tmp_path / "a%20b" / "t"))
    assert str(refused.value) == (
        f"the Delta table {tmp_path}/a%20b/t cannot be read: the path has '%20' in a name, which delta-rs takes for "
        "another one; give the folder another name"
    )
