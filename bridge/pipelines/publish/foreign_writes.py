"""Whether an at-least-once publish was the only one to write, told by the topic's ends; and what it does if it was not.

A run that was stopped, taken over and woken sends what it had queued behind newer records. No broker fences it, as
there is no transaction. But the topic's ends have then grown by more records than this run has sent (ADR 021).
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame

from bridge import failpoints
from bridge.columns import AFTER, BEFORE, POSITION, col, retracts
from bridge.definition import Definition, DeliveryGuarantee
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.table import Table
from bridge.errors import REPUBLISH, BadRecordError, GapError, KafkaError, TableError
from bridge.kafka import admin
from bridge.offsets import Offsets
from bridge.pipelines.changes import changelog_decode
from bridge.pipelines.compare.topic_differences import TopicDifferences
from bridge.pipelines.publish.delivery import Delivery
from bridge.publish_progress import NOTHING, PublishProgress, PublishRange

__all__ = ["Repair", "applies_to", "repair_foreign_writes"]

_MAX_ROUNDS = 3
"""Somebody who goes on writing is met again after the next range."""

_log = logging.getLogger("bridge.publish")


@dataclass(frozen=True)
class Repair:
    """What came of a look at the topic's ends."""

    progress: PublishProgress
    """With the ends up to which the topic is known to hold what the version says."""
    sent: int = 0
    """Records that mended it."""
    tombstones: int = 0
    warning: str | None = None


def applies_to(definition: Definition) -> bool:
    """Whether ends are looked at: at-least-once, into a topic of keys. Transactions fence by themselves; without a key
    no record is newer than another; and `none` promises nothing."""
    topic = definition.topic
    return topic.sink.delivery_guarantee is DeliveryGuarantee.AT_LEAST_ONCE and not topic.appends


def repair_foreign_writes(
    definition: Definition,
    table: Table,
    delivery: Delivery,
    done: PublishProgress,
    *,
    before: Offsets | None,
    sent: int,
) -> Repair:
    """`done`, which is not written down yet, with the topic's ends; after `sent` records since the ends `before`.

    Where there are more records since `before`, others wrote them (a run that was taken over, or killed in the middle
    of a range, or a task that Spark repeated): the keys of all records since then are compared with the table at
    `done.version`, and sent again where the topic's last record says something else. A key that the topic has and the
    table has not is taken away only if the change feed tells that the table had it: else it is another writer's.
    `definition` has the topics that are there and the table's columns.

    Raises GapError where a partition ends before `before`, KafkaError where there are fewer records than were sent:
    the topic has lost acknowledged records, and `done` must not be written down.
    """
    if not applies_to(definition) or done.version == NOTHING:
        return Repair(done)
    ends = admin.log_end_offsets(definition.topic)
    if before is None:
        return Repair(replace(done, ends=ends))
    found = Repair(replace(done, ends=ends))
    foreign = _count_foreign_records(before, ends, sent)
    for _ in range(_MAX_ROUNDS):
        if not foreign:
            return found
        failpoints.hit("publish.overlap")
        there = admin.describe(definition.topic)
        # Records behind an open transaction cannot be read yet: they are met again.
        readable = ends.capped(there.end)
        mended = _send_stale_keys(
            definition, table, delivery, done.version, _clamp_to_earliest(before, there), readable
        )
        warning = _warning(before, readable, foreign, mended)
        before, ends = readable, admin.log_end_offsets(definition.topic)
        foreign = _count_foreign_records(before, ends, mended.sent)
        found = Repair(
            replace(done, ends=before if foreign else ends),
            found.sent + mended.sent,
            found.tombstones + mended.tombstones,
            "; ".join(filter(None, (found.warning, warning))) or None,
        )
    return found


@dataclass(frozen=True)
class _Sent:
    sent: int = 0
    tombstones: int = 0
    left: int = 0
    """Keys that the table never had."""
    refused: str = ""
    """Why nothing was compared."""


