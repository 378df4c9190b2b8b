"""Shows metrics as `--metrics` and the pipeline files say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from bridge.console import Screen
from bridge.metrics import ignore
from bridge.metrics.prometheus import exporting, shown

__all__ = ["metrics_shown"]


@contextmanager
def metrics_shown(screen: Screen, targets: Iterable[str | None]) -> Iterator[None]:
    """Around all rounds of a command: prints where the metrics are, and keeps their counters from round to round."""
    with ExitStack() as stack:
        for target in dict.fromkeys(target for target in targets if target):
            stack.enter_context(exporting(target, ignore))
            screen.info(f"metrics: {shown(target)}")
        yield
