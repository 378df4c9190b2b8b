"""The options of the sink: each is passed on, translated or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.definition import DeliveryGuarantee, Topic
from bridge.definition import DeliveryGuarantee as Guarantee
from bridge.secret import Secret
from tests.cdc_jobs.jobs import DELTA, SINK, load, refusal

ORDERS = DELTA.replace("shop.\\.*", "shop.orders")
CDC = SINK.replace("upsert-", "")


def topic(shop: Path, sink: str, source: str = ORDERS, environ: dict[str, str] | None = None) -> Topic:
    (definition,) = load(shop, source + sink, environ).publishes
    return definition.topic


def test_upsert_kafka(shop: Path) -> None:
    found = topic(shop, SINK + "  properties.compression.type: zstd\n  name: out\n")
    assert found.is_upsert and found.names == ("shop.orders",)
    assert found.key is not None and found.key.row.names == ("id",)
    assert found.value.row.names == ("id", "name", "price"), "the key is in the body, too"
    assert found.properties == {"bootstrap.servers": "b:1", "compression.type": "zstd"}
    assert found.sink.delivery_guarantee is DeliveryGuarantee.AT_LEAST_ONCE
    assert found.sink.headers == ()
    assert found.create is not None and found.create.config == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("guarantee", "prefix"), [("none", None), ("at-least-once", None), ("exactly-once", "job.shop.orders")]
)
def test_delivery_guarantees(shop: Path, guarantee: str, prefix: str | None) -> None:
    sink = topic(shop, SINK + f"  sink.delivery-guarantee: {guarantee}\n").sink
    assert (sink.delivery_guarantee, sink.transactional_id_prefix) == (Guarantee(guarantee), prefix)


def test_headers_of_the_table_and_own_ones(shop: Path) -> None:
    text = "  sink.add-tableId-to-header-enabled: true\n  sink.custom-header: 'team:shop, v:1'\n"
    assert topic(shop, CDC + text).sink.headers == (
        ("namespace", ""),
        ("schemaName", "shop"),
        ("tableName", "orders"),
        ("team", "shop"),
        ("v", "1"),
    )


def test_secrets_stay_secret(shop: Path) -> None:
    text = "  properties.sasl.jaas.config: 'x password=\"${secret_values.kafka-sk}\";'\n"
    text += "  properties.security.protocol: SASL_PLAINTEXT\n  properties.sasl.mechanism: PLAIN\n"
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u"'
    found = topic(
        shop, SINK + text.replace("x password", f"{jaas} password"), environ={"KAFKA_SK": "hunter2"}
    )
    value = found.properties["sasl.jaas.config"]
    assert isinstance(value, Secret) and "hunter2" in value.reveal()


def test_kafka_has_flink_cdc_s_defaults(shop: Path) -> None:
    found = topic(shop, CDC)
    assert (found.connector, found.value.name) == ("kafka", "debezium-json")
    assert found.key is not None and (found.key.name, found.key.row.names) == ("json", ("id",))
    assert found.sink.partitioner == "bridge.partitioners:AllToZeroPartitioner"


def test_messages_of_kafka_name_the_table(shop: Path) -> None:
    route = "route:\n  - {source-table: shop.orders, sink-table: o}\n"
    assert topic(shop, SINK).value.constants == {}
    assert topic(shop, CDC).value.constants == {"source": {"db": "shop", "table": "orders"}}
    assert topic(shop, CDC + route).value.constants == {"source": {"db": None, "table": "o"}}
    assert topic(shop, CDC + "  value.format: canal-json\n").value.constants == {
        "database": "shop",
        "table": "orders",
        "pkNames": ["id"],
    }


def test_kafka_s_own_choices(shop: Path) -> None:
    text = "  value.format: canal-json\n  key.format: csv\n  partition.strategy: hash-by-key\n  topic: t\n"
    found = topic(shop, CDC + text + "  canal-json.encode.decimal-as-plain-number: true\n")
    assert (found.value.name, found.names, found.sink.partitioner) == ("canal-json", ("t",), "default")
    assert found.key is not None and found.key.name == "csv"
    assert found.value.options["encode.decimal-as-plain-number"] is True


def test_topics_by_a_mapping(shop: Path) -> None:
    text = "  sink.tableId-to-topic.mapping: shop.orders:o;shop.i\\.*:i\n"
    job = load(shop, DELTA + CDC + text)
    assert {table.source: table.topic for table in job.tables} == {"shop.orders": "o", "shop.items": "i"}


def test_a_table_without_a_key(shop: Path) -> None:
    keyless = ORDERS.replace("  primary-keys: id\n", "")
    assert topic(shop, CDC + "  value.format: json\n", keyless).appends
    assert topic(shop, CDC, keyless).key is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            SINK + "  sink.delivery-guarantee: twice\n",
            "job.yaml:9: sink.sink.delivery-guarantee: 'sink.delivery-guarantee': Unsupported value 'twice'",
        ),
        (
            SINK + "  properties.enable.idempotence: maybe\n",
            "job.yaml:9: sink.properties.enable.idempotence: 'properties.enable.idempotence': 'maybe' is not legal",
        ),
        (
            CDC + "  value.format: maxwell-json\n",
            "sink.value.format: 'maxwell-json' is not legal; legal values are debezium-",
        ),
        (
            CDC + "  value.format: json\n",
            "job.yaml:9: sink.value.format: 'json' has no updates and deletes, and the tables",
        ),
        (CDC + "  key.format: avro\n", "sink.key.format: 'avro' is not legal; legal values are json, csv"),
        (CDC + "  partition.strategy: x\n", "'x' is not legal; legal values are all-to-zero, hash-by-key"),
        (
            CDC + "  sink.custom-header: abc\n",
            "sink.sink.custom-header: 'abc' is not a pair; write key1:value1,key2:value2",
        ),
        (CDC + "  topic: 'a b'\n", "job.yaml:9: sink.topic: "),
        (CDC + "  debezium-json.nothing: 1\n", "job.yaml:9: sink.debezium-json.nothing: "),
    ],
)
def test_what_is_refused(shop: Path, text: str, message: str) -> None:
    assert message in refusal(shop, ORDERS + text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "  topic: all\n",
            "job.yaml:9: sink.topic: shop.items and shop.orders both go to topic 'all', where a reader, and a run that",
        ),
        (
            "  sink.tableId-to-topic.mapping: shop.\\.*:all\n",
            "sink.sink.tableId-to-topic.mapping: shop.items and shop.orders both go to topic 'all'",
        ),
        (
            "  sink.tableId-to-topic.mapping: shop.orders\n",
            "'shop.orders' is not a pair; write shop.orders:topic1;shop.items:topic2",
        ),
    ],
)
def test_topics_of_several_tables(shop: Path, text: str, message: str) -> None:
    assert message in refusal(shop, DELTA + CDC + text)
