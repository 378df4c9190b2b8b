"""Detects foreign writes in the topic of an at-least-once publish by the topic's ends, and repairs stale keys.

A run that was stopped, taken over and resumed sends the records in its queue behind newer ones. No broker fences it, as
there are no transactions. But the topic's ends have then advanced by more records than this run has sent (ADR 021). A
publish looks after every range, and every 10 seconds while the table does not change.
"""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame

from bridge import failpoints
from bridge.columns import AFTER, BEFORE, POSITION, col, retracts
from bridge.definition import Definition, DeliveryGuarantee, Topic
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.table import Table
from bridge.errors import REPUBLISH, BadRecordError, GapError, KafkaError, TableError
from bridge.kafka import admin
from bridge.offsets import Offsets
from bridge.pipelines.changes import changelog_decode
from bridge.pipelines.compare.topic_differences import TopicDifferences
from bridge.pipelines.publish.delivery import Delivery
from bridge.pipelines.runtime.monitoring import Notices
from bridge.publish_progress import NOTHING, PublishProgress, PublishRange

_CHECK_SECONDS = 10.0
_MAX_ROUNDS = 3
"""What a writer adds after so many rounds is repaired after the next range."""

_log = logging.getLogger("bridge.publish")


class ForeignWriteMonitor:
    """The checks of one run; warnings go to its `notices`. An idle run checks every `check_seconds`."""

    def __init__(
        self,
        definition: Definition,
        delivery: Delivery,
        notices: Notices,
        *,
        check_seconds: float = _CHECK_SECONDS,
    ) -> None:
        self._definition, self._delivery, self._notices = definition, delivery, notices
        self._check_seconds, self._checked_at = check_seconds, float("-inf")

    def is_due(self, progress: PublishProgress) -> bool:
        """Whether an idle run should check now, as the last check is `check_seconds` ago. False where progress has no
        ends to compare with."""
        return progress.ends is not None and time.monotonic() - self._checked_at >= self._check_seconds

    def repair(
        self, topic: Topic, table: Table, progress: PublishProgress, *, before: Offsets | None, sent: int
    ) -> Repair:
        """Repair what others wrote since the ends `before`, in which time this run sent `sent` records; see
        `repair_foreign_writes`. `progress` is not recorded yet."""
        definition = replace(self._definition, topic=topic)
        repair = repair_foreign_writes(definition, table, self._delivery, progress, before=before, sent=sent)
        self._checked_at = time.monotonic()
        self._notices.add(repair.warning)
        return repair


@dataclass(frozen=True)
class Repair:
    """The result of one check for foreign writes."""

    progress: PublishProgress
    """The progress to record, with the ends up to which the topic agrees with the table at its version."""
    sent: int = 0
    """Records that were sent to repair stale keys."""
    tombstones: int = 0
    warning: str | None = None
    bytes: int = 0
    """Of the keys and values of these records."""


def applies_to(definition: Definition) -> bool:
    """Whether foreign writes are looked for: by at-least-once, in a topic with a key. Transactions are fenced by the
    broker; without a key no record makes another one stale; `none` guarantees nothing."""
    topic = definition.topic
    return topic.sink.delivery_guarantee is DeliveryGuarantee.AT_LEAST_ONCE and not topic.appends


def repair_foreign_writes(
    definition: Definition,
    table: Table,
    delivery: Delivery,
    progress: PublishProgress,
    *,
    before: Offsets | None,
    sent: int,
) -> Repair:
    """Compare how far the topic's ends have advanced since `before` with the `sent` records of this run, and repair the
    keys that foreign writes made stale. `progress` is not recorded yet; `definition` has the topics that exist and the
    table's columns.

    Foreign writes come from a run that was taken over or killed in the middle of a range, from a task that Spark
    repeated, or from another writer. The keys of all records since `before` are compared with the table at
    `progress.version`, and the row is sent again where the topic's last record differs from it. A key that the table
    lacks is deleted from the topic only if the change feed shows that the table had it; else it is another writer's.

    Raises GapError where a partition ends before `before`, KafkaError where there are fewer records than were sent: the
    topic has lost acknowledged records, and `progress` must not be recorded.
    """
    if not applies_to(definition) or progress.version == NOTHING:
        return Repair(progress)
    ends = admin.log_end_offsets(definition.topic)
    repair = Repair(replace(progress, ends=ends))
    if before is None:
        return repair
    foreign = count_foreign_records(before, ends, sent)
    for _ in range(_MAX_ROUNDS):
        if not foreign:
            return repair
        failpoints.hit("publish.overlap")
        state = admin.describe(definition.topic)
        # Records behind an open transaction cannot be read yet: a later check finds them.
        readable = ends.capped(state.end)
        start = _not_before_earliest(before, state)
        stale = _send_stale_keys(definition, table, delivery, progress.version, start, readable)
        warning = _warning(before, readable, foreign, stale)
        before, ends = readable, admin.log_end_offsets(definition.topic)
        foreign = count_foreign_records(before, ends, stale.sent)
        repair = Repair(
            replace(progress, ends=before if foreign else ends),
            repair.sent + stale.sent,
            repair.tombstones + stale.tombstones,
            "; ".join(filter(None, (repair.warning, warning))) or None,
            repair.bytes + stale.bytes,
        )
    return repair


