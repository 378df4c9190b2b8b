"""A pipeline, resolved: every option checked, every default filled in, nothing left as text.

`config` builds these values from a pipeline file; everything above reads only them. All are frozen and
comparable by value. Secrets are `secret.Secret`, whose text forms are masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.enums import BadRecords, DeliveryGuarantee, Engine, GateAction, OnFailure
from bridge.offsets import Offsets
from bridge.schema import RowType, TableSchema

__all__ = [
    "BadRecords",
    "Bounded",
    "Definition",
    "DeliveryGuarantee",
    "DeltaTarget",
    "Engine",
    "FormatSpec",
    "Gate",
    "GateAction",
    "Maintenance",
    "MergeSettings",
    "OnFailure",
    "Publish",
    "PublishStart",
    "Quality",
    "Run",
    "Sink",
    "Startup",
    "Topic",
    "TopicCreation",
]


@dataclass(frozen=True)
class FormatSpec:
    """A format and its options: keys without the format prefix (`ignore-parse-errors`), values typed."""

    name: str
    options: Mapping[str, Any]
    row: RowType
    """The shape of the document: projected fields in document order, key prefix already stripped."""
    columns: tuple[str, ...]
    """The table column that each field of `row` fills, position by position."""
    metadata: RowType = field(default_factory=lambda: RowType(()))
    """The format's own metadata that the table has columns for, by the format's keys (`source.timestamp`) and
    types. Documents of insert-only formats carry none."""


@dataclass(frozen=True)
class Startup:
    """`scan.startup.mode` with its companion: `offsets` for specific-offsets, `timestamp_ms` for timestamp."""

    mode: str = "earliest-offset"
    offsets: Offsets | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class Bounded:
    """`scan.bounded.mode` with its companion; the end is exclusive. None of it when mode is `unbounded`."""

    mode: str = "unbounded"
    offsets: Offsets | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class Sink:
    """The `sink.*` options. `buffer_rows` 0 means unbuffered; `buffer_interval_ms` is 0 exactly then, too."""

    delivery_guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE
    buffer_rows: int = 0
    buffer_interval_ms: int = 0
    parallelism: int | None = None
    partitioner: str = "default"
    """`default`, `fixed`, `round-robin`, or the `module:Class` of a `partitioners.Partitioner`."""
    transactional_id_prefix: str | None = None
    """What transactional ids begin with; there with exactly-once."""
    headers: tuple[tuple[str, str], ...] = ()
    """What every record has in its headers beside the row's own, in UTF-8 (`sink.add-tableId-to-header-enabled`)."""


@dataclass(frozen=True)
class TopicCreation:
    """`topic.create`: what a publish creates where a topic is absent; None leaves it to the broker's defaults."""

    partitions: int | None = None
    replication: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Topic:
    """The Kafka side of a pipeline."""

    connector: str
    names: tuple[str, ...]
    schema: TableSchema
    key: FormatSpec | None
    value: FormatSpec
    properties: Mapping[str, str]
    """Kafka client properties, Java names, prefix `properties.` removed; secret values are `Secret`."""
    startup: Startup = field(default_factory=Startup)
    bounded: Bounded = field(default_factory=Bounded)
    sink: Sink = field(default_factory=Sink)
    create: TopicCreation | None = None
    parallelism: int | None = None
    discovery_interval_ms: int = 300_000
    table: str = "t"
    """The table's name in the DDL."""
    pattern: str | None = None
    """`topic-pattern`: names are those that match it as a whole; `names` is empty until they are looked up."""
    idle_timeout_ms: int = 0
    """`scan.watermark.idle-timeout`: after how long without records a partition holds no watermark back; 0: never."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The WITH options as given (secrets masked), for `validate`."""

    @property
    def title(self) -> str:
        """What people call it: its topics, or the pattern that finds them."""
        return self.pattern or ", ".join(self.names)

    @property
    def is_upsert(self) -> bool:
        """True when a record's key is its row's identity and a null value deletes it."""
        return self.connector == "upsert-kafka"

    @property
    def appends(self) -> bool:
        """True when rows have no identity: every change becomes a row of its own."""
        return not self.schema.primary_key

    @property
    def group(self) -> str:
        """The consumer group whose offsets show how far reading has got (Flink: `properties.group.id`)."""
        return self.properties.get("group.id") or f"KafkaSource-{self.table}"

    @property
    def bootstrap_servers(self) -> str:
        return self.properties["bootstrap.servers"]


