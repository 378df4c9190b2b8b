"""Options that are specific neither to sources nor to sinks: topic, formats, key fields, connection."""

from __future__ import annotations

from typing import Any

from bridge.options.kinds import LIST, PATTERN, SERVERS, STRING, TOPICS, choice
from bridge.options.model import KAFKA, UPSERT, Option, Support
from bridge.options.properties.model import NAME

_ALIYUN = (
    "it logs in to ApsaraMQ with Alibaba Cloud access keys; set the SASL user of the instance with "
    "'properties.sasl.*'"
)
_JOB_FILE = "it is an option of YAML ingestion jobs"

CONNECTOR = Option("connector", choice(UPSERT, KAFKA), "Connector that describes the topic.", required=True)
TOPIC = Option(
    "topic",
    TOPICS,
    "Topics to read from or write to, separated by ';'. Exactly one of 'topic' and 'topic-pattern' must be set. To "
    "publish to several topics, declare a column METADATA FROM 'topic' that names the topic of each row.",
)
TOPIC_PATTERN = Option(
    "topic-pattern",
    PATTERN,
    "Regular expression for the names of the topics; it must match the complete name. Topics that are created later "
    "are discovered at 'scan.topic-partition-discovery.interval'. To publish, declare a column METADATA FROM 'topic' "
    "that names the topic of each row.",
)
BOOTSTRAP_SERVERS = Option(
    "properties.bootstrap.servers",
    SERVERS,
    "Comma-separated list of brokers to connect to first: host:port,host:port.",
    required=True,
)
GROUP_ID = Option(
    "properties.group.id",
    NAME,
    "Consumer group whose committed offsets the 'group-offsets' modes read. After each batch the bridge commits the "
    "offsets it has read to this group, for monitoring. By default KafkaSource-<table name>.",
)
PROPERTIES = Option(
    "properties.*",
    STRING,
    "A setting of Kafka's clients under its Java name. The section on Kafka client settings lists all of them.",
)
FORMAT = Option(
    "format",
    STRING,
    "Alias of 'value.format'; set one of the two. The options of the format then have the name of the format as their "
    "only prefix: 'json.ignore-parse-errors'.",
)
VALUE_FORMAT = Option(
    "value.format",
    STRING,
    "Format of the record's value. Its options have a prefix: 'value.json.ignore-parse-errors'. Either 'value.format' "
    "or 'format' is required.",
    connectors=(KAFKA,),
)
UPSERT_VALUE_FORMAT = Option(
    "value.format",
    STRING,
    "Format of the record's value, which must be insert-only. Its options have a prefix: "
    "'value.json.ignore-parse-errors'. 'format' is accepted in its place.",
    required=True,
    connectors=(UPSERT,),
)
KEY_FORMAT = Option(
    "key.format",
    STRING,
    "Format of the record's key; requires 'key.fields'. Its options have a prefix: 'key.json.ignore-parse-errors'. "
    "Without it, records are read and written without a key.",
    connectors=(KAFKA,),
)
UPSERT_KEY_FORMAT = Option(
    "key.format",
    STRING,
    "Format of the record's key, which must be insert-only. The key consists of the columns of the PRIMARY KEY in the "
    "order of its declaration. Its options have a prefix: 'key.json.ignore-parse-errors'.",
    required=True,
    connectors=(UPSERT,),
)
KEY_FIELDS = Option(
    "key.fields",
    LIST,
    "Physical columns that make up the key, in the order of the key document, separated by ';'.",
    connectors=(KAFKA,),
)
KEY_FIELDS_PREFIX = Option(
    "key.fields-prefix",
    STRING,
    "Prefix of the names of the key columns in the table, which is removed in the key document. The names of all key "
    "columns must start with it, and 'value.fields-include' must be 'EXCEPT_KEY'.",
)
VALUE_FIELDS_INCLUDE = Option(
    "value.fields-include",
    choice("ALL", "EXCEPT_KEY"),
    "Whether the value document contains all physical columns or all except the key columns.",
    default="ALL",
)

GENERAL: tuple[Option[Any], ...] = (
    CONNECTOR,
    Option(
        "property-version", choice("1"), "Version of the option names; 1 is the only version.", default="1"
    ),
    TOPIC,
    TOPIC_PATTERN,
    BOOTSTRAP_SERVERS,
    GROUP_ID,
    PROPERTIES,
    FORMAT,
    UPSERT_KEY_FORMAT,
    KEY_FORMAT,
    KEY_FIELDS,
    KEY_FIELDS_PREFIX,
    UPSERT_VALUE_FORMAT,
    VALUE_FORMAT,
    VALUE_FIELDS_INCLUDE,
    Option(
        "type",
        STRING,
        "The connector of a YAML ingestion job.",
        connectors=(UPSERT,),
        support=Support.REFUSED,
        reason=f"{_JOB_FILE}; in WITH, use 'connector'",
    ),
    Option(
        "name",
        STRING,
        "The display name of a YAML ingestion job.",
        connectors=(UPSERT,),
        support=Support.REFUSED,
        reason=f"{_JOB_FILE}; set 'name' in the pipeline file",
    ),
    *(
        Option(
            f"aliyun.kafka.{key}", STRING, text, connectors=(UPSERT,), support=Support.REFUSED, reason=_ALIYUN
        )
        for key, text in (
            ("accessKeyId", "AccessKey ID of an Alibaba Cloud account."),
            ("accessKeySecret", "AccessKey secret of an Alibaba Cloud account."),
            ("instanceId", "ID of an ApsaraMQ for Kafka instance."),
            ("endpoint", "API endpoint of ApsaraMQ for Kafka."),
            ("regionId", "Region of the ApsaraMQ for Kafka instance."),
        )
    ),
)
