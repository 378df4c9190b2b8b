"""The statements of the connector manuals are parsed unchanged."""

from __future__ import annotations

import pytest

from bridge.ddl import parse
from bridge.errors import DdlError
from bridge.schema import MetadataColumn, PhysicalColumn, ScalarType, TableSchema, Watermark

BIGINT = ScalarType("BIGINT")
INT = ScalarType("INT")
STRING = ScalarType("STRING")
LTZ3 = ScalarType("TIMESTAMP_LTZ", (3,))
BEHAVIOR = (
    PhysicalColumn("user_id", BIGINT),
    PhysicalColumn("item_id", BIGINT),
    PhysicalColumn("behavior", STRING),
)


def test_upsert_kafka_sink() -> None:
    ddl = parse("""
CREATE TABLE pageviews_per_region (
  region STRING,
  pv BIGINT,
  uv BIGINT,
  PRIMARY KEY (region) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'pageviews_per_region',
  'properties.bootstrap.servers' = '...',
  'key.format' = 'avro',
  'value.format' = 'avro'
);
""")
    assert ddl.name == "pageviews_per_region"
    assert ddl.schema == TableSchema(
        (PhysicalColumn("region", STRING), PhysicalColumn("pv", BIGINT), PhysicalColumn("uv", BIGINT)),
        ("region",),
    )
    assert ddl.options == {
        "connector": "upsert-kafka",
        "topic": "pageviews_per_region",
        "properties.bootstrap.servers": "...",
        "key.format": "avro",
        "value.format": "avro",
    }


def test_source_with_a_watermark() -> None:
    ddl = parse("""CREATE TABLE pageviews (
  user_id    BIGINT,
  page_id    BIGINT,
  viewtime   TIMESTAMP,
  user_region STRING,
  WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND
) WITH (
  'connector'                  = 'kafka',
  'topic'                      = '<yourTopicName>',
  'properties.bootstrap.servers' = '<host:port>',
  'format'                     = 'json'
);""")
    assert ddl.schema.physical[2].type == ScalarType("TIMESTAMP", (6,))
    assert ddl.schema.watermark == Watermark("viewtime", "viewtime - INTERVAL '2' SECOND", 2.0)
    assert ddl.options["topic"] == "<yourTopicName>"


def test_kafka_metadata() -> None:
    ddl = parse("""
CREATE TABLE KafkaTable (
  `event_time` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  `partition` BIGINT METADATA VIRTUAL,
  `offset` BIGINT METADATA VIRTUAL,
  `user_id` BIGINT,
  `item_id` BIGINT,
  `behavior` STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'user_behavior',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.group.id' = 'testGroup',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'csv'
);
""")
    assert ddl.schema.columns == (
        MetadataColumn("event_time", LTZ3, "timestamp"),
        MetadataColumn("partition", BIGINT, "partition", virtual=True),
        MetadataColumn("offset", BIGINT, "offset", virtual=True),
        *BEHAVIOR,
    )


def test_kafka_and_debezium_metadata_with_comments() -> None:
    ddl = parse("""
CREATE TABLE KafkaTable (
  `event_time` TIMESTAMP_LTZ(3) METADATA FROM 'value.source.timestamp' VIRTUAL,  -- from Debezium format
  `origin_table` STRING METADATA FROM 'value.source.table' VIRTUAL, -- from Debezium format
  `partition_id` BIGINT METADATA FROM 'partition' VIRTUAL,  -- from Kafka connector
  `offset` BIGINT METADATA VIRTUAL,  -- from Kafka connector
  `user_id` BIGINT,
  `item_id` BIGINT,
  `behavior` STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'user_behavior',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.group.id' = 'testGroup',
  'scan.startup.mode' = 'earliest-offset',
  'value.format' = 'debezium-json'
);
""")
    assert ddl.schema.columns == (
        MetadataColumn("event_time", LTZ3, "value.source.timestamp", virtual=True),
        MetadataColumn("origin_table", STRING, "value.source.table", virtual=True),
        MetadataColumn("partition_id", BIGINT, "partition", virtual=True),
        MetadataColumn("offset", BIGINT, "offset", virtual=True),
        *BEHAVIOR,
    )


