"""What a publish does when sending a range fails."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.definition import DeliveryGuarantee
from bridge.errors import ConcurrentRunError, KafkaError
from bridge.kafka.sink import ProduceResult
from bridge.pipelines.publish.run import produce_range
from bridge.publish_progress import PublishRange

STOPPED = ConcurrentRunError("a task was stopped for 7 s")
SENT = ProduceResult(records=3)


def produce(
    outcomes: Sequence[Exception | ProduceResult],
    guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE,
    taken_over: bool = False,
) -> tuple[ProduceResult, int]:
    """Send versions 4 to 5 with these outcomes; the result, and how many outcomes are left."""
    left = list(outcomes)

    def send() -> ProduceResult:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def refresh() -> None:
        if taken_over:
            raise ConcurrentRunError("another run has taken over")

    stand_ins: Any = SimpleNamespace(refresh=refresh, sink=SimpleNamespace(delivery_guarantee=guarantee))
    done = produce_range(send, PublishRange(4, 5), lease=stand_ins, topic=stand_ins, table=stand_ins)
    return done, len(left)


def test_a_range_is_sent_once() -> None:
    assert produce([SENT, SENT]) == (SENT, 1)


def test_a_range_whose_task_was_stopped_is_sent_again() -> None:
    assert produce([STOPPED, SENT]) == (SENT, 0)


def test_it_is_not_sent_again_when_another_run_took_over() -> None:
    with pytest.raises(ConcurrentRunError, match="another run has taken over"):
        produce([STOPPED, SENT], taken_over=True)


def test_exactly_once_does_not_send_again() -> None:
    """A ConcurrentRunError is a fence there."""
    with pytest.raises(ConcurrentRunError, match="stopped for 7 s"):
        produce([STOPPED, SENT], DeliveryGuarantee.EXACTLY_ONCE)


def test_a_refusal_names_the_versions() -> None:
    with pytest.raises(KafkaError, match=r"refused \(versions 4 to 5 of table "):
        produce([KafkaError("refused")])
