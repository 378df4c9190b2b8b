"""Makes the events of OpenLineage. Imports openlineage-python, so only lineage that was asked for imports this."""

from __future__ import annotations

import os
from datetime import datetime
from urllib.parse import quote

import attr
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    JobFacet,
    OutputDatasetFacet,
    RunFacet,
    column_lineage_dataset,
    data_quality_assertions_dataset,
    dataset_version_dataset,
    datasource_dataset,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
    sql_job,
    storage_dataset,
    symlinks_dataset,
)
from openlineage.client.uuid import generate_new_uuid

from bridge.metrics.datasets import Dataset, Origin
from bridge.metrics.observed_flow import Moved, ObservedFlow
from bridge.version import own_version

OFFSETS = "bridge_kafkaOffsets"
OFFSETS_SCHEMA = "urn:changelog-bridge:facet:KafkaOffsetsDatasetFacet:1"
PRODUCER = f"urn:changelog-bridge:{quote(own_version())}"
_INTEGRATION = "CHANGELOG_BRIDGE"


@attr.define
class _KafkaOffsets(InputDatasetFacet, OutputDatasetFacet):
    """The offsets of each partition: `from`, where it is known, and `to`, exclusive."""

    partitions: list[dict[str, int]]

    @staticmethod
    def _get_schema() -> str:
        return OFFSETS_SCHEMA


def new_run_id() -> str:
    """Returns a UUID of version 7."""
    return str(generate_new_uuid())


def run_event(kind: str, observed: ObservedFlow, run_id: str, at: datetime) -> RunEvent:
    """Returns the event of a kind (START, RUNNING, COMPLETE, FAIL, ABORT) with all that the run has done until now."""
    flow, run = observed.flow, observed.run
    job_facets: dict[str, JobFacet] = {
        "jobType": job_type_job.JobTypeJobFacet(
            "STREAMING" if flow.is_streaming else "BATCH", _INTEGRATION, run.verb.upper(), producer=PRODUCER
        )
    }
    if flow.sql is not None:
        job_facets["sql"] = sql_job.SQLJobFacet(flow.sql, "flink", producer=PRODUCER)
    return RunEvent(
        eventType=RunState(kind),
        eventTime=at.isoformat(timespec="milliseconds"),
        run=Run(run_id, _run_facets(observed)),
        job=Job(
            os.environ.get("OPENLINEAGE_NAMESPACE") or "default", f"{run.pipeline}.{run.verb}", job_facets
        ),
        inputs=[_input(dataset, observed) for dataset in flow.inputs],
        outputs=[_output(dataset, observed) for dataset in flow.outputs],
        producer=PRODUCER,
    )


def _run_facets(observed: ObservedFlow) -> dict[str, RunFacet]:
    found: dict[str, RunFacet] = {}
    if version := observed.flow.spark:
        found["processing_engine"] = processing_engine_run.ProcessingEngineRunFacet(
            version, "spark", own_version(), producer=PRODUCER
        )
    if (parent := _parent(os.environ.get("OPENLINEAGE_PARENT_ID", ""))) is not None:
        found["parent"] = parent
    if observed.error is not None:
        found["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            observed.error, "PYTHON", producer=PRODUCER
        )
    return found


def _parent(text: str) -> parent_run.ParentRunFacet | None:
    """Returns the run that started this one, from `namespace/job/run id`; None for another text."""
    namespace, _, rest = text.partition("/")
    job, _, run_id = rest.rpartition("/")
    try:
        run = parent_run.Run(run_id)
    except ValueError:
        return None
    return parent_run.ParentRunFacet(run, parent_run.Job(namespace, job), producer=PRODUCER)


def _input(dataset: Dataset, observed: ObservedFlow) -> InputDataset:
    found: dict[str, InputDatasetFacet] = {}
    counts = observed.counts(dataset)
    if not dataset.is_table and counts is not None:
        found["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=counts.records_in, size=counts.bytes_in, producer=PRODUCER
        )
    if moved := observed.moved(dataset):
        found[OFFSETS] = _offsets(moved)
    if assertions := observed.assertions():
        found["dataQualityAssertions"] = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
            [
                data_quality_assertions_dataset.Assertion(
                    a.rule, a.success, a.column, "error" if a.is_error else "warn"
                )
                for a in assertions
            ],
            producer=PRODUCER,
        )
    return InputDataset(dataset.namespace, dataset.name, found, facets=_facets(dataset, observed))


def _output(dataset: Dataset, observed: ObservedFlow) -> OutputDataset:
    found: dict[str, OutputDatasetFacet] = {}
    counts = observed.counts(dataset)
    if counts is not None:
        changed = counts.inserted + counts.updated + counts.deleted
        found["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=changed if dataset.is_table else counts.records_out,
            size=counts.bytes_written if dataset.is_table else counts.bytes_out,
            fileCount=counts.files_written if dataset.is_table else None,
            producer=PRODUCER,
        )
    if moved := observed.moved(dataset):
        found[OFFSETS] = _offsets(moved)
    return OutputDataset(dataset.namespace, dataset.name, found, facets=_facets(dataset, observed))


def _offsets(moved: list[tuple[int, Moved]]) -> _KafkaOffsets:
    return _KafkaOffsets(
        [
            {"partition": partition, **({} if begin is None else {"from": begin}), "to": end}
            for partition, (begin, end) in moved
        ],
        producer=PRODUCER,
    )


def _facets(dataset: Dataset, observed: ObservedFlow) -> dict[str, DatasetFacet]:
    """Returns the facets of inputs and outputs."""
    found: dict[str, DatasetFacet] = {
        "dataSource": datasource_dataset.DatasourceDatasetFacet(
            dataset.namespace, dataset.namespace, producer=PRODUCER
        )
    }
    if dataset.columns:
        fields = [schema_dataset.SchemaDatasetFacetFields(name, type) for name, type in dataset.columns]
        found["schema"] = schema_dataset.SchemaDatasetFacet(fields, producer=PRODUCER)
    if dataset.is_table:
        found["storage"] = storage_dataset.StorageDatasetFacet("delta", "parquet", producer=PRODUCER)
        version = observed.version(dataset)
        if version is not None:
            found["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(
                str(version), producer=PRODUCER
            )
    if dataset.symlink is not None:
        identifier = symlinks_dataset.Identifier(*dataset.symlink, "TABLE")
        found["symlinks"] = symlinks_dataset.SymlinksDatasetFacet([identifier], producer=PRODUCER)
    if dataset.origins:
        found["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(
            {
                name: column_lineage_dataset.Fields(list(map(_origin, o)))
                for name, o in dataset.origins.items()
            },
            producer=PRODUCER,
        )
    return found


def _origin(origin: Origin) -> column_lineage_dataset.InputField:
    how = [column_lineage_dataset.Transformation("DIRECT", origin.subtype)]
    return column_lineage_dataset.InputField(origin.namespace, origin.name, origin.column, how)
