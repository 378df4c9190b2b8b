"""Defines a job's file: its sections, and the keys of `route`, `transform` and `pipeline`.

`source` and `sink` are options of connectors, which `options` checks. What cannot be honoured has a key here, too, so
that `job_settings` refuses it by its name with a reason.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from bridge.config import validators
from bridge.config.validators import Properties, Section
from bridge.metrics.alerts import check_alert
from bridge.metrics.lineage import check_lineage
from bridge.metrics.otlp import check_url

_Count = Annotated[int, BeforeValidator(validators.digits_as_int)]


class RouteRule(Section):
    """Which tables go to which table of the sink."""

    source_table: str = Field(min_length=1)
    sink_table: str = Field(min_length=1)
    replace_symbol: str | None = Field(default=None, min_length=1)
    description: str | None = None


class TransformRule(Section):
    """Which columns and rows of tables are sent, and by which key."""

    source_table: str = Field(min_length=1)
    projection: str | None = Field(default=None, min_length=1)
    filter: str | None = Field(default=None, min_length=1)
    primary_keys: str | None = Field(default=None, min_length=1)
    description: str | None = None
    partition_keys: str | None = None
    table_options: str | None = None
    table_options_delimiter: str | None = Field(default=None, alias="table-options.delimiter")
    converter_after_transform: str | None = None


class PipelineSection(Section):
    """The settings of the whole job."""

    name: str | None = Field(default=None, min_length=1)
    parallelism: _Count | None = Field(default=None, gt=0)
    bridge_state: str | None = Field(default=None, alias="bridge.state", min_length=1)
    bridge_step_timeout: Annotated[str, AfterValidator(validators.check_step_timeout)] | None = Field(
        default=None, alias="bridge.step-timeout"
    )
    bridge_metrics: Annotated[str, AfterValidator(validators.check_metrics)] | None = Field(
        default=None, alias="bridge.metrics"
    )
    bridge_events: str | None = Field(default=None, alias="bridge.events", min_length=1)
    bridge_alert: Annotated[str, AfterValidator(check_alert)] | None = Field(
        default=None, alias="bridge.alert"
    )
    bridge_otlp: Annotated[str, AfterValidator(check_url)] | None = Field(default=None, alias="bridge.otlp")
    bridge_lineage: Annotated[str, AfterValidator(check_lineage)] | None = Field(
        default=None, alias="bridge.lineage", min_length=1
    )
    bridge_bad_records: Literal["fail", "quarantine", "skip"] | None = Field(
        default=None, alias="bridge.bad-records"
    )
    schema_change_behavior: str | None = Field(default=None, alias="schema.change.behavior")
    runtime_mode: str | None = Field(default=None, alias="execution.runtime-mode")
    local_time_zone: str | None = None
    route_mode: str | None = None
    schema_operator_uid: str | None = Field(default=None, alias="schema.operator.uid")
    operator_uid_prefix: str | None = Field(default=None, alias="operator.uid.prefix")
    schema_operator_rpc_timeout: str | None = Field(default=None, alias="schema-operator.rpc-timeout")
    flink_conf: dict[str, Any] | None = None
    user_defined_function: list[Any] | None = None
    model: Any = None
    trims_keys: Any = Field(default=None, alias="transform.allow.trimming.pk-columns")


class JobFile(Section):
    """A data-ingestion job of Flink CDC."""

    source: Properties
    sink: Properties
    route: list[RouteRule] = Field(default_factory=list)
    transform: list[TransformRule] = Field(default_factory=list)
    pipeline: PipelineSection = Field(default_factory=PipelineSection)
