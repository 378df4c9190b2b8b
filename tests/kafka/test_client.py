"""Passing errors of a restarted broker are retried."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError as Told
from confluent_kafka import KafkaException

from bridge.errors import KafkaError
from bridge.kafka.client import AdminSession

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
