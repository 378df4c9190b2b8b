"""The resolved definition of a pipeline: all options are checked and typed, and all defaults are applied.

`config` builds these values from a pipeline file. They are frozen and comparable by value; secrets are masked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from bridge.history_columns import AppendHistory, History
from bridge.metrics import RunName
from bridge.metrics.monitoring import NOWHERE, Monitoring
from bridge.offsets import Offsets
from bridge.schema import ColumnRule, ComputedColumn, RowConstraint, RowType, TableSchema


class BadRecords(str, Enum):
    """`ingest.bad-records`: how bad records are handled."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    SKIP = "skip"


class OnFailure(str, Enum):
    """`quality.on-failure`: what a failed check does."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    WARN = "warn"


class GateAction(str, Enum):
    """`quality.gate`: how rows of a batch that break the rules of the suite are handled."""

    WARN = "warn"
    QUARANTINE = "quarantine"
    FAIL = "fail"


class Truncate(str, Enum):
    """`delta.truncate`: what a record does that deletes all rows."""

    APPLY = "apply"
    REFUSE = "refuse"
    IGNORE = "ignore"


class Engine(str, Enum):
    """`merge.engine`: what executes the MERGE of an ingest."""

    AUTO = "auto"
    SPARK = "spark"
    DRIVER = "driver"


class Reader(str, Enum):
    """`ingest.reader`: what reads the topic for an ingest."""

    AUTO = "auto"
    CONSUMER = "consumer"
    SPARK = "spark"


class Encoder(str, Enum):
    """`publish.encoder`: what makes documents of rows; AUTO is the sending tasks, where the bytes are the same."""

    AUTO = "auto"
    SPARK = "spark"


class DeliveryGuarantee(str, Enum):
    """`sink.delivery-guarantee`, as in Flink."""

    NONE = "none"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@dataclass(frozen=True)
class FormatSpec:
    """A format and its options: keys without the prefix of the format (`ignore-parse-errors`) and typed values."""

    name: str
    options: Mapping[str, Any]
    row: RowType
    """The fields of the document in its order, without `key.fields-prefix`."""
    columns: tuple[str, ...]
    """The column of the table for each field of `row`, by position."""
    metadata: RowType = field(default_factory=lambda: RowType(()))
    """The keys (`source.timestamp`) and types of the format's metadata for which the table has columns. Insert-only
    formats have none."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Fields that every message of a CDC format in JSON has after its own ones, such as the table's id in Flink CDC."""


@dataclass(frozen=True)
class Startup:
    """`scan.startup.mode` with its companion: `offsets` for specific-offsets, `timestamp_ms` for timestamp."""

    mode: str = "earliest-offset"
    offsets: Offsets | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class Bounded:
    """`scan.bounded.mode` with its companion; the end is exclusive. `unbounded` has no companion."""

    mode: str = "unbounded"
    offsets: Offsets | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class Sink:
    """The `sink.*` options. Without a buffer, `buffer_rows` and `buffer_interval_ms` are both 0."""

    delivery_guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE
    buffer_rows: int = 0
    buffer_interval_ms: int = 0
    parallelism: int | None = None
    partitioner: str = "default"
    """`default`, `fixed`, `round-robin`, or the `module:Class` of a `partitioners.Partitioner`."""
    transactional_id_prefix: str | None = None
    """Prefix of the transactional ids; not None with exactly-once."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of every record in addition to those of the row (`sink.add-tableId-to-header-enabled`)."""


