"""What the driver sends by itself: records like those of tasks, with the same waits and errors."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

from bridge.arrow_formats.base import RowColumns
from bridge.arrow_formats.record_encoder import RETRACTS, RecordEncoder
from bridge.definition import DeliveryGuarantee, Sink
from bridge.embedded.broker import Broker
from bridge.errors import KafkaError
from bridge.kafka.producer import partitions_of
from bridge.kafka.sink import ProduceResult, produce_in_driver
from tests.kafka.topics import topic_of
from tests.reader import messages

Unique = Callable[[str], str]


@dataclass(frozen=True)
class Plain:
    """Documents that are the values of a column."""

    columns: tuple[str, ...]
    as_texts: frozenset[str] = frozenset()

    def encode(self, rows: RowColumns) -> pa.Array:
        return rows.columns[self.columns[0]]


ENCODER = RecordEncoder(Plain(("k",)), Plain(("v",)))


def rows(records: list[tuple[bytes, bytes, bool]]) -> pa.Table:
    keys, values, retracts = zip(*records, strict=True) if records else ((), (), ())
    types = {ENCODER.sources["k"]: pa.binary(), ENCODER.sources["v"]: pa.binary(), RETRACTS: pa.bool_()}
    return pa.table(
        [
            pa.array(column, type)
            for column, type in zip((keys, values, retracts), types.values(), strict=True)
        ],
        names=list(types),
    )


def test_records_and_tombstones(broker: Broker, unique: Unique) -> None:
    name = unique("driver")
    broker.create_topic(name, partitions=5)
    topic = topic_of(name, servers=broker.bootstrap)
    keys = [b"k%d" % n for n in range(40)]
    given = rows([(key, b"v", key.endswith(b"7")) for key in keys])
    parts = pa.concat_tables([given.slice(0, 13), given.slice(13)])
    assert parts[RETRACTS].num_chunks == 2
    assert produce_in_driver(parts, topic, ENCODER) == ProduceResult(40, 4, sum(map(len, keys)) + 36, 0)
    found = {m.key(): (m.value(), m.partition()) for m in messages(broker.bootstrap, name)}
    at = dict(zip(keys, partitions_of(keys, 5), strict=True))
    assert found == {key: (None if key.endswith(b"7") else b"v", at[key]) for key in keys}


def test_no_records(broker: Broker, unique: Unique) -> None:
    name = unique("driver")
    broker.create_topic(name)
    topic = topic_of(name, servers=broker.bootstrap)
    assert produce_in_driver(rows([]), topic, ENCODER) == ProduceResult()


def test_a_buffer_has_the_last_record_of_a_key(broker: Broker, unique: Unique) -> None:
    name = unique("driver")
    broker.create_topic(name)
    sink = Sink(buffer_rows=100, buffer_interval_ms=600_000)
    topic = topic_of(name, servers=broker.bootstrap, sink=sink)
    assert produce_in_driver(rows([(b"k", b"1", False), (b"k", b"2", False)]), topic, ENCODER).records == 1
    assert [m.value() for m in messages(broker.bootstrap, name)] == [b"2"]


@pytest.mark.parametrize("guarantee", [DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.NONE])
def test_a_record_that_the_broker_refuses(
    broker: Broker, unique: Unique, guarantee: DeliveryGuarantee
) -> None:
    name = unique("driver")
    broker.create_topic(name, config={"max.message.bytes": "1000"})
    sink = Sink(delivery_guarantee=guarantee)
    topic = topic_of(name, servers=broker.bootstrap, sink=sink)
    large = rows([(b"k", random.Random(1).randbytes(5000), False), (b"j", b"y", False)])
    if guarantee is DeliveryGuarantee.NONE:
        assert produce_in_driver(large, topic, ENCODER).lost >= 1
    else:
        with pytest.raises(KafkaError, match=rf"{name}-0 did not take a record: .*too large") as refused:
            produce_in_driver(large, topic, ENCODER)
        assert len(str(refused.value)) < 500
    again = replace(topic, properties={**topic.properties, "linger.ms": "0"})
    assert produce_in_driver(rows([(b"j", b"y", False)]), again, ENCODER).records == 1
