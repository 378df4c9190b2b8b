"""Sends metrics and traces to a collector of OpenTelemetry, by OTLP over HTTP.

The metrics are those of the registry. A batch is a trace: a span for it and one for each of its steps. A published
range has a link to the batch that wrote each of its versions: the ids of that span follow from the table and the
version, so that nothing has to be stored. A run is a span, too, which ends with it.

It needs the SDK of OpenTelemetry (`pip install 'changelog-bridge[otel]'`). Its variables hold here: headers by
OTEL_EXPORTER_OTLP_HEADERS, attributes of the resource by OTEL_RESOURCE_ATTRIBUTES.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bridge.errors import DefinitionError
from bridge.metrics import targets
from bridge.metrics.observed import Histogram, Observed
from bridge.metrics.registry import LABELS, METRICS, Kind, Metric
from bridge.metrics.reports import BatchReport, Counts, Listener, RunName, now_ms
from bridge.metrics.target_urls import check_http_url
from bridge.metrics.targets import Again, NotTaken, Warn
from bridge.version import own_version

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric as Exported
    from opentelemetry.sdk.metrics.export import MetricsData
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext


EVERY_SECONDS = 10.0
"""How often the collector gets what is new."""
TIMEOUT_SECONDS = 5.0
"""The longest time that a request to the collector may take."""
_MOST_WAITING = 1024
"""Of a collector that does not answer only so many of the newest batches and runs are kept."""
_MOST_LINKS = 128
"""OpenTelemetry's default limit."""
_NS = 1_000_000
_UNITS = {"bytes": "By", "bytes/s": "By/s", "ms": "ms", "s": "s", "": "1"}
"""UCUM's words; all others are counts of something, which it writes in braces."""


def check_url(text: str) -> str:
    """Return the URL of a collector. Raises ValueError with what is legal for anything else."""
    return check_http_url(text, "URLs of a collector such as http://127.0.0.1:4318").rstrip("/")


def check_installed() -> None:
    """Raise DefinitionError with the command that installs it where the SDK is missing."""
    try:
        found = find_spec("opentelemetry.exporter.otlp.proto.http")
    except ModuleNotFoundError:  # of a package above it
        found = None
    if found is None:
        raise DefinitionError("run.otlp needs the SDK of OpenTelemetry: pip install 'changelog-bridge[otel]'")


@contextmanager
def tracing(
    target: str | None, listener: Listener, run: RunName | None = None, owner: str = ""
) -> Iterator[Listener]:
    """Around a run: yields a listener that sends each report to the collector at `target`; see `targets.exporting`.

    Raises DefinitionError where the SDK is missing.
    """
    if target is not None:
        check_installed()
    with targets.exporting(target, _Collector, listener, run, owner) as listen:
        yield listen