@dataclass(frozen=True)
class TopicCreation:
    """`topic.create`: the configuration with which a publish creates a missing topic; None is the broker's default."""

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
    """The name of the table in the DDL."""
    pattern: str | None = None
    """`topic-pattern`, which must match complete names; `names` is empty until the topics are looked up."""
    idle_timeout_ms: int = 0
    """`scan.watermark.idle-timeout`: time without records after which a partition is idle; 0 disables it."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options in WITH with masked secrets, for `validate`."""
    record_key: tuple[str, ...] = ()
    """The PRIMARY KEY of the DDL under `delta.history: append`, where that of `schema` is empty: a record still has it,
    but each of its changes is a row."""

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that name the row of the source which a record is about; empty where nothing does."""
        return self.schema.primary_key or self.record_key

    @property
    def title(self) -> str:
        """The name of the topic in messages: its names, or its pattern."""
        return self.pattern or ", ".join(self.names)

    @property
    def is_upsert(self) -> bool:
        """True if the key of a record identifies its row and a null value deletes the row."""
        return self.connector == "upsert-kafka"

    @property
    def appends(self) -> bool:
        """True if the table has no PRIMARY KEY, so that every change becomes a row."""
        return not self.schema.primary_key

    @property
    def group(self) -> str:
        """The consumer group to which the progress is committed (Flink: `properties.group.id`)."""
        return self.properties.get("group.id") or f"KafkaSource-{self.table}"

    @property
    def bootstrap_servers(self) -> str:
        return self.properties["bootstrap.servers"]


@dataclass(frozen=True)
class DeltaTarget:
    """The location of the table: exactly one of `path` and `table` is set."""

    path: str | None = None
    table: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    """Table properties that the bridge sets when it creates the table."""
    merge_schema: bool = False
    """`delta.merge-schema`: an ingest adds columns of the DDL that are missing in the table, and widens types."""
    cluster_by: tuple[str, ...] = ()
    """`delta.cluster-by`: the clustering columns of the table; if empty, the clustering is not changed."""
    merge_columns: tuple[str, ...] = ()
    """`delta.merge-columns`: the columns of this pipeline in a table of several; empty where the table is its own."""
    sequence_by: tuple[str, ...] = ()
    """`delta.sequence-by`: the columns that order the changes of a key; empty for the order of the records."""
    delete_memory_seconds: float = 604_800.0
    """`delta.delete-memory`: how long the deletion of a key is remembered where `sequence_by` orders changes."""
    apply_as_delete: ComputedColumn | None = None
    """`delta.apply-as-delete`: the condition under which a change that sets a row deletes it."""
    ignore_nulls: tuple[str, ...] = ()
    """`delta.ignore-null-updates`: the columns whose values a row keeps where a change that sets it has NULL."""
    sequence_metadata: Mapping[str, str] = field(default_factory=dict)
    """The METADATA keys of those columns of `sequence_by` that have one."""
    history: History | None = None
    """`delta.history`: None where the table has one row for each key; else `sequence_by` is one column."""
    soft_delete: str | None = None
    """`delta.soft-delete`: the column with the time of the deletion; a row that has one is deleted."""
    truncate: Truncate = Truncate.REFUSE
    """`delta.truncate`: what a record does that deletes all rows."""
    apply_as_truncate: ComputedColumn | None = None
    """`delta.apply-as-truncate`: the condition under which a change that sets a row is such a record."""
    first_row: bool = False
    """`delta.first-row`: the first change of a key sets its row, and no later one counts."""
    ignore_delete: bool = False
    """`delta.ignore-delete`: deletions have no effect."""
    update_columns: str | None = None
    """`delta.update-columns`: the column that names those which a change sets; a row keeps the others."""
    ignores_all_nulls: bool = False
    """Whether `ignore_nulls` are all columns that can be, also ones that the DDL gets later."""
    append_history: AppendHistory | None = None
    """`delta.history: append`: its columns are among those of `Topic.schema`, which has no PRIMARY KEY then."""
    aggregate: Mapping[str, ColumnRule] = field(default_factory=dict)
    """`delta.aggregate`: the columns whose values are combined with those of the row, in the order of the DDL."""
    owner: str = ""
    """The pipeline whose columns `merge_columns` are, where what a pipeline file says of changes is recorded."""

    @property
    def history_columns(self) -> tuple[str, ...]:
        """The columns of `delta.history-columns`; none where the table is no history."""
        found = self.history or self.append_history
        return found.columns if found else ()

    @property
    def change_semantics(self) -> dict[str, str]:
        """What says how the changes of a topic become rows, where it is not the default; by the keys of `delta`."""
        keys = self.sequence_metadata
        order = (f"{n} METADATA FROM '{keys[n]}'" if n in keys else n for n in self.sequence_by)
        found = {"sequence-by": ", ".join(order)} if self.sequence_by else {}
        deletes, truncates = self.apply_as_delete, self.apply_as_truncate
        found |= {} if deletes is None else {"apply-as-delete": deletes.expression}
        ignored = "true" if self.ignores_all_nulls else ", ".join(self.ignore_nulls)
        found |= {"ignore-null-updates": ignored} if self.ignore_nulls else {}
        if (history := self.history or self.append_history) is not None:
            kind = "append" if self.history is None else "bitemporal" if self.history.system_to else "scd2"
            found["history"] = kind
            found["history-columns"] = ", ".join(history.columns)
        found |= {} if self.soft_delete is None else {"soft-delete": self.soft_delete}
        found |= {} if self.truncate is Truncate.REFUSE else {"truncate": self.truncate.value}
        found |= {} if truncates is None else {"apply-as-truncate": truncates.expression}
        found |= {"first-row": "true"} if self.first_row else {}
        found |= {"ignore-delete": "true"} if self.ignore_delete else {}
        found |= {} if self.update_columns is None else {"update-columns": self.update_columns}
        rules = ", ".join(f"{name}: {rule.value}" for name, rule in self.aggregate.items())
        return found | ({"aggregate": rules} if rules else {})

    @property
    def needs_all_records(self) -> frozenset[str]:
        """The keys of `change_semantics` under which records of a key count that others have followed."""
        return frozenset(self.change_semantics.keys() - {"apply-as-delete", "soft-delete"})

    def row_key(self, key: Sequence[str]) -> tuple[str, ...]:
        """What identifies a row, where `key` is that of the DDL, or of `Topic.schema`."""
        if self.append_history is not None:
            return self.append_history.place
        return (*key, *self.history.of_row) if self.history and key else tuple(key)

    def __str__(self) -> str:
        return self.table or str(self.path)


@dataclass(frozen=True)
class Run:
    """`run`: the location of the working state, the trigger of batches, and the bound of a step, 0 for none."""

    checkpoint: str
    """A folder or URI; "" where there is none, as `state` is a table."""
    trigger_seconds: float | None = None
    """None is `available-now`: process all available data, then stop."""
    max_offsets_per_batch: int = 5_000_000
    step_timeout_seconds: float = 600.0
    monitoring: Monitoring = NOWHERE
    state: DeltaTarget | None = None
    """`run.state`: the table of leases, publish logs, registrations and partition counts; None: `checkpoint` has
    them."""

    @property
    def state_key(self) -> str:
        """The key that says where the state is."""
        return "run.checkpoint" if self.state is None else "run.state"


@dataclass(frozen=True)
class PublishStart:
    """`publish.start`: snapshot | latest | version:N | timestamp:ISO; `value` is N or the timestamp."""

    mode: str = "snapshot"
    value: str | None = None


@dataclass(frozen=True)
class Publish:
    """`publish`: where the first run starts, and how changes are sent."""

    start: PublishStart = field(default_factory=PublishStart)
    snapshot_chunk_rows: int = 4_000_000
    """Approximate number of rows of a snapshot that are sent before progress is recorded."""
    net_changes: bool = False
    """One record per key and publish range instead of one per key and table version."""
    pair: bool = False
    """A CDC format encodes an update as a delete and a create message, as in Flink, instead of as one message."""
    current_rows: bool = False
    """`publish.history: current`: of a history the rows that are valid now, and no others."""
    carry: bool = False
    """Columns of the table that are not in the DDL are added to the value documents."""
    encoder: Encoder = Encoder.AUTO
    transaction_rows: int = 200_000
    """Maximum number of records per transaction (exactly-once), up to the size of an Arrow batch more."""


@dataclass(frozen=True)
class MergeSettings:
    """`merge`: the merge engine, and the limits in bytes up to which `auto` selects delta-rs."""

    engine: Engine = Engine.AUTO
    max_batch_bytes: int = 256 << 20
    max_touched_bytes: int = 1 << 30


@dataclass(frozen=True)
class Maintenance:
    """`maintenance`: the maintenance of the table, and its interval between the batches of an ingest."""

    every_seconds: float = 86_400.0
    optimize: bool = True
    vacuum: bool = True
    retain_seconds: float | None = None
    """None is delta.deletedFileRetentionDuration of the table."""


@dataclass(frozen=True)
class Gate:
    """`quality.gate`: the suite whose rules the rows of a batch must satisfy before it is written or sent."""

    action: GateAction
    suite: str
    text: str = field(repr=False)
    """The content of the suite when the pipeline file was loaded; a run applies it to all its batches."""
    is_dedicated: bool = False
    """True for `quality.gate-suite`, all of whose rules must be supported by gates."""


@dataclass(frozen=True)
class Quality:
    """`quality`: the suite, the table of results, the effect of a failure, the report and the gate."""

    suite: str
    results: DeltaTarget
    """The Delta table to which every check appends its results."""
    on_failure: OnFailure = OnFailure.FAIL
    report: str | None = None
    """A path, or a URI on an object store."""
    gate: Gate | None = None


@dataclass(frozen=True)
class Definition:
    """One pipeline. `base` is the folder to which paths in the pipeline file are relative."""

    name: str
    base: str
    topic: Topic
    delta: DeltaTarget
    run: Run
    bad_records: BadRecords = BadRecords.FAIL
    quarantine: DeltaTarget | None = None
    """The quarantine; not None with `bad-records: quarantine` or `quality.gate: quarantine`."""
    base_is_existing: bool = False
    """`ingest.base: existing`: the table already contains the changes before the start position."""
    reader: Reader = Reader.AUTO
    merge: MergeSettings = field(default_factory=MergeSettings)
    publish: Publish = field(default_factory=Publish)
    quality: Quality | None = None
    maintenance: Maintenance | None = None
    """None disables the maintenance of the table."""
    peek_hides: tuple[str, ...] = ()
    """`peek.hide`: fields whose values `bridge peek` does not show; "*" hides all."""
    warnings: tuple[str, ...] = ()
    """Warnings, for example of deprecated options and options without effect."""
    constraints: tuple[RowConstraint, ...] = ()
    """What the open table asks of each row, for those who decode records into it (`unfit_rows.with_constraints`)."""

    def run_name(self, verb: str) -> RunName:
        """What a run of `verb` is called where it is watched."""
        return RunName(self.name, verb, self.topic.title)

    def with_metrics(self, target: str | None) -> Definition:
        """The definition with `--metrics` in place of its `run.metrics`; as it is without one."""
        return replace(self, run=replace(self.run, monitoring=self.run.monitoring.with_metrics(target)))

    @property
    def primary_key(self) -> tuple[str, ...]:
        return self.topic.schema.primary_key

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns that identify a row of the table: those of the PRIMARY KEY and, in a history, the starts. Or the
        place of the change, where each is a row."""
        return self.delta.row_key(self.primary_key)

    @property
    def kept_columns(self) -> tuple[str, ...]:
        """The columns whose values a row may keep where a change has others, or none: by `ignore-null-updates`,
        `update-columns` and `aggregate`."""
        by = self.delta.update_columns
        if by is None:
            return (*self.delta.ignore_nulls, *self.delta.aggregate)
        names = (column.name for column in self.topic.schema.physical)
        return tuple(name for name in names if name not in (*self.primary_key, by))

    @property
    def keeps_by(self) -> str:
        """The key of `delta` by which there are `kept_columns`, for messages."""
        found = self.delta.change_semantics
        return next(k for k in ("update-columns", "aggregate", "ignore-null-updates") if k in found)

    @property
    def gate(self) -> Gate | None:
        """The gate of each batch; None if `quality.gate` is off."""
        return self.quality.gate if self.quality else None

    @property
    def quarantines_rows(self) -> bool:
        """True if the gate quarantines rows that break its rules (`quality.gate: quarantine`)."""
        return self.gate is not None and self.gate.action is GateAction.QUARANTINE

    @property
    def leaves_out_bad(self) -> bool:
        """True where an ingest leaves out bad records: `bad-records: skip` or `quarantine`, or `gate: quarantine`."""
        return self.bad_records is not BadRecords.FAIL or self.quarantines_rows

    @property
    def compacts_first(self) -> bool:
        """True where only the last record of each key is decoded, and superseded values are not.
        It needs a key that identifies the row (upsert topics), and that no earlier record of the key may count."""
        counts_all = self.leaves_out_bad or self.delta.change_semantics.keys() - {"apply-as-delete"}
        return self.topic.is_upsert and not counts_all
