"""Proves that the fold of the topic equals the table, at fixed offsets and one version."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bridge.columns import BAD, col
from bridge.decode import decode_keys
from bridge.definition import Definition, Topic
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.publish_log import PublishLog
from bridge.delta.table import Table
from bridge.delta.timeline import Timeline
from bridge.errors import DefinitionError, GapError
from bridge.kafka import admin, source
from bridge.kafka.leader_epochs import with_leader_epochs
from bridge.kafka.offset_availability import check_offsets_available
from bridge.offsets import Offsets
from bridge.pipelines.changes import changelog_decode
from bridge.pipelines.changes.declared_times import cut_times
from bridge.pipelines.changes.good_changes import is_good
from bridge.pipelines.changes.own_rows import own_rows
from bridge.pipelines.changes.truncates import settle
from bridge.pipelines.changes.unfit_rows import with_constraints
from bridge.pipelines.compare.row_comparison import Comparison, compare, compare_bags
from bridge.pipelines.runtime.preflight import (
    open_ingested_table,
    open_whole_table,
    published_table,
    refuse_partitions,
)
from bridge.publish_progress import NOTHING

_READABLE_TIMEOUT_SECONDS = 15.0


@dataclass(frozen=True)
class Proof:
    """What was compared, at which positions, and the result."""

    pipeline: str
    direction: str
    """`ingest`: the table follows the topic; `publish`: the topic follows the table."""
    version: int
    offsets: Offsets
    comparison: Comparison

    @property
    def equal(self) -> bool:
        """True if topic and table have the same rows."""
        return self.comparison.equal

    def as_dict(self) -> dict[str, Any]:
        """All fields, JSON-ready."""
        return {**asdict(self), "offsets": self.offsets.to_json(), "equal": self.equal}


@dataclass(frozen=True)
class _Snapshot:
    """The version of the table, and the end of the topic, that are compared."""

    table: Table
    version: int
    end: Offsets


def verify(
    spark: SparkSession, definition: Definition, *, direction: str | None = None, show_values: bool = False
) -> Proof:
    """Compare the fold of the topic with the table, row by row. Writes nothing.

    Rows of a table without a PRIMARY KEY are counted: each must be on both sides the same number of times. The result
    contains rows only with `show_values`. Of a table that several pipelines merge into, the key and the pipeline's own
    columns are compared, in the rows where one of these has a value.

    `ingest`: compares the topic up to the offsets of the newest ingest commit with the newest version of the table
    before any later ingest commit. Changes that others made to the table since then are differences.
    `publish`: compares the topic up to the ends that it had after the newest published version with that version.
    Records that others wrote to the topic before these ends are differences.

    Ingests, publishes and other writers that run meanwhile do not disturb it, nor does compaction (see
    Comparison.superseded). Without `direction`, the one that has progress is verified; DefinitionError if there is none
    or both. Raises GapError if the topic no longer starts at offset 0, or was recreated, or is compacted while
    `change_semantics` need all records.
    """
    resolved = admin.resolve(definition.topic)
    refuse_compacted(definition, resolved)
    state = admin.describe(resolved)
    snapshot, direction = _choose_snapshot(spark, definition, direction, resolved, state)
    start = _start_of_topic(state.earliest, snapshot.end)
    table, version = snapshot.table, snapshot.version
    if direction == "ingest":
        refuse_partitions(definition, state.end)
        definition = with_constraints(definition, table)
    with ExitStack() as stack, feed_errors(table, version, version):
        persist = changelog_decode.persist_within(stack)
        records = source.read(spark, definition.topic, start, snapshot.end)
        records = with_leader_epochs(records, definition.topic, start, snapshot.end)
        changes = changelog_decode.decode_with_fallback(records, definition, persist)
        if direction == "ingest":
            changes, _ = settle(changes, definition)
        changes = changelog_decode.resolve_unavailable(changes, definition, persist)
        changes = changelog_decode.without_halves(changes, definition)
        topic = own_rows(changelog_decode.fold(changes, definition), definition)
        if definition.delta.history is not None:
            none = change_feed.snapshot(table, version).limit(0)
            topic = Timeline.of(table, topic, definition.primary_key, none).rows()
        rows = own_rows(change_feed.snapshot(table, version), definition)
        # Of a history with system times, the rows that the table knows now: the topic does not tell the times.
        system = definition.delta.history.system_columns if definition.delta.history else ()
        rows = rows.where(col(system[1]).isNull()) if system else rows
        if direction == "publish":
            rows = cut_times(rows, definition.topic.schema)
        if definition.topic.appends:
            comparison = compare_bags(topic, rows, fields=table.fields)
        else:
            key = tuple(name for name in definition.row_key if name not in system)
            fields = [f for f in table.fields if f.name not in system]
            comparison = compare(topic, rows, key=key, fields=fields, show_values=show_values)
            if comparison.missing_in_topic and _compacts(resolved):
                now = admin.describe(resolved).end
                later = _keys(source.read(spark, definition.topic, snapshot.end, now), definition)
                comparison = compare(
                    topic, rows, key=key, fields=fields, show_values=show_values, later=later
                )
    return Proof(definition.name, direction, version, snapshot.end, comparison)


def _choose_snapshot(
    spark: SparkSession, definition: Definition, direction: str | None, topic: Topic, state: admin.TopicState
) -> tuple[_Snapshot, str]:
    table = open_whole_table(spark, definition)
    newest = change_feed.latest_version(table)
    ingested = open_ingested_table(table, definition)
    published = PublishLog.of(spark, definition).last()
    direction = direction or _direction(definition, ingested is not None, published is not None)
    if direction == "ingest":
        if ingested is None:
            raise DefinitionError(f"{definition.name!r} has not ingested into {table}: nothing to verify")
        if definition.topic.startup.mode != "earliest-offset":
            raise DefinitionError(
                f"{definition.name!r} does not start at the earliest offset ('scan.startup.mode' = "
                f"'{definition.topic.startup.mode}'), so the topic alone does not determine the rows of {table}"
            )
        progress, version = ingested
        _start_of_topic(state.earliest, progress.offsets)
        check_offsets_available(progress.offsets, state, progress.topic_ids)
        # Versions between the two are not the ingest's: its progress was read after `newest`.
        return _Snapshot(table, max(version, newest), progress.offsets), direction
    if published is None or published.version == NOTHING:
        raise DefinitionError(f"{definition.name!r} has not published {table} (whole): nothing to verify")
    table = published_table(spark, definition)
    change_feed.check_same(table, published.table_id)
    end = published.ends or state.end
    _wait_until_readable(topic, end)
    return _Snapshot(table, published.version, end), direction


def _wait_until_readable(topic: Topic, end: Offsets) -> None:
    """Wait until records up to `end` can be read: the broker writes the markers of transactions with a delay."""
    deadline = time.monotonic() + _READABLE_TIMEOUT_SECONDS
    while not (state := admin.describe(topic)).end.reaches(end):
        if time.monotonic() > deadline:
            if admin.log_end_offsets(topic).reaches(end):
                raise GapError(
                    f"{topic.title}: a transaction is open before the end that was published "
                    f"({end.to_json()}), so the records cannot be read yet; see `bridge txn list`"
                )
            check_offsets_available(end, state)
        time.sleep(0.1)


def _direction(definition: Definition, ingested: bool, published: bool) -> str:
    if ingested and published:
        raise DefinitionError(
            f"{definition.name!r} both ingests and publishes: set --direction ingest or --direction publish"
        )
    if not (ingested or published):
        raise DefinitionError(
            f"{definition.name!r} has neither ingested nor published yet: nothing to verify"
        )
    return "ingest" if ingested else "publish"


def _start_of_topic(earliest: Offsets, end: Offsets) -> Offsets:
    """Return offset 0 for every partition of `end`. Compaction leaves it in place; deletion by age or size moves it."""
    for topic, partition, offset in earliest:
        if offset > 0:
            raise GapError(
                f"{topic}-{partition} starts at offset {offset}: the records before it are deleted, so the topic alone "
                "no longer determines the rows of the table. A topic that can be verified has cleanup.policy=compact; "
                "`bridge resync FILE` makes both sides equal as they are now"
            )
    return Offsets({key: 0 for key in end.by_partition})


def refuse_compacted(definition: Definition, topic: Topic) -> None:
    """Raise GapError for a compacted topic whose rows are not those of the last records of each key."""
    needs = definition.delta.needs_all_records
    if needs and _compacts(topic):
        raise GapError(
            f"{definition.name!r}: {topic.title} is compacted, and compaction keeps the last record of a key, but "
            f"`delta.{min(needs)}` needs the records before it, too: the topic alone does not determine the rows. Set "
            "cleanup.policy=delete, and retention.ms to the time for which the topic is to be compared"
        )


def _compacts(topic: Topic) -> bool:
    policies = (admin.topic_config(topic, name, "cleanup.policy") for name in topic.names)
    return any(policy is None or "compact" in policy for policy in policies)


def _keys(records: DataFrame, definition: Definition) -> DataFrame:
    """The keys of the records."""
    topic, names = definition.topic, [col(name) for name in definition.primary_key]
    if topic.is_upsert:
        return decode_keys(records, topic).where(col(BAD).isNull()).select(*names)
    return changelog_decode.decode(records, definition).where(is_good()).select(*names)
