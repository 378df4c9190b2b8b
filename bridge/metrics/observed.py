"""What the metrics of one pipeline are made of: the sums of its batches, the last one, and the last minute."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import Counter, deque
from dataclasses import dataclass, field

from bridge.metrics.reports import BatchReport, Counts, PartitionRead, now_ms

RATE_SECONDS = 60
"""Flink's MeterView has the same span."""
_MOST_ENDS = 1000
SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
FRESHNESS_SECONDS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)


@dataclass
class Histogram:
    """Counts values by their upper bounds."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    sum: float = 0.0
    least: float = math.inf
    most: float = -math.inf

    def add(self, value: float) -> None:
        """Counts a value in the first bucket whose bound is not below it; the last bucket has no bound."""
        self.counts = self.counts or [0] * (len(self.bounds) + 1)
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value
        self.least, self.most = min(self.least, value), max(self.most, value)

    def buckets(self) -> list[tuple[str, int]]:
        """Returns each bound, as Prometheus writes it, and how many values are not above it."""
        counts, total, found = self.counts or [0] * (len(self.bounds) + 1), 0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), counts, strict=True):
            total += count
            found.append((bound, total))
        return found


@dataclass
class Arrivals:
    """Where a partition ended at which time, from which follows how old the oldest record is that is not read."""

    read: PartitionRead | None = None
    ends: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_MOST_ENDS))
    """(epoch milliseconds, end), both ascending, from the newest end that is read on."""

    def add(self, read: PartitionRead, at_ms: int) -> None:
        """Takes what a batch says of the partition."""
        self.read = read
        if not self.ends or self.ends[-1][1] < read.end:
            self.ends.append((at_ms, read.end))
        while len(self.ends) > 1 and self.ends[0][1] <= read.next:
            self.ends.popleft()

    def lag_seconds(self, at_ms: int) -> float:
        """Returns for how long the oldest record that is not read has been seen in the topic; 0 if all are read."""
        if self.read is None or self.read.next >= self.read.end:
            return 0.0
        seen = next((at for at, end in self.ends if end > self.read.next), at_ms)
        return max(0, at_ms - seen) / 1000


class Observed:
    """Takes the reports of one verb of one pipeline, from any thread; read it within `lock`."""

    def __init__(self, pipeline: str, verb: str, topic: str = "", owner: str = "") -> None:
        self.pipeline, self.verb, self.topic, self.owner = pipeline, verb, topic, owner
        self.lock = threading.Lock()
        self.since_ms = now_ms()
        self.total, self.batches = Counts(), 0
        self.last: BatchReport | None = None
        self.last_records_ms: int | None = None
        """When the last batch with records was committed."""
        self.seconds, self.freshness = Histogram(SECONDS), Histogram(FRESHNESS_SECONDS)
        self.steps: dict[str, Histogram] = {}
        """Seconds by the name of the step."""
        self.arrivals: dict[tuple[str, int], Arrivals] = {}
        """Of each partition."""
        self.ways: Counter[tuple[str, str]] = Counter()
        """Batches by reader and engine."""
        self.reasons: Counter[tuple[str, str]] = Counter()
        """Batches by `reader` or `engine`, and the reason why it was Spark."""
        self._recent: deque[tuple[int, BatchReport]] = deque()

    def add(self, report: BatchReport) -> None:
        """Takes the report of a batch."""
        with self.lock:
            self.batches += 1
            self.total = Counts(**self.total.sums(report))
            if not report.failed_comparisons:  # what the comparison before has found still holds
                self.last = report
            at_ms = report.committed_ms or now_ms()
            if report.records_in or report.records_out:
                self.last_records_ms = at_ms
            self.seconds.add(report.seconds)
            if report.committed_ms is not None and report.oldest_record_ms is not None:
                self.freshness.add(max(0, report.committed_ms - report.oldest_record_ms) / 1000)
            for step in report.steps:
                self.steps.setdefault(step.name, Histogram(SECONDS)).add(step.seconds)
            for read in report.partitions:
                at = read.topic, read.partition
                self.arrivals.setdefault(at, Arrivals()).add(read, at_ms)
            self._take_way(report)
            self._recent.append((at_ms, report))
            self._forget(at_ms)

    def per_second(self, name: str, at_ms: int) -> float:
        """Returns how much was counted a second under a name of `Counts` in the last minute, or since the start.

        A batch counts over all the time that it took; until another one as long may have ended, the minute is that
        before its end.
        """
        if self._recent:
            ended_ms, report = self._recent[-1]
            at_ms = max(ended_ms, at_ms - round(1000 * report.seconds))
        self._forget(at_ms)
        span = min(RATE_SECONDS, max(1.0, (at_ms - self.since_ms) / 1000))
        first_ms = at_ms - RATE_SECONDS * 1000
        counted = sum(getattr(report, name) * _part(first_ms, at, report) for at, report in self._recent)
        return float(counted) / span

    def _forget(self, at_ms: int) -> None:
        while self._recent and self._recent[0][0] <= at_ms - RATE_SECONDS * 1000:
            self._recent.popleft()

    def _take_way(self, report: BatchReport) -> None:
        ways = []
        for part, text in (("reader", report.reader), ("engine", report.engine)):
            name, _, reason = (text or "").partition(" (")
            ways.append(name)
            if name == "spark" and reason:
                self.reasons[part, reason.removesuffix(")")] += 1
        self.ways[ways[0], ways[1]] += 1


def _part(first_ms: int, ended_ms: int, report: BatchReport) -> float:
    """Which part of the time that a batch took is after `first_ms`."""
    took_ms = 1000 * report.seconds
    return 1.0 if took_ms <= ended_ms - first_ms else (ended_ms - first_ms) / took_ms