def _count_foreign_records(before: Offsets, ends: Offsets, sent: int) -> int:
    """How many records of others there are."""
    for topic, partition, at in before:
        there = ends.get(topic, partition)
        if there is None or there < at:
            raise GapError(
                f"{topic}-{partition} ended at offset {at} and ends at {there or 0} by now: it was made anew, or its "
                f"leader has lost records (unclean.leader.election.enable); {REPUBLISH}"
            )
    more = before.lag(ends) - sent
    if more < 0:
        raise KafkaError(
            f"{', '.join(sorted({t for t, _, _ in ends}))}: {sent} records were acknowledged, and {sent + more} are "
            "there: the topic's leader has lost some (unclean.leader.election.enable, 'properties.acks' below all). "
            "Run again: what was under way is sent again"
        )
    return more


def _send_stale_keys(
    definition: Definition, table: Table, delivery: Delivery, version: int, start: Offsets, end: Offsets
) -> _Sent:
    differences = TopicDifferences(definition, table, version)
    with ExitStack() as stack, feed_errors(table, version, version):
        held = changelog_decode.persist_within(stack)
        try:
            found = held(differences.within(start, end, held))
            ghosts = held(found.where(col(AFTER).isNull()))
            left = ghosts.count()
        except (BadRecordError, TableError) as refused:
            return _Sent(refused=str(refused))
        todo = found.where(col(AFTER).isNotNull())
        if left:
            ours = held(_formerly_in_table(definition, table, version, ghosts, held))
            left -= ours.count()
            todo = todo.unionByName(ours)
        # Held: what is sent changes what differs, also for a task that is repeated.
        todo = held(todo.select(BEFORE, AFTER, POSITION))
        if not todo.count():
            return _Sent(left=left)
        result = delivery.send(differences.records(todo), PublishRange(version, version, resync=True))
    return _Sent(result.records, result.tombstones, left)


def _clamp_to_earliest(start: Offsets, there: admin.TopicState) -> Offsets:
    """`start` in all partitions; behind records that have been deleted by now."""
    return Offsets({(t, p): max(start.get(t, p) or 0, at) for t, p, at in there.earliest})


def _formerly_in_table(
    definition: Definition, table: Table, version: int, ghosts: DataFrame, held: changelog_decode.Persist
) -> DataFrame:
    """Those of `ghosts` that the table had: as far back as its change feed can be read."""
    key = definition.primary_key
    first = change_feed.oldest(table, version)
    while first <= version:
        gone = change_feed.changes(table, first, version).where(retracts())
        keys = gone.select(*(col(name) for name in key)).alias("g")
        same = reduce(and_, (col(BEFORE, "s").getField(n).eqNullSafe(col(n, "g")) for n in key))
        try:
            with feed_errors(table, first, version):
                found = held(ghosts.alias("s").join(keys, same, "left_semi"))
                found.count()
                return found
        except GapError:  # files of the older versions were vacuumed
            first = (first + version) // 2 + 1
    return ghosts.limit(0)


def _warning(start: Offsets, end: Offsets, foreign: int, mended: _Sent) -> str | None:
    """A warning where something had to be done, or should be; else a line in the log."""
    grown = (
        (f"{t}-{p} from offset {start.get(t, p) or 0}", at) for t, p, at in end if at > (start.get(t, p) or 0)
    )
    where = ", ".join(name for name, _ in grown)
    said = f"{foreign} records in {where} were not sent by this run (another run that was stopped or killed, or a "
    said += "writer of its own)"
    if mended.refused:
        return f"{said}, and cannot be compared with the table: {mended.refused}"
    if mended.sent:
        said += f"; {mended.sent} keys were stale there and have been sent again"
    if mended.left:
        said += (
            f"; {mended.left} keys that the table does not hold, and by its change feed never held, are left as they "
            "are (`bridge resync FILE` takes them away)"
        )
    if mended.sent or mended.left:
        _log.warning("%s", said)
        return said
    _log.info("%s; nothing in the topic is stale", said)
    return None
