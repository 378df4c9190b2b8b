"""What the settings of a topic mean for a publish, by the replicas that it has; most are broken in test_doctor.py."""

from __future__ import annotations

import pytest

from bridge.pipelines.operations.doctor import Replicas, sending
from tests.kafka.topics import topic_of


@pytest.mark.parametrize(
    ("replicas", "acks", "told"),
    [
        (Replicas(3, 3), "all", []),
        (
            Replicas(3, 2),
            "all",
            [("warning", "has 2 replicas in sync and min.insync.replicas=2: the publish stops")],
        ),
        (
            Replicas(3, 1),
            "all",
            [("fails", "has 1 of 3 replicas in sync and min.insync.replicas=2: no record")],
        ),
        (Replicas(1, 1), "-1", [("fails", "has 1 replicas and min.insync.replicas=2: no record")]),
        (Replicas(1, 1), "1", []),
        (Replicas(3, 1), "0", []),
    ],
)
def test_replicas(replicas: Replicas, acks: str, told: list[tuple[str, str]]) -> None:
    topic = topic_of("t", servers="none", properties={"acks": acks})
    found = list(sending(topic, "t", replicas, {"min.insync.replicas": "2"}))
    assert [outcome.value for outcome, _ in found] == [outcome for outcome, _ in told]
    assert all(text in shown for (_, text), (_, shown) in zip(told, found, strict=True))