class _Collector:
    """Sends every few seconds, in a thread of its own, and at the end."""

    def __init__(self, url: str, observed: Callable[[], list[Observed]], warn: Warn) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource

        # A failure is a warning of the next batch; the library would print it, too.
        logger = logging.getLogger("opentelemetry.exporter")
        logger.propagate = False
        if not logger.handlers:  # else Python prints warnings on standard error, and they name the URL's path
            logger.addHandler(logging.NullHandler())
        name = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "changelog-bridge"}
        self._resource = Resource.create({**name, "service.version": own_version()})
        self._observed = observed
        # Shared by threads: what was observed, of which each takes its own lock; what waits, a deque, whose
        # operations are atomic. The exporters are used by one thread: that of `Again`.
        self._metrics = OTLPMetricExporter(endpoint=f"{url}/v1/metrics", timeout=TIMEOUT_SECONDS)
        self._traces = OTLPSpanExporter(endpoint=f"{url}/v1/traces", timeout=TIMEOUT_SECONDS)
        self._waiting: deque[Callable[[], Iterable[ReadableSpan]]] = deque(maxlen=_MOST_WAITING)
        """What makes the spans of a batch or a run, as the batch does not wait until they are made."""
        self._again = Again(EVERY_SECONDS, self._send, warn, self._end)

    def after_batch(self, report: BatchReport) -> None:
        self._waiting.append(partial(_spans, report, report.committed_ms or now_ms(), self._resource))

    def after_run(self, run: RunName, began_ms: int, error: BaseException | None) -> None:
        self._waiting.append(partial(_run_spans, run, began_ms, now_ms(), error, self._resource))

    def close(self) -> None:
        self._again.close()

    def _end(self) -> None:
        for exporter in (self._metrics, self._traces):
            exporter.shutdown()

    def _send(self) -> None:
        from opentelemetry.sdk.metrics.export import MetricExportResult
        from opentelemetry.sdk.trace.export import SpanExportResult

        taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
        spans = [span for made in taken for span in made()]
        refused = []
        if spans and self._traces.export(spans) is not SpanExportResult.SUCCESS:
            self._waiting.extendleft(reversed(taken[-(_MOST_WAITING - len(self._waiting)) :]))
            refused.append("traces")
        # A collector may take only one of both.
        if self._metrics.export(self._data()) is not MetricExportResult.SUCCESS:
            refused.append("metrics")
        if refused:
            raise NotTaken(f"the collector does not take {' and '.join(refused)}")

    def _data(self) -> MetricsData:
        from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics

        observed, at_ms = self._observed(), now_ms()
        exported = [
            _metric(metric, [of for of in observed if of.verb in metric.verbs], at_ms) for metric in METRICS
        ]
        scope = ScopeMetrics(_scope(), [metric for metric in exported if metric.data.data_points], "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])


def _scope() -> Any:
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    return InstrumentationScope("changelog-bridge", own_version())


def _metric(metric: Metric, observed: Sequence[Observed], at_ms: int) -> Exported:
    from opentelemetry.sdk.metrics import export

    points: list[Any] = []
    for of in observed:
        with of.lock:
            own = dict(zip(LABELS, (of.pipeline, of.verb, of.topic), strict=True))
            for sample in metric.read(of, at_ms):
                labels, times = {**own, **(sample.labels or {})}, (of.since_ms * _NS, at_ms * _NS)
                if isinstance(sample.value, Histogram):
                    points += _histogram_points(sample.value, labels, times)
                else:
                    points.append(export.NumberDataPoint(labels, *times, sample.value))
    cumulative = export.AggregationTemporality.CUMULATIVE
    data: dict[Kind, Any] = {
        Kind.COUNTER: export.Sum(points, cumulative, is_monotonic=True),
        Kind.GAUGE: export.Gauge(points),
        Kind.HISTOGRAM: export.Histogram(points, cumulative),
    }
    unit = _UNITS.get(metric.unit) or f"{{{metric.unit}}}"
    return export.Metric(f"bridge.{metric.name}", metric.meaning, unit, data[metric.kind])


def _histogram_points(histogram: Histogram, labels: dict[str, Any], times: tuple[int, int]) -> list[Any]:
    from opentelemetry.sdk.metrics.export import HistogramDataPoint

    if not histogram.counts:
        return []
    counts, bounds = [*histogram.counts], histogram.bounds
    return [
        HistogramDataPoint(
            labels, *times, sum(counts), histogram.sum, counts, bounds, histogram.least, histogram.most
        )
    ]


def _context(*of: object) -> SpanContext:
    """The ids of a span, which follow from what it is of."""
    from opentelemetry.trace import SpanContext, TraceFlags

    digest = hashlib.sha256("\0".join(map(str, of)).encode()).digest()
    trace, span = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:24], "big")
    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _of_version(table: str, version: int | None) -> SpanContext:
    """The span of the batch that wrote a version."""
    return _context("version", table, version)


def _spans(report: BatchReport, end_ms: int, resource: Any) -> Iterator[ReadableSpan]:
    """Yield the span of a batch and those of its steps."""
    from opentelemetry.trace import Link, SpanContext

    writes = report.verb not in ("publish", "verify", "check")
    if writes and report.table:
        context = _of_version(report.table, report.version)
    else:
        context = _context(report.pipeline, report.verb, report.batch, end_ms)
    links = []
    if report.first_version is not None and report.version is not None:
        versions = range(max(report.first_version, report.version - _MOST_LINKS + 1), report.version + 1)
        links = [Link(_of_version(report.table, version)) for version in versions]
    counts = {f.name: getattr(report, f.name) for f in fields(Counts) if getattr(report, f.name)}
    about = {name: getattr(report, name) for name in ("batch", "version", "engine", "reader")}
    attributes = {f"bridge.{name}": value for name, value in {**about, **counts}.items() if value is not None}
    run = RunName(report.pipeline, report.verb, report.topic)
    began_ms = end_ms - round(1000 * report.seconds)
    name = f"{report.verb} batch"
    yield _span(name, context, run, began_ms, end_ms, resource, attributes=attributes, links=links)
    for number, step in enumerate(report.steps):
        ids = _context(context.trace_id, context.span_id, number)
        within = SpanContext(context.trace_id, ids.span_id, is_remote=False, trace_flags=context.trace_flags)
        step_end_ms = step.began_ms + round(1000 * step.seconds)
        yield _span(step.name, within, run, step.began_ms, step_end_ms, resource, parent=context)


def _run_spans(
    run: RunName, began_ms: int, end_ms: int, error: BaseException | None, resource: Any
) -> list[ReadableSpan]:
    from opentelemetry.trace import Status, StatusCode

    status = Status(StatusCode.OK)
    if error is not None and not isinstance(error, (KeyboardInterrupt, SystemExit)):
        status = Status(StatusCode.ERROR, type(error).__name__)
    context = _context(*run, os.getpid(), threading.get_ident(), began_ms)
    return [_span(f"{run.verb} run", context, run, began_ms, end_ms, resource, status=status)]


def _span(
    name: str, context: SpanContext, run: RunName, began_ms: int, end_ms: int, resource: Any, **more: Any
) -> ReadableSpan:
    from opentelemetry.sdk.trace import ReadableSpan

    own = {f"bridge.{label}": value for label, value in run._asdict().items() if value}
    attributes = {**own, **more.pop("attributes", {})}
    return ReadableSpan(
        name,
        context,
        resource=resource,
        attributes=attributes,
        instrumentation_scope=_scope(),
        start_time=began_ms * _NS,
        end_time=end_ms * _NS,
        **more,
    )
