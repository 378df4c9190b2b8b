"""METADATA columns that consumers in Spark's tasks give from the records themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from bridge.kafka.range_parts import PartitionRange
from bridge.ways import NotThisWay

METADATA_TYPES: Mapping[str, pa.DataType] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
"""The keys that tasks can give, and their types."""


def metadata_columns(
    keys: Mapping[str, str], range: PartitionRange, messages: Sequence[Message]
) -> dict[str, pa.Array]:
    """The columns, by their names, of these records of the range; `keys` are those of METADATA by the same names.

    Raises NotThisWay for a timestamp that a record does not have.
    """
    return {name: _column(key, range, messages) for name, key in keys.items()}


def _column(key: str, range: PartitionRange, messages: Sequence[Message]) -> pa.Array:
    if key == "topic":
        return pa.repeat(range.topic, len(messages))
    if key == "partition":
        return pa.repeat(pa.scalar(range.partition, METADATA_TYPES[key]), len(messages))
    if key == "offset":
        return pa.array([message.offset() for message in messages], METADATA_TYPES[key])
    times = [message.timestamp() for message in messages]
    if any(kind == TIMESTAMP_NOT_AVAILABLE for kind, _ in times):
        raise NotThisWay("a record has no timestamp")
    return pa.array([1000 * ms for _, ms in times], pa.int64()).cast(METADATA_TYPES[key])
