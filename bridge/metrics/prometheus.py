"""Serves the metrics of this process to Prometheus: at an address, in a text file, or through a push gateway.

It needs prometheus-client (`pip install 'changelog-bridge[metrics]'`). Whatever fails here is a warning of the next
batch and never stops a pipeline.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from bridge.errors import DefinitionError
from bridge.metrics.observed import Histogram, Observed
from bridge.metrics.registry import LABELS, METRICS, Kind, Metric
from bridge.metrics.reports import BatchReport, Listener, RunName, now_ms

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family
    from prometheus_client.registry import CollectorRegistry

__all__ = ["LEGAL", "PUSH_SECONDS", "check_installed", "exporting", "is_installed", "parsed", "shown"]

_LOOPBACK = "127.0.0.1"
PUSH_SECONDS = 10.0
"""How often a gateway gets new values."""
_PUSH_TIMEOUT_SECONDS = 5.0
_JOB = "changelog_bridge"
LEGAL = (
    "an address such as 127.0.0.1:9464, a file whose name ends in .prom (for node_exporter), or the URL of a push "
    "gateway"
)
"""The legal targets."""


def parsed(text: str) -> tuple[str, int] | str:
    """Returns host and port of an address, whose host is the loopback unless it names one; the file or URL as it is.

    Raises ValueError with the legal values for anything else.
    """
    if text.startswith(("http://", "https://")) or text.endswith(".prom"):
        return text
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ValueError(f"not legal; legal values are {LEGAL}")
    return host.strip("[]") or _LOOPBACK, int(port)


def is_installed() -> bool:
    """Returns whether prometheus-client is there."""
    return find_spec("prometheus_client") is not None


def check_installed(option: str) -> None:
    """Raises DefinitionError with the command that installs it where prometheus-client is missing."""
    if not is_installed():
        raise DefinitionError(f"{option} needs prometheus-client: pip install 'changelog-bridge[metrics]'")


def shown(target: str) -> str:
    """Returns where a target's metrics are: the URL to scrape, the file or the gateway."""
    place = parsed(target)
    return place if isinstance(place, str) else f"http://{place[0]}:{place[1]}/metrics"


@contextmanager
def exporting(
    target: str | None, listener: Listener, run: RunName | None = None, owner: str = ""
) -> Iterator[Listener]:
    """Around a run: yields a listener that shows each report to `target`, then calls `listener`.

    The counters of `run` are there from the beginning: a first value that is not 0 is no increase for Prometheus.

    Runs of this process that have the same target share it, and the counters go on as long as one of them is there.
    Raises DefinitionError where prometheus-client is missing.
    """
    if target is None:
        yield listener
        return
    check_installed("run.metrics")
    with _lock:
        shared = _targets.get(target) or _targets.setdefault(target, _Target(target))
        shared.users += 1
    try:
        if run is not None:
            shared.observed(*run, owner)
        yield shared.listen(listener)
    finally:
        with _lock:
            shared.users -= 1
            if not shared.users:
                del _targets[target]
        if not shared.users:
            shared.close()


class _Way(Protocol):
    """How metrics leave the process."""

    def after_batch(self) -> None:
        """Show what is new. Raises OSError."""
        ...

    def close(self) -> None:
        """Show the last values, where that is not done on demand. Raises OSError."""
        ...


class _Target:
    """All pipelines of this process that have the same target."""

    def __init__(self, target: str) -> None:
        from prometheus_client import CollectorRegistry

        self.users = 0
        self._observed: dict[tuple[str, str], Observed] = {}
        self._lock = threading.Lock()
        self._warning: str | None = None
        self._target = target
        self._way: _Way = _Nowhere()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector(self._all))
        try:
            self._way = _way(parsed(target), registry, self._warn)
        except (OSError, OverflowError) as error:
            self._warn(error)

    def observed(self, pipeline: str, verb: str, topic: str, owner: str = "") -> Observed:
        """Return what is shown of a pipeline's verb, which has batches or begins to be shown now."""
        with self._lock:
            return self._observed.setdefault((pipeline, verb), Observed(pipeline, verb, topic, owner))

    def listen(self, listener: Listener) -> Listener:
        def heard(report: BatchReport) -> None:
            self.observed(report.pipeline, report.verb, report.topic).add(report)
            try:
                self._way.after_batch()
            except OSError as error:
                self._warn(error)
            warning, self._warning = self._warning, None
            listener(report if warning is None else report.warned(warning))

        return heard

    def close(self) -> None:
        try:
            self._way.close()
        except OSError as error:
            self._warn(error)

    def _all(self) -> list[Observed]:
        with self._lock:
            return list(self._observed.values())

    def _warn(self, error: Exception) -> None:
        self._warning = f"metrics are not shown at {self._target}: {error}"