@dataclass(frozen=True)
class DeltaTarget:
    """Where the table is: exactly one of `path` and `table` is set."""

    path: str | None = None
    table: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    """Table properties used when the bridge creates the table."""
    merge_schema: bool = False
    """`delta.merge-schema`: an ingest adds columns that the DDL has and the table lacks, and widens types."""
    cluster_by: tuple[str, ...] = ()
    """`delta.cluster-by`: columns of the definition that the table is clustered by; none: as it is."""

    def __str__(self) -> str:
        return self.table or str(self.path)


@dataclass(frozen=True)
class Run:
    """`run`: where Spark keeps its working state, and when batches happen."""

    checkpoint: str
    trigger_seconds: float | None = None
    """None is `available-now`: take what is there, then end."""
    max_offsets_per_batch: int = 5_000_000
    """A batch is what is new, and at most this."""


@dataclass(frozen=True)
class PublishStart:
    """`publish.start`: snapshot | latest | version:N | timestamp:ISO; `value` is N or the timestamp."""

    mode: str = "snapshot"
    value: str | None = None


@dataclass(frozen=True)
class Publish:
    """`publish`: where the change feed is taken up the first time."""

    start: PublishStart = field(default_factory=PublishStart)
    snapshot_chunk_rows: int = 4_000_000
    """About how many rows of a snapshot are sent between two writings-down of progress."""
    net_changes: bool = False
    """One record per key and batch, not one per key and table version."""
    pair: bool = False
    """A CDC format writes an update as Flink does, as a delete and a create message, not as one."""
    carry: bool = False
    """Columns that the table has and the DDL does not are carried into the value documents."""
    transaction_rows: int = 200_000
    """How many records one transaction holds at most, give or take an Arrow batch; with exactly-once."""


@dataclass(frozen=True)
class MergeSettings:
    """`merge`: the engine of an ingest, and how much `auto` lets delta-rs take on in the driver, in bytes."""

    engine: Engine = Engine.AUTO
    max_batch_bytes: int = 256 << 20
    max_touched_bytes: int = 1 << 30


@dataclass(frozen=True)
class Maintenance:
    """`maintenance`: what is done for the table, and how often between an ingest's batches."""

    every_seconds: float = 86_400.0
    optimize: bool = True
    vacuum: bool = True
    retain_seconds: float | None = None
    """None is the table's own delta.deletedFileRetentionDuration."""


@dataclass(frozen=True)
class Gate:
    """`quality.gate`: the suite that each batch is judged by before it is written or sent."""

    action: GateAction
    suite: Path
    text: str = field(repr=False)
    """The suite as it was when the pipeline file was loaded: a run judges all its batches by the same."""
    is_dedicated: bool = False
    """`quality.gate-suite`: written for the gate, so all of it must be something that a gate can judge."""


@dataclass(frozen=True)
class Quality:
    """`quality`: the suite file, where results are kept, what a failure does, the report, what each batch must pass."""

    suite: Path
    results: DeltaTarget
    """The Delta table that every check adds its results to."""
    on_failure: OnFailure = OnFailure.FAIL
    report: Path | None = None
    gate: Gate | None = None


@dataclass(frozen=True)
class Definition:
    """One pipeline, whole. `base` is the folder that relative paths in the file were resolved against."""

    name: str
    base: Path
    topic: Topic
    delta: DeltaTarget
    run: Run
    bad_records: BadRecords = BadRecords.FAIL
    quarantine: DeltaTarget | None = None
    """Where bad records are kept; there under `bad-records: quarantine` and `quality.gate: quarantine`."""
    base_is_existing: bool = False
    """`ingest.base: existing`: the table already holds what the topic said before the start position."""
    merge: MergeSettings = field(default_factory=MergeSettings)
    publish: Publish = field(default_factory=Publish)
    quality: Quality | None = None
    maintenance: Maintenance | None = None
    """None: an ingest leaves the table's files as they are."""
    peek_hides: tuple[str, ...] = ()
    """`peek.hide`: fields whose values `bridge peek` does not show; "*" for all of them."""
    warnings: tuple[str, ...] = ()
    """What a user should know, though it is accepted (deprecated keys, risky choices)."""

    @property
    def primary_key(self) -> tuple[str, ...]:
        return self.topic.schema.primary_key

    @property
    def gate(self) -> Gate | None:
        """What each batch must pass; None where `quality.gate` is off."""
        return self.quality.gate if self.quality else None

    @property
    def quarantines_rows(self) -> bool:
        """True when rows that are not as expected are put aside one by one (`quality.gate: quarantine`)."""
        return self.gate is not None and self.gate.action is GateAction.QUARANTINE
