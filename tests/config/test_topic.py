"""A DDL is resolved: documents, start and end positions, sink and defaults."""

from __future__ import annotations

import pytest

from bridge.config import resolve_topic
from bridge.definition import Bounded, DeliveryGuarantee, Sink, Startup
from bridge.offsets import Offsets
from bridge.secret import Secret
from tests.config.tables import kafka, upsert

PREFIXED = """
  k_user_id BIGINT, name STRING, ts TIMESTAMP(3) METADATA FROM 'timestamp', k_event_id BIGINT, user_id INT,
  twice AS user_id * 2, PRIMARY KEY (k_event_id, k_user_id) NOT ENFORCED
"""


def test_the_smallest_upsert_table() -> None:
    topic = resolve_topic(upsert())
    assert topic.connector == "upsert-kafka"
    assert topic.names == ("t",)
    assert topic.key
    assert topic.key.columns == ("region",)
    assert topic.value.columns == ("region", "view_count")
    assert topic.startup == Startup("earliest-offset")
    assert topic.bounded == Bounded("unbounded")
    assert topic.sink == Sink(DeliveryGuarantee.AT_LEAST_ONCE, 0, 0, None)
    assert topic.parallelism is None
    assert topic.bootstrap_servers == "localhost:9092"


def test_key_prefix_and_primary_key_order() -> None:
    topic = resolve_topic(upsert(PREFIXED, key__fields_prefix="k_", value__fields_include="EXCEPT_KEY"))
    assert topic.key
    assert topic.key.columns == ("k_event_id", "k_user_id")
    assert topic.key.row.names == ("event_id", "user_id")
    assert topic.value.columns == topic.value.row.names == ("name", "user_id")


@pytest.mark.parametrize(
    ("include", "value"), [("ALL", ("id", "name", "age", "address")), ("EXCEPT_KEY", ("id", "age"))]
)
def test_key_fields_of_a_kafka_table(include: str, value: tuple[str, ...]) -> None:
    columns = "id INT, name STRING, age INT, address STRING"
    options = {"key__fields": "address; name", "value__fields_include": include}
    topic = resolve_topic(kafka(columns, key__format="json", value__format="json", **options))
    assert topic.key
    assert topic.key.columns == ("address", "name")
    assert topic.value.columns == value


def test_a_kafka_table_without_a_key() -> None:
    topic = resolve_topic(kafka(format="json", json__ignore_parse_errors="true"))
    assert topic.key is None
    assert topic.sink.partitioner == "default"
    assert topic.value.options["ignore-parse-errors"] is True
    assert topic.startup.mode == "group-offsets"


@pytest.mark.parametrize(
    ("options", "milliseconds"), [({}, 300_000), ({"interval": "100 ms"}, 100), ({"interval": "0"}, 0)]
)
def test_partition_discovery(options: dict[str, str], milliseconds: int) -> None:
    more = {f"scan__topic_partition_discovery__{k}": v for k, v in options.items()}
    assert resolve_topic(kafka(format="json", **more)).discovery_interval_ms == milliseconds


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"mode": "latest-offset"}, Bounded("latest-offset")),
        ({"mode": "timestamp", "timestamp_millis": "7"}, Bounded("timestamp", None, 7)),
        (
            {"mode": "SPECIFIC-OFFSETS", "specific_offsets": "partition:0,offset:2"},
            Bounded("specific-offsets", Offsets({("t", 0): 2})),
        ),
    ],
)
def test_bounded_modes(options: dict[str, str], expected: Bounded) -> None:
    more = {f"scan__bounded__{k}": v for k, v in options.items()}
    assert resolve_topic(upsert(**more)).bounded == expected


def test_bounded_by_a_group() -> None:
    topic = resolve_topic(upsert(scan__bounded__mode="group-offsets", properties__group__id="g"))
    assert topic.bounded == Bounded("group-offsets")
    assert topic.properties["group.id"] == "g"


def test_a_base_allows_another_start() -> None:
    options = {"scan__startup__mode": "timestamp", "scan__startup__timestamp_millis": "5"}
    topic = resolve_topic(upsert(**options), base_is_existing=True)
    assert topic.startup == Startup("timestamp", None, 5)


def test_sink_options() -> None:
    options = {
        "sink__buffer_flush__max_rows": "2",
        "sink__buffer_flush__interval": "100000",
        "sink__parallelism": "3",
        "sink__delivery_guarantee": "none",
        "scan__parallelism": "4",
    }
    topic = resolve_topic(upsert(**options))
    assert topic.sink == Sink(DeliveryGuarantee.NONE, 2, 100_000, 3)
    assert topic.parallelism == 4


def test_the_old_name_of_the_delivery_guarantee() -> None:
    topic = resolve_topic(kafka(format="json", sink__semantic="none"))
    assert topic.sink.delivery_guarantee is DeliveryGuarantee.NONE


def test_a_cdc_table_resolves_with_its_primary_key() -> None:
    columns = "id INT, PRIMARY KEY (id) NOT ENFORCED"
    topic = resolve_topic(kafka(columns, value__format="debezium-json"))
    assert topic.value.name == "debezium-json"
    assert topic.value.options["schema-include"] is False
    assert topic.schema.primary_key == ("id",)


def test_secrets_stay_masked() -> None:
    topic = resolve_topic(upsert(properties__ssl__keystore__password="hunter2"))
    password = topic.properties["ssl.keystore.password"]
    assert isinstance(password, Secret)
    assert password.reveal() == "hunter2"
    assert "hunter2" not in repr(topic)
