"""What records come to, and how two of these are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from confluent_kafka import Producer

from benchmarks.flink_scripts.folds import difference, folded
from bridge.embedded.broker import Broker


def test_records_are_folded(broker: Broker, unique: Callable[[str], str]) -> None:
    topic = unique("folds")
    broker.create_topic(topic, partitions=1)
    sender = Producer({"bootstrap.servers": broker.bootstrap})
    for key, value in (("1", '{"v": 1.50}'), ("2", '{"v": 2}'), ("1", '{"v": 1.5}'), ("2", None)):
        sender.produce(topic, key=f'{{"id": {key}}}', value=value)
    sender.flush(30)
    assert folded(broker.bootstrap, topic, by_key=True) == {'{"v": "number 1.5"}': 1}


def test_records_that_are_no_json_are_compared_as_they_are(
    broker: Broker, unique: Callable[[str], str]
) -> None:
    topic = unique("binary")
    broker.create_topic(topic, partitions=1)
    sender = Producer({"bootstrap.servers": broker.bootstrap})
    for key, value in ((b"\x02", b"\x00"), (b"\x02", b"\x01"), (None, b"\x03")):
        sender.produce(topic, key=key, value=value)
    sender.flush(30)
    assert folded(broker.bootstrap, topic, by_key=True, is_binary=True) == {'"01"': 1, '"03"': 1}
    bag = folded(broker.bootstrap, topic, by_key=False, is_binary=True)
    assert sorted(bag) == ['"03"', '["02", "00"]', '["02", "01"]']


def test_changes_are_folded(broker: Broker, unique: Callable[[str], str]) -> None:
    topic = unique("changes")
    broker.create_topic(topic, partitions=1)
    sender = Producer({"bootstrap.servers": broker.bootstrap})
    for before, after in (("null", '{"v": 1.0}'), ("null", '{"v": 1}'), ('{"v": 1}', "null")):
        sender.produce(topic, value=f'{{"before": {before}, "after": {after}}}')
    sender.flush(30)
    assert folded(broker.bootstrap, topic, by_key=False, is_changelog=True) == {'{"v": 1}': 1}


def test_differences_name_both_sides() -> None:
    assert difference(Counter({"a": 2}), Counter({"a": 2})) == ""
    assert difference(Counter({"a": 2, "b": 1}), Counter({"a": 1, "c": 1})) == (
        "only Flink: 2 rows, such as a; only the bridge: 1 rows, such as c"
    )
    assert difference(Counter(), Counter({"a": -1})) == "only Flink: 1 rows, such as a"
