"""Tries all that a pipeline needs without writing anything, and says what will happen and what to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from bridge.backend import backend_of
from bridge.commit_operations import NO_ROWS, OTHER_NO_ROWS
from bridge.definition import Definition, Topic
from bridge.delta import change_feed
from bridge.delta.feed_consumers import FeedConsumers, lags
from bridge.delta.log_description import newest_commits
from bridge.delta.publish_log import PublishLog
from bridge.delta.table import Table, exists
from bridge.errors import BridgeError, KafkaError
from bridge.ingest_progress import IngestProgress
from bridge.kafka import admin
from bridge.kafka.admin import missing_rights
from bridge.kafka.client import AdminSession
from bridge.kafka.offset_availability import check_offsets_available
from bridge.offsets import Offsets, TopicPartition
from bridge.pipelines.operations import surroundings
from bridge.pipelines.operations.surroundings import Found, Outcome
from bridge.pipelines.runtime.executors import check_executors
from bridge.pipelines.runtime.preflight import (
    ingest_table,
    open_ingested_table,
    published_table,
    refuse_partitions,
)
from bridge.pipelines.runtime.retention_warnings import TopicRetention, log_retention_warnings
from bridge.pipelines.runtime.storage_checks import check_storage_locations

_REQUEST_BYTES = ("max.request.size", "message.max.bytes")
"""The names of the producer's limit, Java's and librdkafka's."""


class Replicas(NamedTuple):
    """The fewest that a partition of a topic has."""

    assigned: int
    in_sync: int


def policy(topic: Topic, name: str, cleanup: str, semantics: Collection[str] = ()) -> Found:
    """A `cleanup.policy` with which Kafka removes records that a table needs, by the keys of `delta` that need records
    before the last one of a key."""
    policies = [word.strip() for word in cleanup.split(",")]
    compacts = "compact" in policies
    if semantics:
        if compacts:
            yield (
                Outcome.WARNING,
                f"'{name}' is compacted (cleanup.policy={cleanup}): Kafka removes all records of a key but the last "
                f"one, and `delta.{min(semantics)}` needs the others. Set cleanup.policy=delete",
            )
    elif topic.is_upsert and (not compacts or "delete" in policies):
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
    waits_for_all = topic.properties.get("acks", "all") in ("all", "-1")  # else Kafka does not count replicas
    needed = int(settings.get("min.insync.replicas", "1")) if waits_for_all else 0
    assigned, in_sync = replicas
    if assigned < needed:
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


_TIMEOUT = 10.0
_LONGEST = 300
"""Of the text of an error that is not the bridge's."""
_COMMITS = 20
"""How many of the newest commits are looked at."""
_LITTLE, _TOO_LITTLE = 0.05, 0.005
"""Parts of a disk that are free."""
_SETTINGS = ("cleanup.policy", "min.insync.replicas", "max.message.bytes")


