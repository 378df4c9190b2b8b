"""Options of a sink: delivery guarantee, transactions, partitioning, buffering and headers."""

from __future__ import annotations

from typing import Any

from bridge.options.kinds import BOOLEAN, DURATION, INT, POSITIVE_INT, STRING, choice
from bridge.options.model import KAFKA, UPSERT, Option, Side, Support

_GUARANTEES = choice("none", "at-least-once", "exactly-once")

DELIVERY_GUARANTEE = Option(
    "sink.delivery-guarantee",
    _GUARANTEES,
    "Guarantee for records if a run or a broker fails. 'none': records may be lost or duplicated; lost records are "
    "counted in the line of the batch, the summary and `bridge status`, and the exit code remains 0. 'at-least-once': "
    "records may be duplicated. 'exactly-once': records are written in Kafka transactions, and consumers with "
    "isolation.level=read_committed read each record once; requires 'sink.transactional-id-prefix'.",
    default="at-least-once",
    side=Side.SINK,
)
SEMANTIC = Option(
    "sink.semantic",
    _GUARANTEES,
    "Deprecated name of 'sink.delivery-guarantee'.",
    connectors=(KAFKA,),
    side=Side.SINK,
    support=Support.TRANSLATED,
    reason="read as 'sink.delivery-guarantee', which replaces it",
)
TRANSACTIONAL_ID_PREFIX = Option(
    "sink.transactional-id-prefix",
    STRING,
    "Prefix of the transactional ids of the sink and of the consumer groups that store its progress. It must be unique "
    "per pipeline. Has no effect unless 'sink.delivery-guarantee' = 'exactly-once'.",
    side=Side.SINK,
)
NAMING = Option(
    "sink.transaction-naming-strategy",
    choice("default", "incrementing", "pooling"),
    "How transactional ids are named. 'pooling' reuses a fixed set of ids: the prefix itself, and for each shard "
    "('sink.parallelism') the prefix, '-' and the number of the shard. 'incrementing' is refused: if each transaction "
    "had a new id, a run that is wrongly assumed dead could not be fenced.",
    default="default",
    side=Side.SINK,
    support=Support.TRANSLATED,
    reason="'default' is read as 'pooling'",
)
PARTITIONER = Option(
    "sink.partitioner",
    STRING,
    "How records are assigned to partitions. 'default': by the murmur2 hash of the key's bytes, as in Java clients; "
    "records without a key are distributed over all partitions. 'fixed': each sending task writes to one partition. "
    "'round-robin': over all partitions; requires that 'key.fields' is not set. 'module:Class': a Python class with "
    "the methods of bridge.partitioners.Partitioner that the driver and the executors can import; it takes the place "
    "of the Java class in Flink.",
    default="default",
    connectors=(KAFKA,),
    side=Side.SINK,
)
BUFFER_ROWS = Option(
    "sink.buffer-flush.max-rows",
    INT,
    "Maximum number of keys in the buffer, from which only the last change of each key is written. '0' disables the "
    "buffer. Either both this and 'sink.buffer-flush.interval' are greater than zero, or neither is.",
    default="0",
    connectors=(UPSERT,),
    side=Side.SINK,
)
BUFFER_INTERVAL = Option(
    "sink.buffer-flush.interval",
    DURATION,
    "Maximum time that changes stay in the buffer. The end of a batch always flushes it.",
    default="0 s",
    connectors=(UPSERT,),
    side=Side.SINK,
)
TABLE_ID_HEADERS = Option(
    "sink.add-tableId-to-header-enabled",
    BOOLEAN,
    "Add the name of the table to every record, in the headers namespace, schemaName and tableName (UTF-8), after the "
    "headers of the row. They contain the catalog, schema and table of 'delta.table' or, if the table is given by "
    "'delta.path', of the name in the DDL; missing parts are empty.",
    default="false",
    connectors=(UPSERT,),
    side=Side.SINK,
)
SINK_PARALLELISM = Option(
    "sink.parallelism", POSITIVE_INT, "Number of Spark tasks that write to the topic.", side=Side.SINK
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