def count_foreign_records(before: Offsets, ends: Offsets, sent: int) -> int:
    """Count the records between `before` and `ends` that are not among the `sent` ones of this run.

    Raises GapError and KafkaError as `repair_foreign_writes`.
    """
    for topic, partition, offset in before:
        end = ends.get(topic, partition)
        if end is None or end < offset:
            raise GapError(
                f"{topic}-{partition} ended at offset {offset} and now ends at {end or 0}: it was created anew, or its "
                f"leader has lost records (unclean.leader.election.enable); {REPUBLISH}"
            )
    foreign = before.lag(ends) - sent
    if foreign < 0:
        raise KafkaError(
            f"{', '.join(sorted({t for t, _, _ in ends}))}: {sent} records were acknowledged, and {sent + foreign} are "
            "there: the topic's leader has lost some (unclean.leader.election.enable, 'properties.acks' below all). "
            "Run again: the range that was being sent is sent again"
        )
    return foreign


@dataclass(frozen=True)
class _StaleKeys:
    sent: int = 0
    tombstones: int = 0
    unknown: int = 0
    """Keys that the table never had."""
    error: str = ""
    """Why nothing could be compared."""
    bytes: int = 0


def _send_stale_keys(
    definition: Definition, table: Table, delivery: Delivery, version: int, start: Offsets, end: Offsets
) -> _StaleKeys:
    topic_differences = TopicDifferences(definition, table, version)
    with ExitStack() as stack, feed_errors(table, version, version):
        persist = changelog_decode.persist_within(stack)
        try:
            differences = persist(topic_differences.within(start, end, persist))
            only_in_topic = persist(differences.where(col(AFTER).isNull()))
            unknown = only_in_topic.count()
        except (BadRecordError, TableError) as error:
            return _StaleKeys(error=str(error))
        stale = differences.where(col(AFTER).isNotNull())
        if unknown:
            deleted = persist(_deleted_from_table(definition, table, version, only_in_topic, persist))
            unknown -= deleted.count()
            stale = stale.unionByName(deleted)
        # Persisted, because sending changes what differs, also for a task that Spark repeats.
        stale = persist(stale.select(BEFORE, AFTER, POSITION))
        if not stale.count():
            return _StaleKeys(unknown=unknown)
        records = topic_differences.records(stale)
        result = delivery.send(records, PublishRange(version, version, resync=True))
    return _StaleKeys(result.records, result.tombstones, unknown, bytes=result.bytes)


def _not_before_earliest(start: Offsets, state: admin.TopicState) -> Offsets:
    """`start` for all partitions that exist, moved to the earliest offset where records were deleted."""
    return Offsets({(t, p): max(start.get(t, p) or 0, offset) for t, p, offset in state.earliest})


def _deleted_from_table(
    definition: Definition,
    table: Table,
    version: int,
    only_in_topic: DataFrame,
    persist: changelog_decode.Persist,
) -> DataFrame:
    """The rows of `only_in_topic` whose key the table had, as far back as its change feed can be read."""
    key = definition.primary_key
    first = change_feed.oldest(table, version)
    while first <= version:
        retractions = change_feed.changes(table, first, version).where(retracts())
        keys = retractions.select(*(col(name) for name in key)).alias("retracted")
        same = reduce(and_, (col(BEFORE, "topic").getField(n).eqNullSafe(col(n, "retracted")) for n in key))
        try:
            with feed_errors(table, first, version):
                deleted = persist(only_in_topic.alias("topic").join(keys, same, "left_semi"))
                deleted.count()
                return deleted
        except GapError:  # files of the older versions were vacuumed
            first = (first + version) // 2 + 1
    return only_in_topic.limit(0)


def _warning(start: Offsets, end: Offsets, foreign: int, stale: _StaleKeys) -> str | None:
    """A warning where keys were repaired, left or not compared; else None, and a line in the log."""
    advanced = [
        f"{t}-{p} from offset {start.get(t, p) or 0}"
        for t, p, offset in end
        if offset > (start.get(t, p) or 0)
    ]
    text = (
        f"{foreign} records in {', '.join(advanced)} were not sent by this run (another run that was stopped or "
        "killed, or another writer)"
    )
    if stale.error:
        return f"{text}, and cannot be compared with the table: {stale.error}"
    if stale.sent:
        text += f"; {stale.sent} keys were stale there and have been sent again"
    if stale.unknown:
        text += (
            f"; {stale.unknown} keys that are not in the table, and by its change feed never were, are left as they "
            "are (`bridge resync FILE` deletes them)"
        )
    if stale.sent or stale.unknown:
        _log.warning("%s", text)
        return text
    _log.info("%s; nothing in the topic is stale", text)
    return None
