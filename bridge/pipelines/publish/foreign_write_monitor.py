"""When a publish looks for foreign writes: after every range, and every 10 seconds while the table does not change."""

from __future__ import annotations

import time
from dataclasses import replace

from bridge.definition import Definition, Topic
from bridge.delta.table import Table
from bridge.offsets import Offsets
from bridge.pipelines.publish.delivery import Delivery
from bridge.pipelines.publish.foreign_writes import Repair, repair_foreign_writes
from bridge.pipelines.runtime.monitoring import Notices
from bridge.publish_progress import PublishProgress

__all__ = ["ForeignWriteMonitor"]

_CHECK_SECONDS = 10.0


class ForeignWriteMonitor:
    """The checks of one run; warnings go to its `notices`. An idle run checks every `check_seconds`."""

    def __init__(
        self,
        definition: Definition,
        delivery: Delivery,
        notices: Notices,
        *,
        check_seconds: float = _CHECK_SECONDS,
    ) -> None:
        self._definition, self._delivery, self._notices = definition, delivery, notices
        self._check_seconds, self._checked_at = check_seconds, float("-inf")

    def is_due(self, progress: PublishProgress) -> bool:
        """Whether an idle run should check now, as the last check is `check_seconds` ago. False where progress has no
        ends to compare with."""
        return progress.ends is not None and time.monotonic() - self._checked_at >= self._check_seconds

    def repair(
        self, topic: Topic, table: Table, progress: PublishProgress, *, before: Offsets | None, sent: int
    ) -> Repair:
        """Repair what others wrote since the ends `before`, in which time this run sent `sent` records; see
        `repair_foreign_writes`. `progress` is not recorded yet."""
        definition = replace(self._definition, topic=topic)
        repair = repair_foreign_writes(definition, table, self._delivery, progress, before=before, sent=sent)
        self._checked_at = time.monotonic()
        self._notices.add(repair.warning)
        return repair
