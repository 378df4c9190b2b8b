"""Leader epochs are read from few records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from bridge.embedded.broker import Broker
from bridge.kafka.leader_epochs import Beginning, LeaderEpochs
from tests.kafka.topics import Fresh, send, topic_of, transaction


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of its own, whose restarts elect new leaders."""
    with Broker(tmp_path_factory.mktemp("epochs")) as broker:
        broker.create_topic("e")
        for n in range(3):
            if n:
                broker.stop()
                broker.start()
            send(broker.bootstrap, "e", [(None, b"x")] * (5 + n))
        yield broker


def _of(broker: Broker, topic: str, start: int, end: int) -> list[Beginning]:
    with closing(LeaderEpochs(topic_of(topic, servers=broker.bootstrap))) as epochs:
        return epochs.of(topic, 0, start, end)


def test_each_election_begins_an_epoch(restarted: Broker) -> None:
    """5 records, 6 after the first restart, 7 after the second."""
    everything = _of(restarted, "e", 0, 18)
    assert [offset for _, _, offset, _ in everything] == [0, 5, 11]
    numbers = [epoch for *_, epoch in everything]
    assert None not in numbers and numbers == sorted(set(numbers), key=lambda e: e or 0)
    assert _of(restarted, "e", 7, 18) == [("e", 0, 7, numbers[1]), everything[2]]
    assert _of(restarted, "e", 1, 5) == [("e", 0, 1, numbers[0])]
    assert _of(restarted, "e", 4, 6) == [("e", 0, 4, numbers[0]), ("e", 0, 5, numbers[1])]


def test_no_records_no_epochs(fresh: Fresh, broker: Broker) -> None:
    name = fresh("topic")
    assert _of(broker, name, 0, 0) == []
    assert _of(broker, name, 0, 5) == []


def test_a_marker_at_the_end_is_no_record(fresh: Fresh, broker: Broker) -> None:
    name = fresh("topic")
    transaction(broker.bootstrap, name, [b"a", b"b"], commit=True)
    transaction(broker.bootstrap, name, [b"c"] * 5, commit=False)
    [(topic, partition, offset, epoch)] = _of(broker, name, 0, 9)
    assert (topic, partition, offset) == (name, 0, 0) and epoch is not None
    assert _of(broker, name, 2, 9) == []
