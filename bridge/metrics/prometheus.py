"""Serves the metrics of this process to Prometheus: at an address, in a text file, or through a push gateway.

It needs prometheus-client (`pip install 'changelog-bridge[metrics]'`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bridge.errors import DefinitionError
from bridge.metrics import targets
from bridge.metrics.observed import Histogram, Observed
from bridge.metrics.registry import LABELS, METRICS, Kind, Metric
from bridge.metrics.reports import BatchReport, Listener, RunName, now_ms
from bridge.metrics.target_urls import check_http_url, is_host, split_login, without_login
from bridge.metrics.targets import Again, Silent, Warn, Way

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family
    from prometheus_client.registry import CollectorRegistry


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
    if text.startswith(("http://", "https://")):
        return check_http_url(text, LEGAL)
    if text.endswith(".prom"):
        return text
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or _LOOPBACK
    if not is_host(host) or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise ValueError(f"not legal; legal values are {LEGAL}")
    return host, int(port)


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
    return without_login(place) if isinstance(place, str) else f"http://{place[0]}:{place[1]}/metrics"


@contextmanager
def exporting(
    target: str | None, listener: Listener, run: RunName | None = None, owner: str = ""
) -> Iterator[Listener]:
    """Around a run: yields a listener that shows each report to `target`; see `targets.exporting`.

    Raises DefinitionError where prometheus-client is missing.
    """
    if target is not None:
        check_installed("run.metrics")
    with targets.exporting(target, _way, listener, run, owner) as listen:
        yield listen


def _way(target: str, observed: Callable[[], list[Observed]], warn: Warn) -> Way:
    place = parsed(target)
    if not isinstance(place, str):
        return _Endpoint(*place, _registry(observed))
    if place.startswith(("http://", "https://")):
        return _PushGateway(place, observed, warn)
    return _TextFile(place, _registry(observed))


def _registry(observed: Callable[[], list[Observed]]) -> CollectorRegistry:
    from prometheus_client import CollectorRegistry

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(observed))
    return registry


class _Endpoint(Silent):
    """Answers a scrape in a thread of its own."""

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        from prometheus_client import start_http_server

        # Shared by threads: what was observed, of which each takes its own lock.
        self._server, self._thread = start_http_server(port, host, registry)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _TextFile(Silent):
    """Replaces a file after each batch, in one step."""

    def __init__(self, path: str, registry: CollectorRegistry) -> None:
        self._path, self._registry = path, registry

    def after_batch(self, report: BatchReport | None = None) -> None:
        from prometheus_client import write_to_textfile

        write_to_textfile(self._path, self._registry)

    def close(self) -> None:
        self.after_batch()


class _PushGateway(Silent):
    """Pushes every few seconds and at the end. The last values stay at the gateway.

    Each run has a group of its own there: a push replaces the metrics of its group, also those of other processes.
    """

    def __init__(self, url: str, observed: Callable[[], list[Observed]], warn: Warn) -> None:
        from prometheus_client.exposition import basic_auth_handler

        self._url, login = split_login(url)
        user, password = login or (None, None)
        self._handler = partial(basic_auth_handler, username=user, password=password)
        self._observed = observed
        self._pushes = Again(PUSH_SECONDS, self._push, warn)

    def close(self) -> None:
        self._pushes.close()

    def _push(self) -> None:
        refused: Exception | None = None
        for of in self._observed():
            try:
                self._push_run(of)
            except Exception as error:  # the others may work
                refused = error
        if refused is not None:
            raise refused

    def _push_run(self, of: Observed) -> None:
        from prometheus_client import pushadd_to_gateway

        pushadd_to_gateway(
            self._url,
            _JOB,
            _registry(lambda: [of]),
            {"pipeline": of.pipeline, "verb": of.verb},
            timeout=_PUSH_TIMEOUT_SECONDS,
            handler=self._handler,
        )


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
