"""Shows metrics as `--metrics` and the pipeline files say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from bridge.console import Screen
from bridge.metrics import ignore
from bridge.metrics.monitoring import Monitoring
from bridge.metrics.otlp import tracing
from bridge.metrics.prometheus import exporting, shown


@contextmanager
def metrics_shown(screen: Screen, watched: Iterable[Monitoring]) -> Iterator[None]:
    """Around all runs of a command: prints where the metrics are, and keeps their counters from run to run, those that
    a collector gets, too."""
    watched = tuple(watched)
    with ExitStack() as stack:
        for target in dict.fromkeys(of.metrics for of in watched if of.metrics):
            stack.enter_context(exporting(target, ignore))
            screen.info(f"metrics: {shown(target)}")
        for collector in dict.fromkeys(of.otlp for of in watched if of.otlp):
            stack.enter_context(tracing(collector, ignore))
        yield
