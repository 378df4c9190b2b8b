"""Options of both connectors that are neither about reading nor about writing."""

from __future__ import annotations

from typing import Any

from bridge.options.kinds import LIST, PATTERN, SERVERS, STRING, TOPICS, choice
from bridge.options.model import KAFKA, UPSERT, Option, Support
from bridge.options.properties.model import NAME

__all__ = [
    "BOOTSTRAP_SERVERS",
    "CONNECTOR",
    "FORMAT",
    "GENERAL",
    "GROUP_ID",
    "KEY_FIELDS",
    "KEY_FIELDS_PREFIX",
    "KEY_FORMAT",
    "PROPERTIES",
    "TOPIC",
    "TOPIC_PATTERN",
    "UPSERT_KEY_FORMAT",
    "UPSERT_VALUE_FORMAT",
    "VALUE_FIELDS_INCLUDE",
    "VALUE_FORMAT",
]

_ALIYUN = (
    "it logs in to ApsaraMQ with Alibaba Cloud's own keys; give the instance's SASL user with "
    "'properties.sasl.*'"
)
_JOB_FILE = "it belongs to YAML ingestion jobs"

CONNECTOR = Option("connector", choice(UPSERT, KAFKA), "Which connector describes the topic.", required=True)
TOPIC = Option(
    "topic",
    TOPICS,
    "Topics to read from and write to, separated by ';'. Exactly one of 'topic' and 'topic-pattern' is set. Of "
    "several, a published row's column METADATA FROM 'topic' names its own.",
)
TOPIC_PATTERN = Option(
    "topic-pattern",
    PATTERN,
    "Regular expression that a topic's name matches as a whole. Topics created later are found by "
    "'scan.topic-partition-discovery.interval'. A published row's column METADATA FROM 'topic' names its own.",
)
BOOTSTRAP_SERVERS = Option(
    "properties.bootstrap.servers",
    SERVERS,
    "Brokers to connect to first, as host:port,host:port.",
    required=True,
)
GROUP_ID = Option(
    "properties.group.id",
    NAME,
    "Consumer group whose committed offsets the 'group-offsets' modes read, and under which progress is shown to "
    "monitoring after each batch. By default KafkaSource-<table name>.",
)
PROPERTIES = Option(
    "properties.*",
    STRING,
    "A setting of Kafka's clients under its Java name, the prefix removed; what becomes of each stands below.",
)
FORMAT = Option(
    "format",
    STRING,
    "Another name of 'value.format'; set one of the two. Its options are then prefixed with the format "
    "alone: "
    "'json.ignore-parse-errors'.",
)
VALUE_FORMAT = Option(
    "value.format",
    STRING,
    "Format of the record's value. Its options are prefixed: 'value.json.ignore-parse-errors'. This or "
    "'format' "
    "is required.",
    connectors=(KAFKA,),
)
UPSERT_VALUE_FORMAT = Option(
    "value.format",
    STRING,
    "Format of the record's value; insert-only. Its options are prefixed: 'value.json.ignore-parse-errors'.",
    required=True,
    connectors=(UPSERT,),
)
KEY_FORMAT = Option(
    "key.format",
    STRING,
    "Format of the record's key; needs 'key.fields'. Its options are prefixed: "
    "'key.json.ignore-parse-errors'. "
    "Without it records have no key.",
    connectors=(KAFKA,),
)
UPSERT_KEY_FORMAT = Option(
    "key.format",
    STRING,
    "Format of the record's key, which holds the PRIMARY KEY's columns in its order; insert-only. Its "
    "options are "
    "prefixed: 'key.json.ignore-parse-errors'.",
    required=True,
    connectors=(UPSERT,),
)
KEY_FIELDS = Option(
    "key.fields",
    LIST,
    "Physical columns that make up the key, in this order, separated by ';'.",
    connectors=(KAFKA,),
)
KEY_FIELDS_PREFIX = Option(
    "key.fields-prefix",
    STRING,
    "What the names of key columns start with in the table and not in the key document. Every key column has "
    "it, "
    "and 'value.fields-include' must be 'EXCEPT_KEY'.",
)
VALUE_FIELDS_INCLUDE = Option(
    "value.fields-include",
    choice("ALL", "EXCEPT_KEY"),
    "Whether the value document holds all physical columns or all but the key's.",
    default="ALL",
)

GENERAL: tuple[Option[Any], ...] = (
    CONNECTOR,
    Option("property-version", choice("1"), "Version of the option names; Flink knows only 1.", default="1"),
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
        "The connector, in a YAML ingestion job.",
        connectors=(UPSERT,),
        support=Support.REFUSED,
        reason=f"{_JOB_FILE}; in WITH the same is said by 'connector'",
    ),
    Option(
        "name",
        STRING,
        "The display name, in a YAML ingestion job.",
        connectors=(UPSERT,),
        support=Support.REFUSED,
        reason=f"{_JOB_FILE}; here the pipeline file has 'name'",
    ),
    *(
        Option(
            f"aliyun.kafka.{key}", STRING, text, connectors=(UPSERT,), support=Support.REFUSED, reason=_ALIYUN
        )
        for key, text in (
            ("accessKeyId", "AccessKey id of an Alibaba Cloud account."),
            ("accessKeySecret", "AccessKey secret of an Alibaba Cloud account."),
            ("instanceId", "Instance of ApsaraMQ for Kafka."),
            ("endpoint", "API endpoint of ApsaraMQ for Kafka."),
            ("regionId", "Region of the ApsaraMQ instance."),
        )
    ),
)
