"""Warns about pipelines that are so far behind that versions or records they still need may soon be gone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from bridge.console import duration
from bridge.definition import Topic
from bridge.delta import optimize_vacuum
from bridge.delta.feed_consumers import Lag
from bridge.delta.table import Table
from bridge.errors import REPUBLISH, KafkaError
from bridge.kafka import admin
from bridge.metrics import now_ms
from bridge.offsets import Offsets

_LEVELS = (0.5, 0.8, 1.0)
"""Fractions of a retention time at which to warn."""

_EVERY_SECONDS = 60.0

_KEYS = ("cleanup.policy", "delete.retention.ms", "retention.ms")


def log_retention_warnings(table: Table, consumer_lags: Sequence[Lag]) -> list[str]:
    """Warn about each publish of `table` whose lag nears or exceeds delta.logRetentionDuration."""
    now = now_ms()
    warnings = []
    for lag in consumer_lags:
        name = f"publish {lag.consumer.pipeline!r}"
        if lag.lost:
            warnings.append(
                f"{name} is at version {lag.consumer.version}, and the log of table {table} no longer holds the next "
                f"one; {REPUBLISH}"
            )
            continue
        warning = log_retention_warning(table, name, lag.seconds(now))
        if warning is not None:
            warnings.append(warning)
    return warnings


def log_retention_warning(table: Table, name: str, seconds: float) -> str | None:
    """Warn about a reader that has been behind for at least half of delta.logRetentionDuration; else None."""
    retention = optimize_vacuum.retention_seconds(table, optimize_vacuum.LOG_RETENTION)
    if not seconds or seconds < _LEVELS[0] * retention:
        return None
    return (
        f"{name} has been behind for {duration(seconds)}, {seconds / retention:.0%} of "
        f"{optimize_vacuum.LOG_RETENTION} ({duration(retention)}) of table {table}: after that Delta forgets versions "
        f"it still needs. Let it run, or raise the table property {optimize_vacuum.LOG_RETENTION}"
    )


class TopicRetention:
    """Compares the age of the records that an ingest has not read yet with the retention times of the topic.

    An age never counts more than that of the table: an ingest that reads a topic from its beginning meets old records,
    but cannot have missed a delete.
    """

    def __init__(self, topic: Topic, table: Table) -> None:
        self._topic, self._table = topic, table
        self._reported: dict[tuple[str, str], float] = {}
        self._last = time.monotonic()

    def warning_if_due(self, position: Offsets, end: Offsets) -> str | None:
        """Call `warning` once a minute."""
        if time.monotonic() - self._last < _EVERY_SECONDS:
            return None
        self._last = time.monotonic()
        return self.warning(position, end)

    def warning(self, position: Offsets, end: Offsets) -> str | None:
        """Return the warnings that are new since the last call; None if there are none, or if no broker answers."""
        behind = {(t, p): o for t, p, o in position if o < (end.get(t, p) or 0)}
        if not behind:
            return None
        try:
            settings = admin.topic_configs(self._topic, sorted({topic for topic, _ in behind}), _KEYS)
            warnings = [
                self._warning_for(topic, key, retention_ms, Offsets(behind), end)
                for topic, topic_settings in settings.items()
                for key, retention_ms in _limits(topic_settings, appends=self._topic.appends).items()
            ]
        except KafkaError:
            return None
        return "; ".join(text for text in warnings if text is not None) or None

    def _warning_for(
        self, topic: str, key: str, retention_ms: int, behind: Offsets, end: Offsets
    ) -> str | None:
        level, late = 0.0, 0
        positions = Offsets.of((t, p, o) for t, p, o in behind if t == topic)
        now = now_ms()
        for fraction in _LEVELS:
            if now - self._table.created_ms < fraction * retention_ms:
                break
            since = admin.offsets_at_timestamp(self._topic, positions, now - int(fraction * retention_ms))
            # All records before the first one of that age or younger are older.
            older = [o for t, p, o in positions if o < since.by_partition.get((t, p), end.by_partition[t, p])]
            if not older:
                break
            level, late = fraction, len(older)
        if level <= self._reported.get((topic, key), 0.0):
            return None
        self._reported[topic, key] = level
        return (
            f"topic '{topic}': in {late} of its partitions records older than "
            f"{duration(level * retention_ms / 1000)} are not applied yet, {level:.0%} of "
            f"{key} = {retention_ms}{_REASONS[key, level >= 1]}"
        )


_REASONS = {
    ("delete.retention.ms", False): (
        ": after that Kafka removes tombstones, and their rows stay in the table. Let the ingest run, or raise it"
    ),
    ("delete.retention.ms", True): (
        ": Kafka may have removed tombstones already, whose rows then stay in the table; `bridge resync` deletes them"
    ),
    ("retention.ms", False): (
        ": after that Kafka deletes records that were not read. Let the ingest run, or raise it"
    ),
    ("retention.ms", True): ": Kafka may delete such records at any moment. Let the ingest run, or raise it",
}


def _limits(settings: Mapping[str, str], *, appends: bool) -> dict[str, int]:
    """The retention times in milliseconds that apply under cleanup.policy; tombstones matter only with a key."""
    policies = settings.get("cleanup.policy", "").split(",")
    keys = []
    if "compact" in policies and not appends:
        keys.append("delete.retention.ms")
    if "delete" in policies:
        keys.append("retention.ms")
    limits = {key: int(settings.get(key, "-1")) for key in keys}
    return {key: limit for key, limit in limits.items() if limit >= 0}
