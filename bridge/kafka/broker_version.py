"""Which Kafka release the brokers are, by the versions of the requests that they take (KIP-35)."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bridge.kafka.client_settings import for_librdkafka

# The first release that takes this version of this request, as the ApiKeys of each release's kafka-clients say.
_RELEASES: tuple[tuple[tuple[int, int], str, int], ...] = (
    ((4, 3), "DescribeLogDirs", 5),
    ((4, 2), "ListOffsets", 11),
    ((4, 1), "Fetch", 18),
    ((4, 0), "Produce", 12),
    ((3, 9), "Fetch", 17),
    ((3, 8), "Produce", 11),
    ((3, 7), "Produce", 10),
    ((3, 6), "OffsetCommit", 9),
    ((3, 5), "Fetch", 15),
    ((3, 3), "DescribeLogDirs", 4),
    ((3, 2), "JoinGroup", 9),
    ((3, 1), "Fetch", 13),
    ((3, 0), "ListOffsets", 7),
    ((2, 8), "CreateTopics", 7),
)
_LINE = re.compile(r"ApiKey (\w+) \(\d+\) Versions \d+\.\.(\d+)")


def broker_version(properties: Mapping[str, str], *, timeout: float) -> tuple[int, int] | None:
    """Return the newest release all of whose requests the first broker takes; (0, 0) for one before 2.8.

    A release that changed no request counts as the one before it. None if no broker tells it within `timeout` seconds.
    No client has a call for it: librdkafka only writes what a broker answers to its debug log.
    """
    versions = _Versions()
    log = logging.Logger("bridge.kafka.broker_version", logging.DEBUG)  # not registered: nobody else reads it
    log.addHandler(versions)
    client = AdminClient({**for_librdkafka(properties), "debug": "feature"}, logger=log)
    deadline = time.monotonic() + timeout
    try:
        client.list_topics(timeout=timeout)
    except KafkaException:
        return None
    while not versions.found and time.monotonic() < deadline:
        client.poll(0.1)
    return _release(versions.found) if versions.found else None


class _Versions(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        line = _LINE.search(record.getMessage())
        if line:
            self.found[line[1]] = int(line[2])


def _release(versions: Mapping[str, int]) -> tuple[int, int]:
    taken = (release for release, request, version in _RELEASES if versions.get(request, -1) >= version)
    return next(taken, (0, 0))
