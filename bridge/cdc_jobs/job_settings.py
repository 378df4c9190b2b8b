"""The section `pipeline` and what of `transform` is not honoured: resolved, or refused by name with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.cdc_jobs.model import JobFile, PipelineSection
from bridge.config.yaml_tree import Document, Place
from bridge.errors import DefinitionError, UnsupportedError
from bridge.metrics.monitoring import Monitoring

_CARRIED = ("LENIENT", "EVOLVE", "TRY_EVOLVE")
_REFUSED_BEHAVIOURS = {
    "IGNORE": "each run reads the columns of its tables anew; to leave out columns that are added later, list the "
    "columns in a projection",
    "EXCEPTION": "a change of the schema between two runs is not noticed, and in a run a column that is dropped is an "
    "error anyway",
}
_IGNORED = {
    "schema_operator_uid": "Flink's state is not used",
    "operator_uid_prefix": "Flink's state is not used",
    "schema_operator_rpc_timeout": "there is no schema operator",
    "flink_conf": "Spark runs the job; pass its settings with --conf",
}
_REFUSED = {
    "user_defined_function": "functions of the JVM cannot be called; write the expression with functions of Flink SQL "
    "(docs/sql.md), or compute the column before",
    "model": "a model may answer the same row differently, and rows may be computed again; compute the column before",
    "trims_keys": "a row is found by its key; keep the columns of the key in the projection",
}
_REFUSED_RULES = {
    "partition_keys": "a topic has no partitions by column; records are placed by the hash of their key",
    "table_options": "a topic is created with the broker's defaults, compacted for upsert-kafka; create it before to "
    "choose others",
    "table_options_delimiter": "table-options are refused, too",
    "converter_after_transform": "a delete stays a delete: a tombstone, or a message of a CDC format. For "
    "SOFT_DELETE let the readers of the topic keep deleted rows",
}


@dataclass(frozen=True)
class JobSettings:
    """What the section `pipeline` says. `name` is the job's; `state` is as it is written, relative to the file."""

    name: str
    state: str | None
    step_timeout: str | None
    monitoring: Monitoring
    bad_records: str | None
    parallelism: int | None
    warnings: tuple[str, ...]


def job_settings(document: Document, section: PipelineSection, default_name: str) -> JobSettings:
    """Resolves the section `pipeline`. Raises DefinitionError with the position for what is not legal, and
    UnsupportedError for what Flink CDC has and the bridge has not."""
    warnings = []
    for field in sorted(section.model_fields_set):
        value, key = getattr(section, field), str(PipelineSection.model_fields[field].alias)
        if value is None:
            continue
        if field in _REFUSED and value is not False:
            raise _unsupported(document, ("pipeline", key), "pipeline option", _REFUSED[field])
        if field in _IGNORED:
            warnings.append(f"pipeline: {key} without effect: {_IGNORED[field]}")
    _check_values(document, section)
    return JobSettings(
        section.name or default_name,
        section.bridge_state,
        section.bridge_step_timeout,
        Monitoring.of(
            section.bridge_metrics,
            section.bridge_events,
            section.bridge_alert,
            section.bridge_otlp,
            section.bridge_lineage,
        ),
        section.bridge_bad_records,
        section.parallelism,
        tuple(warnings),
    )


def _check_values(document: Document, section: PipelineSection) -> None:
    behaviour = (section.schema_change_behavior or "LENIENT").upper()
    place: Place = ("pipeline", "schema.change.behavior")
    if behaviour in _REFUSED_BEHAVIOURS:
        legal = ", ".join(_CARRIED)
        raise UnsupportedError(
            f"{document.where(place)}: {behaviour} is refused: {_REFUSED_BEHAVIOURS[behaviour]}. {legal} send the "
            "columns that a table gets",
            f"schema.change.behavior {behaviour}",
        )
    if behaviour not in _CARRIED:
        raise DefinitionError(
            f"{document.where(place)}: '{document.raw(place)}': legal values are {', '.join(_CARRIED)}"
        )
    mode, place = (section.runtime_mode or "STREAMING").upper(), ("pipeline", "execution.runtime-mode")
    if mode != "STREAMING":
        raise UnsupportedError(
            f"{document.where(place)}: '{document.raw(place)}': the legal value is STREAMING. Without --every, `bridge "
            "run` ends when the source has nothing new, and the next run continues there",
            "execution.runtime-mode",
        )
    zone, place = section.local_time_zone or "UTC", ("pipeline", "local-time-zone")
    if zone not in ("UTC", "Etc/UTC", "Z"):
        raise UnsupportedError(
            f"{document.where(place)}: '{document.raw(place)}': the legal value is UTC, in which the bridge computes",
            "local-time-zone",
        )
    mode, place = (section.route_mode or "ALL_MATCH").upper().replace("-", "_"), ("pipeline", "route-mode")
    if mode != "ALL_MATCH":
        raise UnsupportedError(
            f"{document.where(place)}: '{document.raw(place)}': the legal value is ALL_MATCH: a table goes to the sink "
            "tables of all its routes; make the expressions of `route` exclude each other",
            "route-mode",
        )


def refuse_transforms(document: Document, file: JobFile) -> None:
    """Raises UnsupportedError with the position for keys of `transform` that the bridge does not honour."""
    for number, rule in enumerate(file.transform):
        for field, reason in _REFUSED_RULES.items():
            if getattr(rule, field) is not None:
                key = str(type(rule).model_fields[field].alias)
                raise _unsupported(document, ("transform", number, key), "transform key", reason)


def _unsupported(document: Document, place: Place, what: str, reason: str) -> UnsupportedError:
    return UnsupportedError(f"{document.where(place)} is refused: {reason}", f"{what} {place[-1]}")
