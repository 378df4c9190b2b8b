"""When a publish looks for foreign writes: after every range, and now and then while the table does not change."""

from __future__ import annotations

import time

from bridge.definition import Definition
from bridge.delta.table import Table
from bridge.offsets import Offsets
from bridge.pipelines.publish.delivery import Delivery
from bridge.pipelines.publish.foreign_writes import Repair, repair_foreign_writes
from bridge.pipelines.runtime.monitoring import Notices
from bridge.publish_progress import PublishProgress

__all__ = ["ForeignWriteMonitor"]

_CHECK_SECONDS = 10.0
"""How often the topic's ends are read while the table does not change."""


class ForeignWriteMonitor:
    """The checks of one run; warnings go to its `notices`."""

    def __init__(self, delivery: Delivery, notices: Notices, check_seconds: float = _CHECK_SECONDS) -> None:
        self._delivery, self._notices, self._check_seconds = delivery, notices, check_seconds
        self._checked_at = float("-inf")

    def is_due(self, progress: PublishProgress) -> bool:
        """Whether an idle run should look: once at its beginning, then every 10 seconds; False where progress has no
        ends to compare with."""
        return progress.ends is not None and time.monotonic() - self._checked_at >= self._check_seconds

    def repair(
        self,
        definition: Definition,
        table: Table,
        progress: PublishProgress,
        *,
        before: Offsets | None,
        sent: int = 0,
    ) -> Repair:
        """Call `repair_foreign_writes`, see there; keep the time and the warning."""
        repair = repair_foreign_writes(definition, table, self._delivery, progress, before=before, sent=sent)
        self._checked_at = time.monotonic()
        self._notices.add(repair.warning)
        return repair
