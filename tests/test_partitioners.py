"""Importing a partitioner's class, and the errors of such classes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from bridge.config import resolve_topic
from bridge.errors import KafkaError, OptionError
from bridge.partitioners import Partitioner, opened, partitioner_class
from tests.config.tables import kafka


class ByLength(Partitioner):
    """The key's length, or whatever the topic's name says to do wrong."""

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:
        if parallel_instances == 13:
            raise RuntimeError("no luck")

    def partition(self, key: bytes | None, value: bytes | None, topic: str, partitions: Sequence[int]) -> int:
        wrong = {"far": 7, "below": -1, "text": "secret-value", "none": None}
        if topic in wrong:
            return wrong[topic]  # type: ignore[return-value]
        return partitions[{b"a": 0, b"bb": 1}[key or b""]]


class NoPartitioner:
    pass


class Broken:
    def __init__(self) -> None:
        raise ValueError("secret-value")


def a_function() -> None:
    raise AssertionError("never called")


@pytest.mark.parametrize("name", [f"{__name__}:ByLength", f"{__name__}.ByLength"])
def test_a_class_is_found_by_either_spelling(name: str) -> None:
    assert partitioner_class(name) is ByLength
    chosen = opened(name, 0, 2)
    assert chosen is not None
    assert [chosen.partition(key, None, "t", (0, 1, 2)) for key in (b"a", b"bb")] == [0, 1]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("abc", "it names no module"),
        (":Class", "it names no module"),
        ("nowhere_at_all:Class", "No module named 'nowhere_at_all'"),
        (f"{__name__}:Nobody", "has no attribute 'Nobody'"),
        (f"{__name__}:NoPartitioner", "it has no method open()"),
        (f"{__name__}:a_function", "it is not a class"),
        (f"{__name__}:Broken", f"ValueError at {Path(__file__)}:"),
        ("org.apache.flink.streaming.connectors.kafka.partitioner.FlinkFixedPartitioner", "No module named"),
    ],
)
def test_a_class_that_is_not_a_partitioner_is_refused_when_the_definition_is_loaded(
    name: str, why: str
) -> None:
    with pytest.raises(OptionError, match=re.escape(why)) as refused:
        resolve_topic(kafka(format="json", sink__partitioner=name))
    message = str(refused.value)
    assert message.startswith(f"Could not find and instantiate partitioner class '{name}': ")
    assert "(FlinkFixedPartitioner is 'fixed')" in message and "bridge.partitioners.Partitioner" in message
    assert "secret-value" not in message


@pytest.mark.parametrize(
    ("topic", "key", "message"),
    [
        ("far", b"a", "returned 7 for topic 'far'; legal are 0 to 2"),
        ("below", b"a", "returned -1 for topic 'below'; legal are 0 to 2"),
        ("text", b"a", "returned a value of type str for topic 'text'; legal are 0 to 2"),
        ("none", b"a", "returned a value of type NoneType for topic 'none'"),
        ("t", b"secret-key", f"failed in partition(): KeyError at {Path(__file__)}:"),
    ],
)
def test_errors_of_a_class_do_not_show_the_record(topic: str, key: bytes, message: str) -> None:
    chosen = opened(f"{__name__}:ByLength", 0, 1)
    assert chosen is not None
    with pytest.raises(KafkaError, match=re.escape(message)) as failed:
        chosen.partition(key, b"secret-value", topic, (0, 1, 2))
    assert str(failed.value).startswith(f"partitioner class '{__name__}:ByLength' ")
    assert "secret" not in str(failed.value)


def test_a_class_that_cannot_be_opened_or_found_in_the_executor() -> None:
    with pytest.raises(KafkaError, match=r"failed in open\(\): RuntimeError at "):
        opened(f"{__name__}:ByLength", 0, 13)
    with pytest.raises(KafkaError, match="in an executor: Could not find and instantiate"):
        opened("nowhere_at_all:Class", 0, 1)


def test_fixed_gives_each_task_one_partition() -> None:
    """As Flink's FlinkFixedPartitioner: with more tasks than partitions they begin again at the first."""
    chosen = []
    for task in range(5):
        fixed = opened("fixed", task, 5)
        assert fixed is not None
        chosen.append({fixed.partition(key, None, "t", (0, 1, 2)) for key in (b"a", b"b", None)})
    assert chosen == [{0}, {1}, {2}, {0}, {1}]


def test_the_others_are_librdkafka_s_own() -> None:
    assert opened("default", 0, 1) is None and opened("round-robin", 0, 1) is None


def test_all_to_zero_takes_the_first_partition() -> None:
    """`partition.strategy` of Flink CDC, which jobs translate to this class."""
    chosen = opened("bridge.partitioners:AllToZeroPartitioner", 3, 5)
    assert chosen is not None
    assert [chosen.partition(key, None, "t", (0, 1, 2)) for key in (b"a", b"b", None)] == [0, 0, 0]