@dataclass(frozen=True)
class Finding:
    """One thing that was tried."""

    what: str
    outcome: Outcome
    text: str
    """What there is, or what will happen and what to do."""

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, JSON-ready."""
        return {**asdict(self), "outcome": self.outcome.value}


def examine(spark: SparkSession, definition: Definition, *, sends: bool) -> list[Finding]:
    """Try everything, in the order in which a run would meet it; a publish `sends`. Where one thing fails, what needs
    it is left out."""
    doctor = _Doctor(spark, definition, sends)
    parts: list[tuple[str, Callable[[], Found]]] = [
        ("brokers", doctor.brokers),
        ("topics", doctor.topics),
        ("settings of topics", doctor.settings),
        ("rights", doctor.rights),
        ("clocks", doctor.clocks),
        ("registry", partial(surroundings.registries, definition)),
        ("transactions", doctor.transactions),
        ("places", doctor.places),
        ("table", doctor.open),
        ("writers of the table", doctor.writers),
        ("log store", partial(surroundings.log_store, spark, definition)),
        ("monitoring", partial(surroundings.monitoring, definition)),
        ("suite", partial(surroundings.quality, definition)),
        ("other runs", partial(surroundings.lease, spark, definition, sends=sends)),
        ("progress", doctor.progress),
        ("retention", doctor.retention),
        ("executors", doctor.executors),
        ("memory", partial(surroundings.memory, spark)),
        ("disk", doctor.disk),
    ]
    findings = []
    for what, part in parts:
        try:
            findings += [Finding(what, outcome, text) for outcome, text in part()]
        except BridgeError as error:
            findings.append(Finding(what, Outcome.FAILS, str(error)))
        except Exception as error:  # what the doctor does not know must not hide what it has found
            findings.append(Finding(what, Outcome.FAILS, f"{type(error).__name__}: {error}"[:_LONGEST]))
    return findings


class _Doctor:
    def __init__(self, spark: SparkSession, definition: Definition, sends: bool) -> None:
        self._spark, self._definition, self._sends = spark, definition, sends
        self._there: dict[str, Replicas] = {}
        """The replicas of each topic that exists."""
        self._table: Table | None = None
        self._opens = False
        """Whether a run opens the table, or creates it."""

    def brokers(self) -> Found:
        addresses = AdminSession(self._definition.topic.properties, _TIMEOUT).brokers()
        yield Outcome.FINE, ", ".join(f"{host}:{port}" for host, port in addresses)
        yield from surroundings.version(self._definition, sends=self._sends, timeout=_TIMEOUT)

    def topics(self) -> Found:
        topic = admin.resolve(self._definition.topic, timeout=_TIMEOUT)
        session = AdminSession(topic.properties, _TIMEOUT)
        there = [name for name in topic.names if session.topic_exists(name)]
        begins: dict[TopicPartition, int] = {}
        for name, described in session.describe_topics(there).items() if there else ():
            self._there[name] = Replicas(
                min((len(p.replicas) for p in described.partitions), default=0),
                min((len(p.isr) for p in described.partitions), default=0),
            )
            begins |= {(name, number): 0 for number in range(len(described.partitions))}
            yield Outcome.FINE, f"'{name}' has {len(described.partitions)} partitions"
        for name in sorted(set(topic.names) - set(there)):
            outcome = Outcome.WARNING if self._sends else Outcome.FAILS
            yield outcome, f"'{name}' does not exist; `bridge topics FILE --create` creates it"
        if not self._sends:
            refuse_partitions(self._definition, Offsets(begins))

    def settings(self) -> Found:
        topic = self._definition.topic
        if not self._there:
            return
        try:
            by_name = admin.topic_configs(topic, self._there, _SETTINGS, timeout=_TIMEOUT)
        except KafkaError as error:  # no run needs this right
            yield Outcome.WARNING, f"they are not known, the login needs DESCRIBE_CONFIGS: {error}"
            return
        needs_all = self._definition.delta.needs_all_records
        for name, replicas in self._there.items():
            settings = by_name.get(name, {})
            problems = [
                *policy(topic, name, settings.get("cleanup.policy", ""), needs_all),
                *(sending(topic, name, replicas, settings) if self._sends else ()),
            ]
            shown = ", ".join(f"{key}={value}" for key, value in settings.items())
            yield from problems or [(Outcome.FINE, f"'{name}': {shown}")]

    def rights(self) -> Found:
        if not self._there:
            return
        missing = missing_rights(self._definition.topic, self._there, sends=self._sends, timeout=_TIMEOUT)
        for right in missing:
            yield Outcome.FAILS, f"the login has no {right}: give it this ACL"
        if not missing:
            yield Outcome.FINE, "the login may " + ("write" if self._sends else "read")

    def clocks(self) -> Found:
        if self._there:
            yield from surroundings.clock(self._definition, list(self._there), timeout=_TIMEOUT)

    def transactions(self) -> Found:
        if self._sends:
            yield from surroundings.transactions(self._definition, timeout=_TIMEOUT)

    def places(self) -> Found:
        check_storage_locations(self._spark, self._definition)
        yield Outcome.FINE, "table, checkpoint, quarantine and report do not overlap"

    def open(self) -> Found:
        target = self._definition.delta
        if self._sends:
            if not exists(self._spark, target):
                yield Outcome.FAILS, f"{target} does not exist: run its ingest first, or correct `delta`"
                return
            self._table = published_table(self._spark, self._definition)
        else:
            self._table = ingest_table(self._spark, self._definition, changes=False)
        self._opens = True
        if self._table is None:
            yield Outcome.FINE, f"{target} does not exist yet; the first run creates it"
            return
        yield Outcome.FINE, f"{self._table} is at version {change_feed.latest_version(self._table)}"

    def writers(self) -> Found:
        if self._table is None:
            return
        commits = list(islice(newest_commits(self._spark, self._definition.delta), _COMMITS))
        others = [
            commit
            for commit in commits
            if commit["operation"] not in (*NO_ROWS, *OTHER_NO_ROWS)
            and IngestProgress.from_json(commit["userMetadata"]) is None
        ]
        if others and not self._sends:
            yield (
                Outcome.WARNING,
                f"{len(others)} of the last {len(commits)} commits are of other writers, the newest is version "
                f"{others[0]['version']} ({others[0]['operation']}): rows that they change are not those of the topic "
                "any more. `bridge verify` names them",
            )
        else:
            yield Outcome.FINE, f"the last {len(commits)} commits are known"

    def progress(self) -> Found:
        if not self._opens or not self._there:
            return
        if self._sends:
            if self._table is not None:
                yield self._publish_progress(self._table)
            return
        topic = admin.resolve(self._definition.topic, timeout=_TIMEOUT)
        state = admin.describe(topic, timeout=_TIMEOUT)
        admin.end_offsets(topic, state, timeout=_TIMEOUT)
        found = open_ingested_table(self._table, self._definition) if self._table is not None else None
        if found is None:
            start = admin.start_offsets(topic, state, timeout=_TIMEOUT)
            yield Outcome.FINE, f"no batch yet; {start.lag(state.end):,} records are pending"
            return
        progress = found[0]
        check_offsets_available(progress.offsets, state, progress.topic_ids)
        yield Outcome.FINE, f"batch {progress.batch}; {progress.offsets.lag(state.end):,} records are pending"

    def _publish_progress(self, table: Table) -> tuple[Outcome, str]:
        published = PublishLog.of(self._spark, self._definition).last()
        if published is None:
            start = self._definition.publish.start
            if start.mode == "timestamp":
                change_feed.version_at(table, start.value or "")
            return Outcome.FINE, "nothing is published yet"
        change_feed.check_same(table, published.table_id)
        newest = change_feed.latest_version(table)
        if published.version < newest:
            first = published.version + 1
            change_feed.check_feed(table, first, newest, published.table_id, newest=newest)
        return (
            Outcome.FINE,
            f"published up to version {published.version}; {newest - published.version:,} are pending",
        )

    def retention(self) -> Found:
        if self._table is None:
            return
        warnings = log_retention_warnings(self._table, lags(self._table, FeedConsumers(self._table).all()))
        found = None if self._sends else open_ingested_table(self._table, self._definition)
        if found is not None and self._there:
            topic = admin.resolve(self._definition.topic)
            end = admin.describe(topic, timeout=_TIMEOUT).end
            warnings += filter(None, [TopicRetention(topic, self._table).warning(found[0].offsets, end)])
        yield from ((Outcome.WARNING, warning) for warning in warnings)
        if not warnings:
            yield Outcome.FINE, "no reader nears a retention time"

    def executors(self) -> Found:
        check_executors(self._spark, self._definition, sends=self._sends)
        yield Outcome.FINE, backend_of(self._spark).master

    def disk(self) -> Found:
        local = (backend_of(self._spark).setting("spark.local.dir") or "/tmp").split(",")
        path = self._definition.delta.path
        for place in dict.fromkeys([*local, *([path] if path and "://" not in path else [])]):
            folder = next((p for p in (Path(place), *Path(place).parents) if p.exists()), Path("/"))
            usage = shutil.disk_usage(folder)
            free = usage.free / usage.total
            text = f"{place}: {usage.free >> 30:,} GiB of {usage.total >> 30:,} are free"
            if free < _TOO_LITTLE:
                yield Outcome.FAILS, f"{text}: the next batch may not fit. Make room"
            else:
                yield (Outcome.WARNING if free < _LITTLE else Outcome.FINE), text
