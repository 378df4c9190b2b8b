"""What lineage is made of: the datasets of a run, and what its batches did with them since it began."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime

from bridge.metrics.datasets import Assertion, Dataset, Flow
from bridge.metrics.reports import BatchReport, Counts, RunName, Summary

Moved = tuple[int | None, int]
"""The offsets of a partition from (None if it is not known) and to, exclusive."""


class ObservedFlow:
    """Takes the reports of one run, from any thread."""

    error: str | None = None
    """What failed the run."""

    def __init__(self, run: RunName, flow: Flow, since: datetime) -> None:
        self.run, self.flow, self.since = run, flow, since
        self._lock = threading.Lock()
        self._totals: dict[tuple[str, str], Summary] = {}
        self._moved: dict[tuple[str, int], Moved] = {}
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

    def moved(self, dataset: Dataset) -> list[tuple[int, Moved]]:
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
