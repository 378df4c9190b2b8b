"""The model of the pipeline file: keys, types and legal values. It accesses no other files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from bridge.config import validators
from bridge.config.quality_section import QualitySection
from bridge.config.validators import TABLE_NAME, Properties, Section, TableLocation, kebab
from bridge.history_columns import AppendHistory, History
from bridge.metrics.alerts import check_alert
from bridge.metrics.lineage import check_lineage
from bridge.metrics.otlp import check_url


class CreateSection(Section):
    """How a publish creates missing topics."""

    partitions: Annotated[int, BeforeValidator(validators.digits_as_int)] | None = Field(
        default=None, gt=0, description="Number of partitions; default: num.partitions of the broker."
    )
    replication: Annotated[int, BeforeValidator(validators.digits_as_int)] | None = Field(
        default=None,
        gt=0,
        description="Replication factor; default: default.replication.factor of the broker.",
    )
    config: Properties = Field(
        default_factory=dict,
        description="Topic configuration. With upsert-kafka, cleanup.policy is compact unless it is set here.",
    )


class TopicSection(Section):
    """The topic: exactly one of `ddl` and `ddl_file`."""

    ddl: str | None = Field(default=None, description="Flink's CREATE TABLE ... WITH (...).")
    ddl_file: str | None = Field(
        default=None, alias="ddl_file", min_length=1, description="File that contains the DDL."
    )
    create: CreateSection | None = Field(
        default=None, description="Lets a publish create missing topics; {} uses the defaults."
    )

    @model_validator(mode="before")
    @classmethod
    def _both_spellings(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "ddl-file" not in values or "ddl_file" in values:
            return values
        return {"ddl_file" if key == "ddl-file" else key: value for key, value in values.items()}

    @model_validator(mode="after")
    def _one_ddl(self) -> TopicSection:
        if (self.ddl is None) == (self.ddl_file is None):
            raise ValueError("exactly one of ddl and ddl_file must be set")
        return self


class DeltaSection(Section):
    """The Delta table: exactly one of `path` and `table`."""

    path: str | None = Field(default=None, min_length=1, description="Folder or URI of the table.")
    table: str | None = Field(
        default=None,
        pattern=TABLE_NAME,
        description="Name of the table: [[catalog.]schema.]table.",
    )
    properties: Properties = Field(
        default_factory=dict, description="Table properties that the bridge sets when it creates the table."
    )
    merge_schema: bool = Field(
        default=False,
        description="Whether an ingest adds columns of the DDL that are missing in the table, and widens types.",
    )
    cluster_by: Annotated[list[str], AfterValidator(validators.check_cluster_columns)] = Field(
        default_factory=list,
        description="Clustering columns of the table (Delta's CLUSTER BY, at most 4). OPTIMIZE stores rows with "
        "similar values in the same files.",
    )

    merge_columns: Annotated[
        Literal["all"] | list[str] | None, BeforeValidator(validators.check_own_columns)
    ] = Field(
        default=None,
        description="Columns that this pipeline writes, while other pipelines write the table's other columns: all "
        "those of the DDL outside the PRIMARY KEY, as a list, or as the word all.",
    )
    sequence_by: Annotated[str | list[str], BeforeValidator(validators.check_sequence)] = Field(
        default="position",
        description="What orders the changes of a key: a column of the DDL, or a list of columns, the most "
        "significant first; position: the order of the records.",
    )
    delete_memory: Annotated[str, AfterValidator(validators.check_interval)] = Field(
        default="7 d",
        description="With sequence-by: how long the deletion of a key is remembered, so that an older change that "
        "comes later does not insert the row again.",
    )

    apply_as_delete: str | None = Field(
        default=None,
        description="Condition in Flink SQL, over columns of the record: a change that sets a row for which it is true "
        "deletes the row.",
    )

    ignore_null_updates: Annotated[bool | list[str], BeforeValidator(validators.check_ignored_nulls)] = Field(
        default=False,
        description="Whether a row keeps its value where a change that sets it has NULL: true for all columns outside "
        "the PRIMARY KEY, or a list of them.",
    )

    history: Literal["scd2", "bitemporal", "append"] | None = Field(
        default=None,
        description="scd2: the table keeps a row for each interval in which a key had the same values, by sequence-by. "
        "bitemporal: it also keeps what it knew before late changes. append: it keeps a row for each change.",
    )
    history_columns: list[str] | None = Field(
        default=None,
        description="With history: the columns that the table has beside those of the DDL. scd2: where a row begins, "
        f"where it ends, and whether it is the current one; default: {', '.join(History().columns)}. bitemporal: also "
        "when the table learnt the row and until when it knew it; default: "
        f"{', '.join(History.bitemporal().system_columns)}. append: the row "
        "kind of the change, its topic, partition and offset, and its number in the record; default: "
        f"{', '.join(AppendHistory().columns)}.",
    )

    soft_delete: str | None = Field(
        default=None,
        min_length=1,
        description="Column that the bridge adds to the table: a deletion sets it to the time of its record, and "
        "leaves the row. A later change that sets the row makes it NULL.",
    )

    truncate: Literal["apply", "refuse", "ignore"] = Field(
        default="refuse",
        description="What a record does that deletes all rows: apply (delete those of the records before it), refuse "
        "(stop the run) or ignore.",
    )
    apply_as_truncate: str | None = Field(
        default=None,
        description="Condition in Flink SQL, over columns of the record: a change that sets a row for which it is true "
        "is a truncate instead.",
    )
    first_row: bool = Field(
        default=False,
        description="Whether the first change of a key sets its row, and later ones have no effect (Paimon's merge "
        "engine first-row).",
    )
    ignore_delete: bool = Field(
        default=False,
        description="Whether deletions have no effect. With first-row they are bad records otherwise.",
    )

    update_columns: str | None = Field(
        default=None,
        min_length=1,
        description="Column of the record, ARRAY<STRING>, that names the columns which it sets: a row keeps its values "
        "in the others. NULL names all.",
    )
    aggregate: dict[str, str] = Field(
        default_factory=dict,
        description="Columns, each with what becomes of the value of a row and that of a change: first, min, max, sum, "
        "collect-set (of ARRAYs), or last, which is what other columns do. NULL never counts.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> DeltaSection:
        if (self.path is None) == (self.table is None):
            raise ValueError("exactly one of path and table must be set")
        if self.sequence_by == "position" and "delete_memory" in self.model_fields_set:
            raise ValueError(
                "delete-memory has no effect with sequence-by: position; set sequence-by, or remove it"
            )
        is_ordered = self.sequence_by != "position"
        if self.history_columns is not None:
            if self.history is None:
                raise ValueError("history-columns has no effect without history; set history, or remove it")
            validators.check_history_columns(self.history_columns, self.history)
        used = {"ignore-null-updates": bool(self.ignore_null_updates)}
        used |= {"soft-delete": self.soft_delete is not None, "truncate: apply": self.truncate == "apply"}
        used |= {"apply-as-truncate": self.apply_as_truncate is not None}
        used |= {"first-row": self.first_row, "ignore-delete": self.ignore_delete}
        used |= {"update-columns": self.update_columns is not None, "aggregate": bool(self.aggregate)}
        interval = self.history in ("scd2", "bitemporal")
        for key, is_used in {**used, f"history: {self.history}": interval}.items():
            if is_used and self.merge_columns:
                raise ValueError(f"{key} cannot be combined with merge-columns; remove one of them")
        used |= {"sequence-by": is_ordered, "apply-as-delete": self.apply_as_delete is not None}
        for key, is_used in {**used, "merge-columns": bool(self.merge_columns)}.items():
            if is_used and self.history == "append":
                raise ValueError(
                    f"{key} cannot be combined with history: append, which makes each change a row as it is; remove "
                    "one of them"
                )
        keeps = (
            "ignore-null-updates" if self.ignore_null_updates else self.update_columns and "update-columns"
        )
        if keeps and is_ordered:
            raise ValueError(
                f"{keeps} cannot be combined with sequence-by, as a late change may have a value that "
                "the row lacks; remove one of them"
            )
        if self.soft_delete is not None and is_ordered:
            raise ValueError(
                "soft-delete cannot be combined with sequence-by, as a late change may have the values that the "
                "deleted row had last; remove one of them"
            )
        return self


class RunSection(Section):
    """The trigger of batches and the location of the working state: at least one of `checkpoint` and `state`."""

    checkpoint: str | None = Field(
        default=None,
        min_length=1,
        description="Folder or URI for the working state of this pipeline; not shared with other pipelines. May be "
        "left out where state is set.",
    )
    state: Annotated[str, AfterValidator(validators.check_state)] | None = Field(
        default=None,
        description="Delta table for leases, publish logs, registrations and partition counts, shared by pipelines: "
        "its name in the catalog (schema.table), or a path or URI, with a slash. The bridge creates it.",
    )
    trigger: Annotated[str, AfterValidator(validators.check_trigger)] = Field(
        default="available-now",
        description="available-now (process all available data, then stop) or an interval: 10 s",
    )
    max_offsets_per_batch: Annotated[int, BeforeValidator(validators.digits_as_int)] = Field(
        default=5_000_000,
        gt=0,
        description="Maximum number of records that one batch reads from the topic.",
    )
    step_timeout: Annotated[str, AfterValidator(validators.check_step_timeout)] = Field(
        default="10 min",
        description="Maximum time of one step (read, merge, send ...); then the process ends with 5. 0 s is no bound.",
    )
    metrics: Annotated[str, AfterValidator(validators.check_metrics)] | None = Field(
        default=None,
        description="Where Prometheus finds the metrics: an address to listen at, HOST:PORT; a file whose name ends in "
        ".prom; or the URL of a push gateway.",
    )
    events: str | None = Field(
        default=None,
        min_length=1,
        description="Where the events of a run go, a JSON line each: stdout or a file.",
    )
    alert: Annotated[str, AfterValidator(check_alert)] | None = Field(
        default=None,
        description="The URL of a webhook that hears when a run or a check fails, records are bad, rows fail the gate "
        "or records are lost; Slack and Teams get messages of their own form.",
    )
    otlp: Annotated[str, AfterValidator(check_url)] | None = Field(
        default=None,
        description="The URL of a collector of OpenTelemetry, which gets metrics and traces by OTLP over HTTP.",
    )
    lineage: Annotated[str, AfterValidator(check_lineage)] | None = Field(
        default=None,
        min_length=1,
        description="Where the events of OpenLineage go: a file, a JSON line each, or the URL of a collector.",
    )

    @model_validator(mode="after")
    def _somewhere(self) -> RunSection:
        if self.checkpoint is None and self.state is None:
            raise ValueError(
                "checkpoint is missing; set it to a folder or URI, or state to a Delta table that keeps what would be "
                "there"
            )
        return self


class QuarantineSection(TableLocation):
    """The Delta table for bad records: exactly one of `path` and `table`."""


class IngestSection(Section):
    """Options of an ingest (topic to table)."""

    bad_records: Literal["fail", "quarantine", "skip"] = Field(
        default="fail",
        description="How bad records are handled: fail stops the run, quarantine writes them to a Delta table, skip "
        "counts and ignores them.",
    )
    quarantine: QuarantineSection | None = Field(
        default=None,
        description="Table for `bad-records: quarantine` and `quality.gate: quarantine`; default: the name or path of "
        "the table with the suffix `_quarantine`.",
    )
    base: Literal["empty", "existing"] = Field(
        default="empty",
        description="existing: the table already contains the changes before the start position.",
    )
    reader: Literal["auto", "consumer", "spark"] = Field(
        default="auto",
        description="What reads the topic. spark: Spark's Kafka source; consumer: Kafka consumers in Spark's tasks, "
        "which compact and decode a batch in one job; auto: consumer where it reads exactly as spark does, else spark.",
    )


class MergeSection(Section):
    """How an ingest merges batches into the table."""

    engine: Annotated[Literal["auto", "spark", "driver"], BeforeValidator(validators.check_engine)] = Field(
        default="auto",
        description="Merge engine. spark: MERGE on the executors; driver: in the driver, marks changed rows in "
        "deletion vectors and adds their new ones, or copies the files that a batch touches; auto: driver if the batch "
        "is within max-batch and max-touched and the driver supports the table, else spark.",
    )
    max_batch: Annotated[str, AfterValidator(validators.check_size)] = Field(
        default="256 mb",
        description="With auto: larger batches (size in memory, after compaction) are merged by spark. A batch that "
        "consumers read ends before it is larger.",
    )
    max_touched: Annotated[str, AfterValidator(validators.check_size)] = Field(
        default="1 gb",
        description="With auto: batches that touch more bytes of the table's files are merged by spark.",
    )

    @model_validator(mode="after")
    def _has_effect(self) -> MergeSection:
        used = {"auto": {"max_batch", "max_touched"}, "driver": {"max_batch"}, "spark": set[str]()}[
            self.engine
        ]
        if given := self.model_fields_set - {"engine"} - used:
            names = " and ".join(sorted(kebab(name) for name in given))
            raise ValueError(
                f"{names} has no effect with engine: {self.engine}; set engine: auto, or remove it"
            )
        return self


class PublishSection(Section):
    """Options of a publish (table to topic)."""

    start: Annotated[str, AfterValidator(validators.check_publish_start)] = Field(
        default="snapshot",
        description="Where the first run starts: snapshot, latest, version:N or timestamp:ISO.",
    )
    net_changes: bool = Field(
        default=False,
        description="true: one record per key and publish range, with the net change over its table versions; false: "
        "one per key and table version.",
    )
    update_messages: Literal["single", "pair"] = Field(
        default="single",
        description="How CDC formats encode an update: as a single message with the row before and after the update, "
        "or as in Flink as a pair of a delete and a create message.",
    )
    history: Literal["all", "current"] = Field(
        default="all",
        description="Which rows of a table with delta.history: scd2 are sent. all: each, by key and start; current: "
        "those that are valid now, by key.",
    )
    added_columns: Literal["ignore", "carry"] = Field(
        default="ignore",
        description="Columns of the table that are not in the DDL: ignore omits them, carry adds them to the value.",
    )
    encoder: Literal["auto", "spark"] = Field(
        default="auto",
        description="What makes documents of rows. spark: Spark SQL; auto: the tasks that send them, with Arrow, where "
        "that gives the same bytes, else spark.",
    )
    snapshot_chunk_rows: Annotated[int, BeforeValidator(validators.digits_as_int)] = Field(
        default=4_000_000,
        gt=0,
        description="Approximate number of rows of a snapshot that are sent before progress is recorded.",
    )
    transaction_rows: Annotated[int, BeforeValidator(validators.digits_as_int)] = Field(
        default=200_000,
        gt=0,
        description="Approximate maximum number of records per transaction (exactly-once). They are buffered in memory "
        "until the transaction ends.",
    )


class MaintenanceSection(Section):
    """Maintenance of the table between the batches of an ingest and by `bridge maintain`; off without this section."""

    every: Annotated[str, AfterValidator(validators.check_interval)] = Field(
        default="1 d", description="Interval between two maintenances: 1 d"
    )
    optimize: bool = Field(
        default=True,
        description="Whether to run OPTIMIZE, which compacts small files and clusters clustered tables.",
    )
    vacuum: bool = Field(
        default=True,
        description="Whether to run VACUUM, which deletes unused files, except those that a feed consumer still needs.",
    )
    retain: Annotated[str, AfterValidator(validators.check_retention)] | None = Field(
        default=None,
        description="Retention of VACUUM; default: delta.deletedFileRetentionDuration of the table.",
    )

    @model_validator(mode="after")
    def _something_to_do(self) -> MaintenanceSection:
        if not (self.optimize or self.vacuum):
            raise ValueError(
                "optimize and vacuum are both false; set one of them to true, or remove the section maintenance"
            )
        if self.retain is not None and not self.vacuum:
            raise ValueError("retain has no effect with vacuum: false; remove it")
        return self


class PeekSection(Section):
    """Options of `bridge peek`."""

    hide: Literal["all"] | list[str] = Field(
        default_factory=list,
        description="Fields whose values are not shown, at any depth; all hides the values of all fields.",
    )


class PipelineFile(Section):
    """A pipeline file of the changelog bridge."""

    version: Literal[1] = Field(description="Version of the pipeline file format.")
    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="Unique name of the pipeline, which identifies its state, its progress and its metrics.",
    )
    topic: TopicSection
    delta: DeltaSection
    run: RunSection
    ingest: IngestSection = Field(default=IngestSection())
    merge: MergeSection = Field(default=MergeSection())
    publish: PublishSection = Field(default=PublishSection())
    quality: QualitySection | None = None
    maintenance: MaintenanceSection | None = None
    peek: PeekSection = Field(default=PeekSection())