class _Nowhere:
    def after_batch(self) -> None: ...

    def close(self) -> None: ...


class _Endpoint:
    """Answers a scrape in a thread of its own."""

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        from prometheus_client import start_http_server

        # Shared by threads: what was observed, of which each takes its own lock.
        self._server, self._thread = start_http_server(port, host, registry)

    def after_batch(self) -> None: ...

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _TextFile:
    """Replaces a file after each batch, in one step."""

    def __init__(self, path: str, registry: CollectorRegistry) -> None:
        self._path, self._registry = path, registry

    def after_batch(self) -> None:
        from prometheus_client import write_to_textfile

        write_to_textfile(self._path, self._registry)

    def close(self) -> None:
        self.after_batch()


class _PushGateway:
    """Pushes every few seconds, in a thread of its own, and at the end. The last values stay at the gateway."""

    def __init__(self, url: str, registry: CollectorRegistry, warn: Callable[[Exception], None]) -> None:
        self._url, self._registry, self._warn = url, registry, warn
        self._ended = threading.Event()
        # Shared by threads: what was observed, of which each takes its own lock; the warning, which is one assignment.
        self._thread = threading.Thread(target=self._push_again, daemon=True, name="bridge-metrics")
        self._thread.start()

    def after_batch(self) -> None: ...

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._push()

    def _push_again(self) -> None:
        while not self._ended.wait(PUSH_SECONDS):
            try:
                self._push()
            except OSError as error:
                self._warn(error)

    def _push(self) -> None:
        from prometheus_client import pushadd_to_gateway

        pushadd_to_gateway(self._url, _JOB, self._registry, timeout=_PUSH_TIMEOUT_SECONDS)


def _way(
    place: tuple[str, int] | str, registry: CollectorRegistry, warn: Callable[[Exception], None]
) -> _Way:
    if not isinstance(place, str):
        return _Endpoint(*place, registry)
    return _TextFile(place, registry) if place.endswith(".prom") else _PushGateway(place, registry, warn)


class _Collector:
    """Reads the values of `METRICS` at the moment of a scrape."""

    def __init__(self, observed: Callable[[], list[Observed]]) -> None:
        self._observed = observed

    def collect(self) -> Iterator[Family]:
        observed, at_ms = self._observed(), now_ms()
        for metric in METRICS:
            yield _family(metric, [of for of in observed if of.verb in metric.verbs], at_ms)


def _family(metric: Metric, observed: list[Observed], at_ms: int) -> Family:
    from prometheus_client import core

    classes: dict[Kind, Any] = {
        Kind.COUNTER: core.CounterMetricFamily,
        Kind.GAUGE: core.GaugeMetricFamily,
        Kind.HISTOGRAM: core.HistogramMetricFamily,
    }
    family: Family = classes[metric.kind](
        f"bridge_{metric.name}", metric.meaning, labels=(*LABELS, *metric.labels)
    )
    for of in observed:
        with of.lock:
            for sample in metric.read(of, at_ms):
                labels = [of.pipeline, of.verb, of.topic, *((sample.labels or {})[n] for n in metric.labels)]
                if isinstance(sample.value, Histogram):
                    family.add_metric(labels, sample.value.buckets(), sample.value.sum)  # type: ignore[attr-defined]
                else:
                    family.add_metric(labels, sample.value)  # type: ignore[attr-defined]
    return family


_lock = threading.Lock()
_targets: dict[str, _Target] = {}
