"""Passing errors of a restarted broker are retried."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as Told

from bridge.errors import KafkaError
from bridge.kafka.client import AdminSession, LastError, committed_offsets

PASSING = (Told.UNKNOWN_LEADER_EPOCH, Told.FENCED_LEADER_EPOCH, Told.NOT_LEADER_FOR_PARTITION)


class Request:
    """A request that is answered with an error for a number of times."""

    def __init__(self, code: int, times: int) -> None:
        self.code, self.times, self.asked = code, times, 0

    def __call__(self, client: object, **_: Any) -> dict[str, Future[int]]:
        self.asked += 1
        answer: Future[int] = Future()
        if self.asked <= self.times:
            answer.set_exception(KafkaException(Told(self.code)))
        else:
            answer.set_result(7)
        return {"t": answer}


@pytest.mark.parametrize("code", PASSING)
def test_requests_are_retried_during_an_election_or_a_restart(code: int) -> None:
    request = Request(code, 2)
    talk = AdminSession({"bootstrap.servers": "localhost:9"}, 20.0)
    assert talk.request("list offsets", request) == {"t": 7}
    assert request.asked == 3


def test_final_errors_are_raised_at_once_and_passing_ones_after_the_timeout() -> None:
    for code, timeout in ((Told.TOPIC_AUTHORIZATION_FAILED, 20.0), (Told.UNKNOWN_LEADER_EPOCH, 0.2)):
        request = Request(code, 1000)
        with pytest.raises(KafkaError):
            AdminSession({"bootstrap.servers": "localhost:9"}, timeout).request("list offsets", request)
        assert (request.asked == 1) == (code == Told.TOPIC_AUTHORIZATION_FAILED)


class Coordinated:
    """A consumer whose group has no coordinator that is ready yet."""

    def __init__(self, code: int, times: int) -> None:
        self.code, self.times, self.asked = code, times, 0

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self.asked += 1
        if self.asked <= self.times:
            raise KafkaException(Told(self.code))
        return partitions

    def poll(self, timeout: float) -> None:
        return None


@pytest.mark.parametrize(
    "code", [Told.NOT_COORDINATOR, Told.COORDINATOR_NOT_AVAILABLE, Told.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_a_coordinator_that_is_not_ready_is_asked_again(code: int) -> None:
    """A broker that has just started, with its first group (test_group_offsets alone finds it on a fast machine)."""
    places = [TopicPartition("t", 0)]
    consumer = Coordinated(code, 2)
    assert committed_offsets(cast(Consumer, consumer), places, 20.0, LastError()) == places
    assert consumer.asked == 3
    for other, timeout in ((Told.INVALID_GROUP_ID, 20.0), (code, 0.15)):
        refusing = Coordinated(other, 1000)
        with pytest.raises(KafkaException):
            committed_offsets(cast(Consumer, refusing), places, timeout, LastError())
        assert (refusing.asked == 1) == (other == Told.INVALID_GROUP_ID)
