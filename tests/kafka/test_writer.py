from __future__ import annotations

from collections.abc import Callable

import pytest

from bridge.errors import KafkaError
from bridge.kafka.broker import Broker
from bridge.kafka.writer import Buffer, Records, Sent, Writer, producer_settings
from tests.reader import messages

Unique = Callable[[str], str]


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def _records(*pairs: tuple[bytes, bytes | None]) -> Records:
    return Records(["t"] * len(pairs), [k for k, _ in pairs], [v for _, v in pairs])


def test_the_buffer_keeps_the_last_record_of_each_key() -> None:
    """It hands over at max_rows distinct keys, in the order of last changes, and the rest at flush()."""
    out: list[list[tuple[bytes | None, bytes | None]]] = []
    buffer = Buffer(
        lambda r: out.append(list(zip(r.keys, r.values, strict=True))),
        max_rows=2,
        interval_ms=10_000,
        clock=_Clock(),
    )
    buffer.add(_records((b"a", b"1"), (b"a", b"2"), (b"a", None), (b"b", b"1"), (b"a", b"3"), (b"c", b"1")))
    buffer.add(_records((b"c", b"2"), (b"a", b"4")))
    assert out == [[(b"a", None), (b"b", b"1")], [(b"a", b"3"), (b"c", b"1")], [(b"c", b"2"), (b"a", b"4")]]
    buffer.flush()
    assert len(out) == 3
    buffer.add(_records((b"z", b"1")))
    buffer.flush()
    assert out[3:] == [[(b"z", b"1")]]


def test_the_buffer_flushes_when_the_interval_has_passed() -> None:
    """Counted from the last flush, whatever caused it."""
    clock = _Clock()
    out: list[Records] = []
    buffer = Buffer(out.append, max_rows=100, interval_ms=1000, clock=clock)
    buffer.add(_records((b"a", b"1")))
    clock.now = 0.9
    buffer.flush()
    clock.now = 1.8
    buffer.add(_records((b"a", b"2")))
    assert [r.values for r in out] == [[b"1"]]
    clock.now = 1.95
    buffer.add(_records((b"a", b"3")))
    assert [r.values for r in out] == [[b"1"], [b"3"]]


def test_topics_do_not_share_keys_in_the_buffer() -> None:
    out: list[Records] = []
    buffer = Buffer(out.append, max_rows=100, interval_ms=1000, clock=_Clock())
    buffer.add(Records(["t", "u"], [b"a", b"a"], [b"1", b"2"], [5, None], [None, [("h", None)]]))
    buffer.flush()
    assert out == [Records(["t", "u"], [b"a", b"a"], [b"1", b"2"], [5, None], [None, [("h", None)]])]


@pytest.mark.parametrize(
    ("user", "checked", "idempotent"),
    [
        ({}, True, "true"),
        ({"acks": "-1"}, True, "true"),
        ({"acks": "1"}, True, "false"),
        ({"enable.idempotence": "false"}, True, "false"),
        ({}, False, "false"),
    ],
)
def test_order_holds_with_and_without_idempotence(
    user: dict[str, str], checked: bool, idempotent: str
) -> None:
    """Without idempotence one request at a time keeps retries from overtaking."""
    made = producer_settings(user, checked=checked)
    assert made["enable.idempotence"] == idempotent
    assert (made.get("max.in.flight.requests.per.connection") == "1") == (idempotent == "false")
    assert made["partitioner"] == "murmur2_random"


def test_a_small_buffer_only_slows_down(broker: Broker, unique: Unique) -> None:
    """With room for two records at a time every record still arrives, in order."""
    name = unique("narrow")
    broker.create_topic(name)
    user = {"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": "2", "linger.ms": "0"}
    with Writer(producer_settings(user, checked=True)) as writer:
        writer.send(Records([name] * 50, [b"k"] * 50, [b"%d" % i for i in range(50)]))
    assert [m.value() for m in messages(broker.bootstrap, name)] == [b"%d" % i for i in range(50)]
    assert writer.sent == Sent(records=50, tombstones=0, bytes=140, lost=0)


@pytest.mark.parametrize("checked", [True, False])
def test_a_failed_delivery_is_an_error_or_a_count(broker: Broker, unique: Unique, checked: bool) -> None:
    """The broker refuses records over the topic's limit: told without payload, or counted as lost."""
    name = unique("limited")
    broker.create_topic(name, config={"max.message.bytes": "1000"})
    user = {"bootstrap.servers": broker.bootstrap, "compression.type": "none"}
    settings = producer_settings(user, checked=checked)
    records = Records([name], [b"k"], [bytes(range(256)) * 40])
    if checked:
        told = pytest.raises(KafkaError, match=f"{name}-0 did not take a record: MSG_SIZE_TOO_LARGE")
        with told, Writer(settings) as writer:
            writer.send(records)
    else:
        with Writer(settings, checked=False) as writer:
            writer.send(records)
        assert (writer.sent.records, writer.sent.lost) == (1, 1)


def test_what_is_too_large_for_the_client_is_named_by_hash(broker: Broker, unique: Unique) -> None:
    name = unique("huge")
    broker.create_topic(name)
    settings = producer_settings({"bootstrap.servers": broker.bootstrap}, checked=True)
    told = pytest.raises(KafkaError, match=r"2000006 bytes .*SHA-256 begins 2bb80d53.*max\.request\.size")
    with told, Writer(settings) as writer:
        writer.send(Records([name], [b"secret"], [b"x" * 2_000_000]))


def test_nothing_of_a_failed_attempt_is_sent_later(broker: Broker, unique: Unique) -> None:
    """Leaving by an exception throws away what is queued."""
    name = unique("dropped")
    broker.create_topic(name)
    user = {"bootstrap.servers": broker.bootstrap, "linger.ms": "60000"}
    writer = Writer(producer_settings(user, checked=True))

    def fail_half_way() -> None:
        with writer:
            writer.send(Records([name], [b"k"], [b"v"]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert list(messages(broker.bootstrap, name)) == []


@pytest.mark.parametrize("timestamp", [0, -1])
def test_times_kafka_cannot_hold_are_refused(timestamp: int) -> None:
    """librdkafka would write the present time instead."""
    settings = producer_settings({"bootstrap.servers": "127.0.0.1:9"}, checked=True)
    with pytest.raises(KafkaError, match="timestamp not after 1970"), Writer(settings) as writer:
        writer.send(Records(["t"], [b"k"], [b"v"], timestamps=[timestamp]))


def test_a_broker_that_is_away_is_told_with_the_reason() -> None:
    user = {"bootstrap.servers": "127.0.0.1:9", "delivery.timeout.ms": "1500"}
    told = pytest.raises(KafkaError, match=r"_MSG_TIMED_OUT.*Connection refused")
    with told, Writer(producer_settings(user, checked=True)) as writer:
        writer.send(Records(["t"], [b"k"], [b"v"]))