def test_key_prefix() -> None:
    ddl = parse("""
CREATE TABLE KafkaTable (
  `k_version` INT,
  `k_user_id` BIGINT,
  `k_item_id` BIGINT,
  `version` INT,
  `behavior` STRING
) WITH (
  'connector' = 'kafka',

  'key.format' = 'json',
  'key.fields-prefix' = 'k_',
  'key.fields' = 'k_version;k_user_id;k_item_id',

  'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
)
""")
    assert ddl.schema.columns == (
        PhysicalColumn("k_version", INT),
        PhysicalColumn("k_user_id", BIGINT),
        PhysicalColumn("k_item_id", BIGINT),
        PhysicalColumn("version", INT),
        PhysicalColumn("behavior", STRING),
    )
    assert ddl.options["key.fields"] == "k_version;k_user_id;k_item_id"


def test_security_options_keep_their_backslashes() -> None:
    ddl = parse(r"""
CREATE TABLE KafkaTable (
  `user_id` BIGINT,
  `item_id` BIGINT,
  `behavior` STRING,
  `ts` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'
) WITH (
  'connector' = 'kafka',
  'properties.security.protocol' = 'SASL_SSL',
  /* SSL configurations */
  /* Configure the path of truststore (CA) provided by the server */
  'properties.ssl.truststore.location' = '/path/to/kafka.client.truststore.jks',
  /* Set SASL mechanism as SCRAM-SHA-256 */
  'properties.sasl.mechanism' = 'SCRAM-SHA-256',
  'properties.sasl.jaas.config' = 'ScramLoginModule required username=\"user\" password=\"password\";'
)
""")
    assert ddl.schema.columns == (*BEHAVIOR, MetadataColumn("ts", LTZ3, "timestamp"))
    assert ddl.options == {
        "connector": "kafka",
        "properties.security.protocol": "SASL_SSL",
        "properties.ssl.truststore.location": "/path/to/kafka.client.truststore.jks",
        "properties.sasl.mechanism": "SCRAM-SHA-256",
        "properties.sasl.jaas.config": r"ScramLoginModule required username=\"user\" password=\"password\";",
    }


USER_EVENTS = """CREATE TABLE user_events (
  user_id    BIGINT,
  item_id    BIGINT,
  category   STRING,
  behavior   STRING,
  event_ts   TIMESTAMP(3) METADATA FROM 'timestamp',
  proctime   AS PROCTIME(),
  WATERMARK FOR event_ts AS event_ts - INTERVAL '5' SECOND
) WITH (
  'connector'                  = 'kafka',
  'topic'                      = 'user_events',
  'format'                     = 'json'
)"""


def test_processing_time_must_be_removed() -> None:
    with pytest.raises(DdlError, match="PROCTIME is not deterministic") as error:
        parse(USER_EVENTS)
    assert (error.value.line, error.value.column) == (7, 17)

    schema = parse(USER_EVENTS.replace("  proctime   AS PROCTIME(),\n", "")).schema
    assert schema.metadata == (MetadataColumn("event_ts", ScalarType("TIMESTAMP", (3,)), "timestamp"),)
    assert schema.watermark == Watermark("event_ts", "event_ts - INTERVAL '5' SECOND", 5.0)


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (
            "order_id   BIGINT,\n  product    STRING,\n  amount   DECIMAL(10, 2),\n  at TIMESTAMP(3)",
            4,
        ),
        ("user_id   BIGINT,\n  message   STRING,\n  event_ts  TIMESTAMP(3)", 3),
        ("user_id  BIGINT,\n  payload  STRING", 2),
        ("id    BIGINT,\n  value STRING", 2),
    ],
)
def test_plain_tables(columns: str, names: int) -> None:
    ddl = parse(f"CREATE TABLE sink (\n  {columns}\n) WITH (\n  'connector' = 'kafka'\n)")
    assert len(ddl.schema.physical) == names
