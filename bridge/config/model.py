"""The pipeline file as it is written: keys, types and legal values. Nothing is looked up here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from bridge.config import validators
from bridge.config.quality_section import QualitySection
from bridge.config.section import TABLE_NAME, Properties, Section, TableLocation, kebab

__all__ = [
    "CreateSection",
    "DeltaSection",
    "MaintenanceSection",
    "MergeSection",
    "PipelineFile",
    "QuarantineSection",
    "TopicSection",
]


class CreateSection(Section):
    """How a publish creates topics that are not there."""

    partitions: Annotated[int, BeforeValidator(validators.digits_as_int)] | None = Field(
        default=None, gt=0, description="Number of partitions; by default the broker's num.partitions."
    )
    replication: Annotated[int, BeforeValidator(validators.digits_as_int)] | None = Field(
        default=None, gt=0, description="Replicas of each partition; by default the broker's."
    )
    config: Properties = Field(
        default_factory=dict,
        description="Kafka's settings of a topic. Of upsert-kafka, cleanup.policy is compact unless set here.",
    )


class TopicSection(Section):
    """The Kafka side: Flink's CREATE TABLE, here or in a file of its own. Exactly one of the two."""

    ddl: str | None = Field(default=None, description="Flink's CREATE TABLE ... WITH (...).")
    ddl_file: str | None = Field(
        default=None, alias="ddl_file", min_length=1, description="A file with the DDL."
    )
    create: CreateSection | None = Field(
        default=None, description="Lets a publish create the topics that are not there; {} does, too."
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
            raise ValueError("exactly one of ddl and ddl_file is needed")
        return self


class DeltaSection(Section):
    """The Delta table, by path or by name. Exactly one of the two."""

    path: str | None = Field(default=None, min_length=1, description="Folder or URI of the table.")
    table: str | None = Field(
        default=None,
        pattern=TABLE_NAME,
        description="Name of the table: [[catalog.]schema.]table.",
    )
    properties: Properties = Field(
        default_factory=dict, description="Table properties for when the bridge creates the table."
    )
    merge_schema: bool = Field(
        default=False,
        description="Whether an ingest adds columns that the DDL has and the table lacks, and widens types.",
    )
    cluster_by: Annotated[list[str], AfterValidator(validators.check_cluster_columns)] = Field(
        default_factory=list,
        description="Columns that the table is clustered by (Delta's CLUSTER BY, at most 4): rows of near values come "
        "to lie in the same files, whenever OPTIMIZE runs.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> DeltaSection:
        if (self.path is None) == (self.table is None):
            raise ValueError("exactly one of path and table is needed")
        return self


class RunSection(Section):
    """When batches happen, and where Spark keeps its working state."""

    checkpoint: str = Field(min_length=1, description="Folder or URI of this pipeline alone.")
    trigger: Annotated[str, AfterValidator(validators.check_trigger)] = Field(
        default="available-now",
        description="available-now (take what is there, then end) or an interval: 10 s",
    )
    max_offsets_per_batch: Annotated[int, BeforeValidator(validators.digits_as_int)] = Field(
        default=5_000_000,
        gt=0,
        description="Most records that one batch takes from the topic. A batch is as small as what is new, and as "
        "large as this where the table is behind.",
    )


class QuarantineSection(TableLocation):
    """A Delta table of records that could not be applied, by path or by name. Exactly one of the two."""


class IngestSection(Section):
    """Topic to table."""

    bad_records: Literal["fail", "quarantine", "skip"] = Field(
        default="fail", description="What happens to a record that cannot be applied."
    )
    quarantine: QuarantineSection | None = Field(
        default=None,
        description="Where `bad-records: quarantine` and `quality.gate: quarantine` keep them; default: `_quarantine` "
        "beside the table.",
    )
    base: Literal["empty", "existing"] = Field(
        default="empty",
        description="existing: the table already holds what was before the start position.",
    )


class MergeSection(Section):
    """How an ingest's batches get into the table."""

    engine: Literal["auto", "spark", "delta-rs"] = Field(
        default="auto",
        description="spark: Delta's MERGE on the executors; delta-rs: in the driver, for batches and tables that are "
        "not large; auto: delta-rs where it is sure, else spark.",
    )
    max_batch: Annotated[str, AfterValidator(validators.check_size)] = Field(
        default="256 mb", description="auto: larger batches, folded and in memory, go to spark."
    )
    max_touched: Annotated[str, AfterValidator(validators.check_size)] = Field(
        default="1 gb", description="auto: batches that touch more bytes of the table's files go to spark."
    )

    @model_validator(mode="after")
    def _has_effect(self) -> MergeSection:
        if self.engine != "auto" and (given := self.model_fields_set - {"engine"}):
            names = " and ".join(sorted(kebab(name) for name in given))
            raise ValueError(f"{names} has no effect with engine: {self.engine}; only auto chooses")
        return self


class PublishSection(Section):
    """Table to topic."""

    start: Annotated[str, AfterValidator(validators.check_publish_start)] = Field(
        default="snapshot", description="First run: snapshot, latest, version:N or timestamp:ISO."
    )
    net_changes: bool = Field(
        default=False,
        description="One record per key and batch: what became of it over all versions; false: per table version.",
    )
    update_messages: Literal["single", "pair"] = Field(
        default="single",
        description="CDC formats: an update is a single message with the row before and after, or as in Flink a pair: "
        "delete, then create.",
    )
    added_columns: Literal["ignore", "carry"] = Field(
        default="ignore",
        description="Columns of the table that the DDL does not have: left out, or carried into the value.",
    )
    snapshot_chunk_rows: Annotated[int, BeforeValidator(validators.digits_as_int)] = Field(
        default=4_000_000,
        gt=0,
        description="About how many rows of a snapshot are sent before progress is written down.",
    )
    transaction_rows: Annotated[int, BeforeValidator(validators.digits_as_int)] = Field(
        default=200_000,
        gt=0,
        description="About how many records a transaction holds at most (exactly-once), and memory until it ends.",
    )


class MaintenanceSection(Section):
    """Care of the table between an ingest's batches, and what `bridge maintain` does. There is none without it."""

    every: Annotated[str, AfterValidator(validators.check_interval)] = Field(
        default="1 d", description="How long after the last time: 1 d"
    )
    optimize: bool = Field(
        default=True, description="OPTIMIZE: small files into large ones, clustered where the table is."
    )
    vacuum: bool = Field(
        default=True,
        description="VACUUM: delete files that nobody needs, never those that a registered publish still does.",
    )
    retain: Annotated[str, AfterValidator(validators.check_retention)] | None = Field(
        default=None,
        description="VACUUM's RETAIN: how long files are kept; default: the table's deletedFileRetentionDuration.",
    )

    @model_validator(mode="after")
    def _something_to_do(self) -> MaintenanceSection:
        if not (self.optimize or self.vacuum):
            raise ValueError(
                "optimize and vacuum are both false, so there is nothing to do; leave the section out"
            )
        if self.retain is not None and not self.vacuum:
            raise ValueError("retain has no effect with vacuum: false; leave it out")
        return self


class PeekSection(Section):
    """What `bridge peek` shows."""

    hide: Literal["all"] | list[str] = Field(
        default_factory=list,
        description="Fields whose values are not shown, at any depth; all: no value at all.",
    )


class PipelineFile(Section):
    """A pipeline of the changelog bridge."""

    version: Literal[1] = Field(description="Version of this file's layout.")
    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="Unique; names the checkpoint, transactions, consumer group and metrics.",
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
