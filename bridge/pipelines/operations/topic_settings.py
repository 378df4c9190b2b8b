"""What the settings of a topic mean for a pipeline; see `doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bridge.definition import Topic
from bridge.pipelines.operations.surroundings import Found, Outcome

__all__ = ["Replicas", "policy", "sending"]

_REQUEST_BYTES = ("max.request.size", "message.max.bytes")
"""The names of the producer's limit, Java's and librdkafka's."""


class Replicas(NamedTuple):
    """The fewest that a partition of a topic has."""

    assigned: int
    in_sync: int


def policy(topic: Topic, name: str, cleanup: str) -> Found:
    """A `cleanup.policy` with which Kafka removes records that a table needs."""
    policies = [word.strip() for word in cleanup.split(",")]
    compacts = "compact" in policies
    if topic.is_upsert and (not compacts or "delete" in policies):
        yield (
            Outcome.WARNING,
            f"'{name}' is {'also deleted by age' if compacts else 'not compacted'} (cleanup.policy={cleanup}): Kafka "
            "deletes records by age, and with them rows that have not changed for long. Set cleanup.policy=compact",
        )
    elif topic.appends and compacts:
        yield (
            Outcome.WARNING,
            f"'{name}' is compacted (cleanup.policy={cleanup}): Kafka removes all records of a key but the "
            "last one, and an append-only table misses those. Set cleanup.policy=delete",
        )


def sending(topic: Topic, name: str, replicas: Replicas, settings: Mapping[str, str]) -> Found:
    """Settings with which a publish cannot send, or will not be able to."""
    needed = int(settings.get("min.insync.replicas", "1"))
    waits_for_all = topic.properties.get("acks", "all") in ("all", "-1")  # else Kafka does not count replicas
    assigned, in_sync = replicas
    if not waits_for_all:
        pass
    elif assigned < needed:
        yield (
            Outcome.FAILS,
            f"'{name}' has {assigned} replicas and min.insync.replicas={needed}: no record will "
            "be acknowledged. Lower it, or add replicas",
        )
    elif in_sync < needed:
        yield (
            Outcome.FAILS,
            f"'{name}' has {in_sync} of {assigned} replicas in sync and min.insync.replicas={needed}: no record will "
            "be acknowledged until brokers are back. Start them",
        )
    elif in_sync == needed > 1:
        yield (
            Outcome.WARNING,
            f"'{name}' has {in_sync} replicas in sync and min.insync.replicas={needed}: the publish stops as soon "
            "as one broker is down",
        )
    largest = int(settings.get("max.message.bytes", "0"))
    for key in _REQUEST_BYTES:
        if largest and int(topic.properties.get(key, "0")) > largest:
            yield (
                Outcome.WARNING,
                f"'{name}' takes records of up to {largest:,} bytes (max.message.bytes), and "
                f"'properties.{key}' lets larger ones through, which the broker refuses: raise it at the topic",
            )
