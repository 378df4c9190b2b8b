"""Lineage of a run as events of OpenLineage, in a file or for a collector (docs/lineage.md).

A thread makes and sends them, so that batches do not wait. An event has the sums since the run began: one that does not
arrive is made up for by the next one, and none has to be kept.

Makes the events of OpenLineage. Imports openlineage-python, so only lineage that was asked for imports this.

An event names the datasets of a run, and what its batches did with them since it began.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar
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

from bridge.errors import DefinitionError, QualityError
from bridge.metrics.datasets import Assertion, Dataset, Flow, Origin
from bridge.metrics.events import append
from bridge.metrics.reports import BatchReport, Counts, Listener, RunName, Summary
from bridge.metrics.target_urls import (
    NextWarning,
    check_http_url,
    host_of,
    text_without_url,
    text_without_values,
)
from bridge.secret import Secret
from bridge.version import own_version

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent

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


def run_event(kind: str, observed: _ObservedFlow, run_id: str, at: datetime) -> RunEvent:
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


def _run_facets(observed: _ObservedFlow) -> dict[str, RunFacet]:
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


def _input(dataset: Dataset, observed: _ObservedFlow) -> InputDataset:
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


def _output(dataset: Dataset, observed: _ObservedFlow) -> OutputDataset:
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


def _offsets(moved: list[tuple[int, _Moved]]) -> _KafkaOffsets:
    return _KafkaOffsets(
        [
            {"partition": partition, **({} if begin is None else {"from": begin}), "to": end}
            for partition, (begin, end) in moved
        ],
        producer=PRODUCER,
    )


def _facets(dataset: Dataset, observed: _ObservedFlow) -> dict[str, DatasetFacet]:
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


EVERY_SECONDS = 30.0
"""The time between two events of a run that goes on."""
TIMEOUT_SECONDS = 5.0
"""The longest time that a collector may take."""
_SILENT_SECONDS = 60.0
"""For how long a collector that took longer gets no events of this process."""


def check_lineage(text: str) -> str:
    """Returns a file or the URL of a collector. Raises ValueError for other URLs, which it does not repeat."""
    if "://" not in text:
        return text
    legal = "a file, and the URL of a collector that begins with https:// or http://"
    check_http_url(text, legal, has_query=True)
    if "?" in text or "#" in text:
        raise ValueError(
            "not legal: a collector gets no query; give its key in the environment, as OPENLINEAGE_API_KEY"
        )
    return text


def check_installed() -> None:
    """Raise DefinitionError with the command that installs it where openlineage-python is missing."""
    if find_spec("openlineage") is None or find_spec("openlineage.client") is None:
        raise DefinitionError("run.lineage needs openlineage-python: pip install 'changelog-bridge[lineage]'")


@contextmanager
def tracked(
    target: str | Secret | None,
    listener: Listener,
    run: RunName,
    flow: Callable[[], Flow],
    stop: threading.Event | None = None,
) -> Iterator[Listener]:
    """Around a run: yields a listener that counts each report, then calls `listener`. `flow` returns what the run reads
    and writes; it ends as aborted if `stop` is set then.

    Raises DefinitionError where openlineage-python is missing.
    """
    if target is None:
        yield listener
        return
    check_installed()
    lineage = _Lineage(target, run, flow)
    try:
        yield lineage.listen(listener)
    except (KeyboardInterrupt, SystemExit):
        lineage.close("ABORT")
        raise
    except BaseException as error:
        lineage.close("FAIL", error)
        raise
    else:
        lineage.close("ABORT" if stop is not None and stop.is_set() else "COMPLETE")


class _Lineage:
    """The events of one run, of which the first is sent when it is made."""

    _silent_until: ClassVar[dict[str, float]] = {}
    """time.monotonic() by target. Shared by threads, each of which sets one value."""

    def __init__(self, target: str | Secret, run: RunName, flow: Callable[[], Flow]) -> None:
        self._target = target.reveal() if isinstance(target, Secret) else target
        self._warning = NextWarning()
        self._run_id = ""
        self._observed = _ObservedFlow(run, self._made(flow), datetime.now(timezone.utc))
        self._kind, self._ended = "START", threading.Event()
        self._has_changed = False
        # Shared by threads: what is observed, which has a lock, and values that are set in one assignment.
        self._thread = threading.Thread(target=self._send_all, daemon=True, name="bridge-lineage")
        self._thread.start()

    def listen(self, listener: Listener) -> Listener:
        """Returns a listener that counts each report, then calls `listener`; a failure is a warning of the report."""

        def heard(report: BatchReport) -> None:
            self._observed.add(report)
            self._has_changed = True
            listener(self._warning.onto(report))

        return heard

    def close(self, kind: str, error: BaseException | None = None) -> None:
        """Ends the run with COMPLETE, FAIL or ABORT; waits until that is sent, no longer than the bound."""
        if isinstance(error, QualityError):
            self._observed.fail_gate()
        self._observed.error = None if error is None else text_without_values(error)
        self._kind = kind
        self._ended.set()
        self._thread.join(TIMEOUT_SECONDS)
        if self._thread.is_alive():
            self._warning.say(
                f"lineage does not reach {self._place()}: it takes longer than {TIMEOUT_SECONDS:g} s"
            )
        self._warning.close()

    def _made(self, flow: Callable[[], Flow]) -> Flow:
        try:
            return flow()
        except Exception as error:  # of Spark or a broker; the run itself will say what is wrong
            self._warning.say(f"lineage has no datasets: {text_without_values(error)}")
            return Flow()

    def _send_all(self) -> None:
        began = _ObservedFlow(self._observed.run, self._observed.flow, self._observed.since)
        self._send("START", began, began.since)
        while not self._ended.wait(EVERY_SECONDS):
            if self._has_changed:
                self._has_changed = False
                self._send("RUNNING", self._observed)
        self._send(self._kind, self._observed)

    def _send(self, kind: str, observed: _ObservedFlow, at: datetime | None = None) -> None:
        begun = time.monotonic()
        if begun < self._silent_until.get(self._target, begun):
            return
        try:
            from bridge.metrics.lineage import new_run_id, run_event  # they take long to load

            self._run_id = self._run_id or new_run_id()
            self._emit(run_event(kind, observed, self._run_id, at or datetime.now(timezone.utc)))
        except Exception as error:  # whatever a library raises here is not the pipeline's
            self._warning.say(f"lineage does not reach {self._place()}: {text_without_url(error)}")
        if time.monotonic() - begun >= TIMEOUT_SECONDS:
            self._silent_until[self._target] = time.monotonic() + _SILENT_SECONDS

    def _emit(self, event: RunEvent) -> None:
        from openlineage.client.serde import Serde
        from openlineage.client.transport.http import HttpConfig, HttpTransport

        if "://" not in self._target:
            append(self._target, Serde.to_json(event) + "\n")
            return
        options = {"url": f"{self._target.rstrip('/')}/", "timeout": TIMEOUT_SECONDS, "retry": {"total": 0}}
        if endpoint := os.environ.get("OPENLINEAGE_ENDPOINT"):
            options["endpoint"] = endpoint
        if key := os.environ.get("OPENLINEAGE_API_KEY"):
            options["auth"] = {"type": "api_key", "apiKey": key}
        transport = HttpTransport(HttpConfig.from_dict(options))
        try:
            transport.emit(event)
        finally:
            transport.close()

    def _place(self) -> str:
        """The host of a collector, whose URL may hold a password, or the file."""
        return host_of(self._target) or self._target


_Moved = tuple[int | None, int]
"""The offsets of a partition from (None if it is not known) and to, exclusive."""


class _ObservedFlow:
    """Takes the reports of one run, from any thread."""

    error: str | None = None
    """What failed the run."""

    def __init__(self, run: RunName, flow: Flow, since: datetime) -> None:
        self.run, self.flow, self.since = run, flow, since
        self._lock = threading.Lock()
        self._totals: dict[tuple[str, str], Summary] = {}
        self._moved: dict[tuple[str, int], _Moved] = {}
        self._assertions: tuple[Assertion, ...] = ()
        self._gate_failed = False

    def add(self, report: BatchReport) -> None:
        """Takes the report of a batch."""
        at = (report.verb, report.pipeline)
        with self._lock:
            self._totals[at] = self._totals.get(at, Summary(report.pipeline, report.verb)).plus(report)
            self._assertions = report.assertions or self._assertions
            read = ((p.topic, p.partition, p.first, p.next) for p in report.partitions if p.next > p.first)
            for topic, partition, begin, end in (*read, *report.sent_to):
                before = self._moved.get((topic, partition), (begin, end))[0]
                # A run may read records again, when rows of the table were taken back.
                first = None if before is None or begin is None else min(before, begin)
                self._moved[topic, partition] = (first, end)

    def fail_gate(self) -> None:
        """Takes an error of the gate, which no report has."""
        self._gate_failed = True

    def counts(self, dataset: Dataset) -> Counts | None:
        """Returns the sums of the batches about this dataset; None without any, and if their sums are those of others,
        too."""
        with self._lock:
            found = list(self._found(dataset))
        if not found or dataset.shares_counts:
            return None
        total = Counts()
        for one in found:
            total = Counts(**total.sums(one))
        return total

    def version(self, dataset: Dataset) -> int | None:
        """Returns the newest version of a table that was read, written or checked."""
        with self._lock:
            versions = [found.version for found in self._found(dataset) if found.version is not None]
            return max(versions, default=None)

    def moved(self, dataset: Dataset) -> list[tuple[int, _Moved]]:
        """Returns the partitions of a topic that records were read from or sent to, in order."""
        with self._lock:
            return sorted((p, ends) for (topic, p), ends in self._moved.items() if topic == dataset.name)

    def assertions(self) -> tuple[Assertion, ...]:
        """Returns the results of the check, or that of the gate; empty without either."""
        if self.flow.gate is None:
            return self._assertions
        with self._lock:
            failed = self._gate_failed or any(total.unexpected_rows for total in self._totals.values())
        return (Assertion("gate", not failed, is_error=self.flow.gate),)

    def _found(self, dataset: Dataset) -> Iterator[Summary]:
        return (self._totals[at] for at in dataset.counted if at in self._totals)
