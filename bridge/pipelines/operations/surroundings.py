"""What a pipeline needs besides its topics and its table: a registry, brokers that keep transactions, time, memory.

Each function yields what it found and writes nothing; see `doctor`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path

from pyspark.sql import SparkSession

from bridge.backend import backend_of
from bridge.bridge_folders import lease_name
from bridge.config.paths import is_uri
from bridge.config.registry_settings import registry_settings
from bridge.definition import Definition, DeliveryGuarantee, FormatSpec
from bridge.delta.state_choice import state_of
from bridge.errors import KafkaError
from bridge.formats.avro.registry_client import registry_client
from bridge.kafka import admin
from bridge.kafka.admin import broker_version
from bridge.kafka.client import AdminSession
from bridge.kafka.transactions import TIMEOUT_MS
from bridge.lease_owner import LeaseOwner
from bridge.log_store import LOG_STORES
from bridge.metrics import lineage, otlp, prometheus
from bridge.quality import suite
from bridge.spark_versions import or_public

_DAY_MS, _HOUR_MS = 86_400_000, 3_600_000
_AHEAD_MS = 60_000
"""Clocks differ by less."""
_TRANSACTION_SETTINGS = (
    "transaction.max.timeout.ms",
    "transactional.id.expiration.ms",
    "offsets.retention.minutes",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
)
_OLDEST, _OLDEST_ONCE = (2, 8), (3, 3)
"""The oldest releases that are tested; docs/deploy.md names them."""
_LITTLE_MEMORY = 0.05
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""The file of the memory that a container may use (cgroup v2)."""


class Outcome(Enum):
    """What an examination found."""

    FINE = "fine"
    WARNING = "warning"
    FAILS = "fails"


Found = Iterator[tuple[Outcome, str]]


def version(definition: Definition, *, sends: bool, timeout: float) -> Found:
    """Which Kafka release the brokers are."""
    topic = definition.topic
    found = broker_version(topic.properties, timeout=timeout)
    once = sends and topic.sink.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE
    oldest = _OLDEST_ONCE if once else _OLDEST
    if found is None:
        yield (
            Outcome.WARNING,
            "the brokers do not tell which requests they take, so their version is not known",
        )
    elif found < oldest:
        yield (
            Outcome.WARNING,
            f"the brokers are older than Kafka {_dotted(oldest)}, the oldest one that "
            f"{'an exactly-once publish' if once else 'the bridge'} is tested with. Upgrade them",
        )
    else:
        yield Outcome.FINE, f"they take the requests of Kafka {_dotted(found)}"


def _dotted(release: tuple[int, int]) -> str:
    return f"{release[0]}.{release[1]}"


def registries(definition: Definition) -> Found:
    """The schema registry of each format that has one. Raises KafkaError where it does not answer."""
    topic = definition.topic
    for part, spec in (("key", topic.key), ("value", topic.value)):
        if spec is None or "url" not in spec.options:
            continue
        url, subject = spec.options["url"], _subject(definition, spec, part)
        client = registry_client(registry_settings(spec.options, f"{spec.name}."))
        known = client.schemas_of_subject(subject)
        yield Outcome.FINE, f"{url} has {len(known)} schemas of '{subject}'"


def _subject(definition: Definition, spec: FormatSpec, part: str) -> str:
    return str(spec.options.get("subject") or f"{definition.topic.names[0]}-{part}")


def transactions(definition: Definition, *, timeout: float) -> Found:
    """What brokers allow a publish that is exactly-once. Needs the right to describe the cluster's configuration."""
    topic = definition.topic
    if topic.sink.delivery_guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
        return
    session = AdminSession(topic.properties, timeout)
    try:
        known = {k: int(v) for k, v in session.broker_settings(_TRANSACTION_SETTINGS).items()}
    except KafkaError as error:  # no run needs this right
        yield Outcome.WARNING, f"the brokers' settings are not known: {error}"
        return
    problems = [*_timeouts(topic.properties, known), *_replicas(len(session.brokers()), known)]
    yield from problems or [(Outcome.FINE, ", ".join(f"{key}={value}" for key, value in known.items()))]


def _timeouts(properties: Mapping[str, str], known: Mapping[str, int]) -> Found:
    asked = int(properties.get("transaction.timeout.ms", TIMEOUT_MS))
    longest = known.get("transaction.max.timeout.ms", asked)
    if asked > longest:
        yield (
            Outcome.FAILS,
            f"'properties.transaction.timeout.ms' = {asked:,} is more than the brokers allow "
            f"(transaction.max.timeout.ms={longest}): they open no transaction. Lower it",
        )
    kept_ms = known.get("offsets.retention.minutes", 1 << 40) * 60_000
    if kept_ms < _DAY_MS:
        yield (
            Outcome.WARNING,
            f"Kafka forgets the progress of a publish that stops for {kept_ms // 60_000:,} minutes "
            "(offsets.retention.minutes): it then depends on its publish log. Raise it to a day or more",
        )
    expire_ms = known.get("transactional.id.expiration.ms", 1 << 60)
    if expire_ms < _HOUR_MS:
        yield (
            Outcome.WARNING,
            f"transactional ids expire after {expire_ms // 1000:,} s (transactional.id.expiration.ms): a process that "
            "was stopped for longer is not fenced by the run that took over. Raise it to a day or more",
        )


