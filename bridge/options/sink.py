"""Options about writing to a topic."""

from __future__ import annotations

from typing import Any

from bridge.options.kinds import BOOLEAN, DURATION, INT, POSITIVE_INT, STRING, choice
from bridge.options.model import KAFKA, UPSERT, Option, Side, Support

__all__ = [
    "BUFFER_INTERVAL",
    "BUFFER_ROWS",
    "DELIVERY_GUARANTEE",
    "NAMING",
    "PARTITIONER",
    "SEMANTIC",
    "SINK",
    "SINK_PARALLELISM",
    "TABLE_ID_HEADERS",
    "TRANSACTIONAL_ID_PREFIX",
]

_GUARANTEES = choice("none", "at-least-once", "exactly-once")

DELIVERY_GUARANTEE = Option(
    "sink.delivery-guarantee",
    _GUARANTEES,
    "What a failure may do to written records: 'none' loses or repeats them (the batch line, the summary and `bridge "
    "status` count what is lost; the exit code stays 0), 'at-least-once' may repeat them, 'exactly-once' writes in "
    "Kafka transactions: readers with isolation.level=read_committed see each once; it needs "
    "'sink.transactional-id-prefix'.",
    default="at-least-once",
    side=Side.SINK,
)
SEMANTIC = Option(
    "sink.semantic",
    _GUARANTEES,
    "Old name of 'sink.delivery-guarantee'.",
    connectors=(KAFKA,),
    side=Side.SINK,
    support=Support.TRANSLATED,
    reason="read as 'sink.delivery-guarantee'; write that instead",
)
TRANSACTIONAL_ID_PREFIX = Option(
    "sink.transactional-id-prefix",
    STRING,
    "What the ids of the sink's transactions, and of the consumer groups that hold its progress, start with. One "
    "pipeline, one prefix. Only for 'sink.delivery-guarantee' = 'exactly-once'.",
    side=Side.SINK,
)
NAMING = Option(
    "sink.transaction-naming-strategy",
    choice("default", "incrementing", "pooling"),
    "How the ids of transactions go on after the prefix. 'default' and 'pooling' use few ids again and again: the "
    "prefix itself, and '-' with the number of a shard ('sink.parallelism'). 'incrementing' is refused: with a new id "
    "for each transaction a run that was thought dead could not be fenced.",
    default="default",
    side=Side.SINK,
)
PARTITIONER = Option(
    "sink.partitioner",
    STRING,
    "How records are spread over partitions. 'default': murmur2 of the key's bytes, as Java clients do; without "
    "a key, changing partitions. 'fixed': each task that sends writes to one partition. 'round-robin': changing "
    "partitions; only without 'key.fields'. 'module:Class' is a Python class with the methods of "
    "bridge.partitioners.Partitioner, importable by the driver and the executors, in place of a Flink class.",
    default="default",
    connectors=(KAFKA,),
    side=Side.SINK,
)
BUFFER_ROWS = Option(
    "sink.buffer-flush.max-rows",
    INT,
    "How many distinct keys are buffered, only the last change of each being written. 0 writes every change. "
    "This and 'sink.buffer-flush.interval' are both greater than zero or neither.",
    default="0",
    connectors=(UPSERT,),
    side=Side.SINK,
)
BUFFER_INTERVAL = Option(
    "sink.buffer-flush.interval",
    DURATION,
    "How long changes may stay in the buffer. The end of a batch writes them in any case.",
    default="0 s",
    connectors=(UPSERT,),
    side=Side.SINK,
)
TABLE_ID_HEADERS = Option(
    "sink.add-tableId-to-header-enabled",
    BOOLEAN,
    "Write the table's name into the headers namespace, schemaName and tableName of every record, in UTF-8 and "
    "after the row's own headers: catalog, schema and table of 'delta.table', or of the DDL's name where the table "
    "is given by its path. A part that the name does not have is empty.",
    default="false",
    connectors=(UPSERT,),
    side=Side.SINK,
)
SINK_PARALLELISM = Option(
    "sink.parallelism", POSITIVE_INT, "Number of tasks that write to the topic.", side=Side.SINK
)

SINK: tuple[Option[Any], ...] = (
    SINK_PARALLELISM,
    BUFFER_ROWS,
    BUFFER_INTERVAL,
    DELIVERY_GUARANTEE,
    SEMANTIC,
    TRANSACTIONAL_ID_PREFIX,
    NAMING,
    PARTITIONER,
    TABLE_ID_HEADERS,
)
