"""What a run tells those who watch it: metrics, events and alerts. Nothing that fails here stops a pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bridge.metrics.alerts import Alerts
from bridge.metrics.events import Events
from bridge.metrics.otlp import tracing
from bridge.metrics.prometheus import exporting
from bridge.metrics.reports import Listener, RunName
from bridge.secret import Secret

__all__ = ["NOWHERE", "Monitoring", "monitored"]


@dataclass(frozen=True)
class Monitoring:
    """Where a run shows what it does; None is nowhere."""

    metrics: str | None = None
    """`run.metrics`: an address, a .prom file or the URL of a push gateway."""
    events: str | None = None
    """`run.events`: `stdout` or a file."""
    alert: Secret | None = None
    """`run.alert`: the URL of a webhook, at which anyone who knows it can post."""
    otlp: str | None = None
    """`run.otlp`: the URL of a collector of OpenTelemetry."""

    @classmethod
    def of(
        cls, metrics: str | None, events: str | None, alert: str | None, otlp: str | None = None
    ) -> Monitoring:
        """Return it for values as they are written."""
        return cls(metrics, events, None if alert is None else Secret(alert), otlp)

    def relative_to(self, base: str) -> Monitoring:
        """Return it with files relative to the folder of the pipeline file or script; to the working folder where that
        one is on an object store."""
        metrics, events = self.metrics, self.events
        if "://" in base:
            return self
        if metrics is not None and metrics.endswith(".prom"):
            metrics = str(Path(base) / metrics)
        if events not in (None, "stdout"):
            events = str(Path(base) / str(events))
        return replace(self, metrics=metrics, events=events)

    def with_metrics(self, target: str | None) -> Monitoring:
        """Return it with `--metrics` in place of `run.metrics`; as it is without one."""
        return self if target is None else replace(self, metrics=target)


NOWHERE = Monitoring()


@contextmanager
def monitored(
    monitoring: Monitoring, listener: Listener, run: RunName, *, owner: str = ""
) -> Iterator[Listener]:
    """Around a run: yields the listener to give it, which calls `listener` in the end. An error of the run is an event
    and an alert. `owner` is the process that runs it. Raises DefinitionError where a library is missing."""
    with (
        exporting(monitoring.metrics, listener, run, owner) as shown,
        tracing(monitoring.otlp, shown, run, owner) as exported,
    ):
        events = Events(monitoring.events, run) if monitoring.events else None
        alerts = Alerts(monitoring.alert, run) if monitoring.alert else None
        alerting = alerts.listen(exported) if alerts else exported
        listen = events.listen(alerting) if events else alerting
        try:
            if events:
                events.write("started")
            yield listen
        except BaseException as error:
            if events:
                events.failed(error)
            if alerts:
                alerts.failed(error)
            raise
        else:
            if events:
                events.write("ended")
        finally:
            if alerts:
                alerts.close()