def _replicas(brokers: int, known: Mapping[str, int]) -> Found:
    for key in ("transaction.state.log.replication.factor", "transaction.state.log.min.isr"):
        if known.get(key, 0) > brokers:
            yield (
                Outcome.FAILS,
                f"{key}={known[key]}, and there are {brokers} brokers: none opens a transaction. Lower it, or "
                "add brokers",
            )


def clock(definition: Definition, topics: Sequence[str], *, timeout: float) -> Found:
    """Timestamps of records that are ahead of this machine's clock: of a producer's or of this one's."""
    newest = admin.newest_timestamp(definition.topic, topics, timeout=timeout)
    ahead_ms = 0 if newest is None else newest - round(time.time() * 1000)
    if ahead_ms > _AHEAD_MS:
        yield (
            Outcome.WARNING,
            f"the newest timestamp of a record is {ahead_ms // 1000:,} s ahead of this machine's clock: lags and "
            "watermarks are wrong by that. Look at the clocks of this machine and of the producers (NTP)",
        )
    else:
        yield Outcome.FINE, "no record is ahead of this machine's clock"


def lease(spark: SparkSession, definition: Definition, *, sends: bool) -> Found:
    """Whether another run is at work."""
    side = "publish" if sends else "ingest"
    owner = LeaseOwner.from_json(state_of(spark, definition).read(lease_name(side)))
    if owner is None or owner.released or owner.is_gone():
        yield Outcome.FINE, "no other run is at work"
    elif owner.is_running():
        yield (
            Outcome.WARNING,
            f"another run is at work, {owner}: a second one ends at once. Stop that one first",
        )
    else:
        yield (
            Outcome.WARNING,
            f"another run may be at work, {owner}: a second one watches it for three heartbeats",
        )


def log_store(spark: SparkSession, definition: Definition) -> Found:
    """Whether commits of several writers to a table on S3 exclude each other (ADR 062)."""
    path = definition.delta.path
    if path is None or not path.startswith(("s3://", "s3a://")):
        return
    key, ours = "spark.delta.logStore.s3a.impl", LOG_STORES["s3a"]
    used = backend_of(spark).setting(key)
    if used == ours:
        yield Outcome.FINE, f"{key}={used}: of several writers one commits a version"
    else:
        yield (
            Outcome.WARNING,
            f"{key} is {used or 'not set'}: two writers may commit the same version, and one commit is lost. Let one "
            f"writer alone write the table, or set it to {ours}",
        )


def memory(spark: SparkSession, limit: Path = CONTAINER_LIMIT) -> Found:
    """The driver's heap beside the memory of its machine or container, whose limit is in the file `limit`."""
    there = _memory(limit)
    heap = or_public(lambda: int(spark._jvm.Runtime.getRuntime().maxMemory()), lambda: 0)  # type: ignore[union-attr]
    if not there or not heap:
        return
    total, available = there
    text = f"the driver's heap may grow to {heap >> 20:,} MiB, and {total >> 20:,} MiB are there"
    if heap > total:
        yield Outcome.WARNING, f"{text}: the kernel may end it. Lower spark.driver.memory"
    elif available < _LITTLE_MEMORY * total:
        yield Outcome.WARNING, f"{text}, of which {available >> 20:,} MiB are free: end other processes"
    else:
        yield Outcome.FINE, text


def _memory(container: Path) -> tuple[int, int] | None:
    """Bytes of memory in all, and those that are available; of the container, if it has a limit. None outside of
    Linux."""
    try:
        lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
        known = {line[0]: int(line[1]) << 10 for line in lines}
        total, available = known["MemTotal:"], known["MemAvailable:"]
    except (OSError, LookupError, ValueError):
        return None
    try:
        limit = int(container.read_text())
    except (OSError, ValueError):
        return total, available
    return min(total, limit), min(available, limit)


def monitoring(definition: Definition) -> Found:
    """The libraries that show what a run does. Raises DefinitionError where one is missing."""
    wanted = definition.run.monitoring
    if wanted.metrics is not None:
        prometheus.check_installed("run.metrics")
        yield Outcome.FINE, "run.metrics: prometheus-client is there"
    if wanted.otlp is not None:
        otlp.check_installed()
        yield Outcome.FINE, "run.otlp: the SDK of OpenTelemetry is there"
    if wanted.lineage is not None:
        lineage.check_installed()
        yield Outcome.FINE, "run.lineage: openlineage-python is there"


def quality(definition: Definition) -> Found:
    """The suite. Raises DefinitionError for one that cannot be read."""
    found = definition.quality
    if found is None or is_uri(found.suite):
        return
    yield Outcome.FINE, f"{found.suite} has {len(suite.load(found.suite).expectations)} expectations"
