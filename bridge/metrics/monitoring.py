"""What a run tells those who watch it: metrics, events, alerts, lineage. Nothing that fails here stops a pipeline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bridge.metrics.alerts import Alerts
from bridge.metrics.datasets import Flow
from bridge.metrics.events import Events
from bridge.metrics.lineage import tracked
from bridge.metrics.otlp import tracing
from bridge.metrics.prometheus import exporting
from bridge.metrics.reports import BatchReport, Listener, RunName
from bridge.secret import Secret


@dataclass(frozen=True)
class Monitoring:
    """Where a run shows what it does; None is nowhere."""

    metrics: str | None = field(default=None, repr=False)
    """`run.metrics`: an address, a .prom file or the URL of a push gateway."""
    events: str | None = None
    """`run.events`: `stdout` or a file."""
    alert: Secret | None = None
    """`run.alert`: the URL of a webhook, at which anyone who knows it can post."""
    otlp: str | None = field(default=None, repr=False)
    """`run.otlp`: the URL of a collector of OpenTelemetry."""

    lineage: str | Secret | None = None
    """`run.lineage`: a file, or the URL of a collector of OpenLineage, which may hold a password."""

    @classmethod
    def of(
        cls,
        metrics: str | None,
        events: str | None,
        alert: str | None,
        otlp: str | None = None,
        lineage: str | None = None,
    ) -> Monitoring:
        """Return it for values as they are written."""
        webhook = None if alert is None else Secret(alert)
        return cls(
            metrics, events, webhook, otlp, Secret(lineage) if lineage and "://" in lineage else lineage
        )

    def relative_to(self, base: str) -> Monitoring:
        """Return it with files relative to the folder of the pipeline file or script; to the working folder where that
        one is on an object store."""
        metrics, events, lineage = self.metrics, self.events, self.lineage
        if "://" in base:
            return self
        if metrics is not None and metrics.endswith(".prom"):
            metrics = str(Path(base) / metrics)
        if events not in (None, "stdout"):
            events = str(Path(base) / str(events))
        if lineage is not None and not isinstance(lineage, Secret):
            lineage = str(Path(base) / lineage)
        return replace(self, metrics=metrics, events=events, lineage=lineage)

    def with_metrics(self, target: str | None) -> Monitoring:
        """Return it with `--metrics` in place of `run.metrics`; as it is without one."""
        return self if target is None else replace(self, metrics=target)


NOWHERE = Monitoring()


class Monitored:
    """The listener of a run, which is also told of errors."""

    def __init__(self, listener: Listener, events: Events | None, alerts: Alerts | None) -> None:
        alerting = alerts.listen(listener) if alerts else listener
        self._listen = events.listen(alerting) if events else alerting
        self._events, self._alerts = events, alerts

    def __call__(self, report: BatchReport) -> None:
        """Take a report, as each `Listener` does."""
        self._listen(report)

    def failed(self, error: BaseException) -> None:
        """Write an event and send an alert, also for an error with which the run goes on."""
        if self._events:
            self._events.failed(error)
        if self._alerts:
            self._alerts.failed(error)


@contextmanager
def monitored(
    monitoring: Monitoring,
    listener: Listener,
    run: RunName,
    *,
    owner: str = "",
    died: str | None = None,
    flow: Callable[[], Flow] = Flow,
    stop: threading.Event | None = None,
    parts: Iterable[RunName] = (),
) -> Iterator[Monitored]:
    """Around a run: yields the listener to give it, which calls `listener` in the end. An error of the run is an event
    and an alert. `owner` is the process that runs it; `died` is the run before it, if that could not say itself that it
    ended: an alert tells it; `flow` returns what it reads and writes, if lineage is asked for; `stop` is set when the
    user ends it; `parts` are the pipelines that it runs, whose counters are there from the beginning, too. Raises
    DefinitionError where a library is missing."""
    with (
        ExitStack() as counted,
        exporting(monitoring.metrics, listener, run, owner) as shown,
        tracing(monitoring.otlp, shown, run, owner) as traced,
        tracked(monitoring.lineage, traced, run, flow, stop) as exported,
    ):
        for part in parts if monitoring.metrics is not None else ():
            counted.enter_context(exporting(monitoring.metrics, listener, part))
        events = Events(monitoring.events, run) if monitoring.events else None
        alerts = Alerts(monitoring.alert, run) if monitoring.alert else None
        if alerts and died:
            alerts.send("failed", f"the run before this one was killed, crashed or stalled: {died}")
        listen = Monitored(exported, events, alerts)
        try:
            if events:
                events.write("started")
            yield listen
        except BaseException as error:
            listen.failed(error)
            raise
        else:
            if events:
                events.write("ended")
        finally:
            if events:
                events.close()
            if alerts:
                alerts.close()
