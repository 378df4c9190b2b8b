"""All metrics of the bridge: the table of `METRICS` is the only place that names them.

docs/metrics.md and the dashboard are generated from it. Names that Flink's connector metrics have are
Flink's (FLIP-33); a counter ends in `_total` at the endpoint, as OpenMetrics asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from bridge.metrics.observed import Arrivals, Histogram, Observed
from bridge.metrics.steps import TRANSACTION, now_at

LABELS = ("pipeline", "verb", "topic")
"""What each sample has beside the labels of its metric."""


class Kind(Enum):
    """The types of OpenMetrics that are used here."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Sample:
    """A value and its labels."""

    value: float | Histogram
    labels: Mapping[str, str] | None = None


Read = Callable[[Observed, int], "Iterable[Sample]"]
"""Returns the samples at a time in epoch milliseconds; none where there is no value."""


@dataclass(frozen=True)
class Metric:
    """A metric as users see it."""

    name: str
    kind: Kind
    unit: str
    verbs: tuple[str, ...]
    """The verbs that have it."""
    meaning: str
    read: Read
    labels: tuple[str, ...] = ()

    @property
    def is_flinks(self) -> bool:
        """Whether Flink has a metric of this name, which means the same: the bridge's own have no capitals."""
        return self.name != self.name.lower()

    @property
    def exposed(self) -> str:
        """The name at the endpoint."""
        return f"bridge_{self.name}{'_total' if self.kind is Kind.COUNTER else ''}"


_VERBS = {
    "all": ("ingest", "publish", "insert"),
    "table": ("ingest", "insert"),
    "runs": ("ingest", "publish", "run"),
    **{verb: (verb,) for verb in ("ingest", "publish", "check", "verify")},
}


def _total(name: str) -> Read:
    return lambda of, _: [Sample(getattr(of.total, name))]


def _own(name: str) -> Read:
    return lambda of, _: [Sample(getattr(of, name))]


def _rate(name: str) -> Read:
    return lambda of, at_ms: [Sample(of.per_second(name, at_ms))]


def _last(value: Callable[[Observed, int], float | None]) -> Read:
    def read(of: Observed, at_ms: int) -> list[Sample]:
        found = value(of, at_ms) if of.last is not None else None
        return [] if found is None else [Sample(found)]

    return read


def _since_newest(then: str) -> Read:
    """From the timestamp of the newest record of the last batch to a time of it."""

    def lag(of: Observed, _: int) -> float | None:
        end, newest = getattr(of.last, then), of.last.newest_record_ms if of.last else None
        return None if end is None or newest is None else max(0, end - newest)

    return _last(lag)


def _of_last(name: str) -> Read:
    """`name` may end in a factor: `seconds*1000`."""
    field, _, factor = name.partition("*")

    def value(of: Observed, _: int) -> float | None:
        found = getattr(of.last, field)
        return None if found is None else float(factor or 1) * found

    return _last(value)


def _idle(of: Observed, at_ms: int) -> list[Sample]:
    return [Sample(max(0, at_ms - (of.last_records_ms or of.since_ms)))]


def _watermark_lag(of: Observed, at_ms: int) -> float | None:
    at = of.last.watermark_ms if of.last else None
    return None if at is None else at_ms - at


def _changes(of: Observed, _: int) -> list[Sample]:
    by_kind = {"+I": of.total.inserted, "+U": of.total.updated, "-D": of.total.deleted}
    return [Sample(count, {"kind": kind}) for kind, count in by_kind.items()]


def _verifications(of: Observed, _: int) -> list[Sample]:
    failed = of.total.failed_comparisons
    return [Sample(of.batches - failed, {"result": "compared"}), Sample(failed, {"result": "failed"})]


def _ways(of: Observed, _: int) -> list[Sample]:
    return [Sample(n, {"reader": reader, "engine": engine}) for (reader, engine), n in of.ways.items()]


def _reasons(of: Observed, _: int) -> list[Sample]:
    return [Sample(n, {"part": part, "reason": reason}) for (part, reason), n in of.reasons.items()]


def _partitions(value: Callable[[Arrivals, int], float]) -> Read:
    def read(of: Observed, at_ms: int) -> list[Sample]:
        return [
            Sample(value(arrivals, at_ms), {"partition": f"{topic}-{partition}"})
            for (topic, partition), arrivals in of.arrivals.items()
        ]

    return read


def _pending(arrivals: Arrivals, _: int) -> float:
    read = arrivals.read
    return 0 if read is None else max(0, read.end - read.next)


def _steps(of: Observed, _: int) -> list[Sample]:
    return [Sample(histogram, {"step": name}) for name, histogram in of.steps.items()]


def _step_now(of: Observed, _: int) -> list[Sample]:
    found = now_at(of.pipeline, of.verb)
    return [] if found is None else [Sample(found[1], {"step": found[0]})]


def _transaction(of: Observed, _: int) -> list[Sample]:
    name, seconds = now_at(of.pipeline, of.verb) or ("", 0.0)
    return [Sample(seconds if name == TRANSACTION else 0.0)]


def _lease(of: Observed, _: int) -> list[Sample]:
    return [Sample(1, {"owner": of.owner})] if of.owner else []


def _expectations(of: Observed, _: int) -> list[Sample]:
    counts = (of.last.expectations if of.last else None) or {}
    return [Sample(count, {"result": result}) for result, count in counts.items()]


def _last_commit(of: Observed, _: int) -> float | None:
    at = of.last.committed_ms if of.last else None
    return None if at is None else at / 1000


_READS: Mapping[str, Read] = {
    "changes": _changes,
    "expectations": _expectations,
    "idle": _idle,
    "lag": _partitions(Arrivals.lag_seconds),
    "last_commit": _last(_last_commit),
    "lease": _lease,
    "pending": _partitions(_pending),
    "reasons": _reasons,
    "step_now": _step_now,
    "steps": _steps,
    "transaction": _transaction,
    "verifications": _verifications,
    "watermark_lag": _last(_watermark_lag),
    "ways": _ways,
}
_READS_OF: Mapping[str, Callable[[str], Read]] = {
    "last": _of_last,
    "own": _own,
    "rate": _rate,
    "since": _since_newest,
    "total": _total,
}
_TABLE = """
numRecordsIn counter records ingest total:records_in | Records read from the topic
numRecordsInPerSecond gauge records/s ingest rate:records_in | Records read a second, last minute
numBytesIn counter bytes ingest total:bytes_in | Bytes of their keys and values
numBytesInPerSecond gauge bytes/s ingest rate:bytes_in | Bytes read a second, last minute
currentFetchEventTimeLag gauge ms ingest since:read_ms |
    From the timestamp of the newest record of the last batch to when it was read
currentEmitEventTimeLag gauge ms ingest since:committed_ms |
    From the timestamp of the newest record of the last batch to its commit
sourceIdleTime gauge ms ingest idle | Since the commit of the last batch with records
pendingRecords gauge records ingest last:pending_records | Offsets behind the end of the topic
watermarkLag gauge ms ingest watermark_lag | The time minus the watermark, of a DDL that has one
numRecordsOut counter records publish total:records_out | Records sent, tombstones included
numRecordsOutPerSecond gauge records/s publish rate:records_out | Records sent a second, last minute
numBytesOut counter bytes publish total:bytes_out | Bytes of their keys and values
numBytesOutPerSecond gauge bytes/s publish rate:bytes_out | Bytes sent a second, last minute
currentSendTime gauge ms publish last:send_seconds*1000 | How long sending the last range took
commits counter commits all own:batches | Batches that were committed
changes counter rows table changes kind | Rows changed in the table
unchanged counter changes ingest total:unchanged | Changes without effect on the table
bad_records counter records table total:bad_records | Bad records
quarantined counter records table total:quarantined | Records and rows written to the quarantine
unexpected_rows counter rows all total:unexpected_rows | Rows that fail the gate
keys_in_two_partitions counter keys ingest total:keys_in_two_partitions | Keys with records in two partitions
tombstones counter records publish total:tombstones | Tombstones sent
lost_records counter records publish total:lost | Records that the broker did not acknowledge
pending_versions gauge versions publish last:pending_records | Versions not published yet
version gauge version all last:version | The version written, or published up to
files_written counter files table total:files_written | Data files added by commits
bytes_written counter bytes table total:bytes_written | Bytes of these files
files_rewritten counter files table total:files_rewritten |
    Data files removed by commits: their rows are in others, or gone
bytes_rewritten counter bytes table total:bytes_rewritten | Bytes of these files
log_commits gauge commits ingest last:log_commits | Commits since the table's last checkpoint
transactions counter transactions publish total:transactions |
    Transactions committed, with 'sink.delivery-guarantee' = 'exactly-once'
transaction_age_seconds gauge s publish transaction | How long transactions have been open; 0 if none is
step_seconds histogram s all steps step | Seconds of a batch's steps
step_age_seconds gauge s all step_now step | How long the step that runs now has taken
pending_records_of_partition gauge records ingest pending partition |
    Offsets behind the end of a partition; of topics with at most 100
lag_seconds_of_partition gauge s ingest lag partition |
    For how long the oldest record that is not applied has been seen in the partition
lease_info gauge - runs lease owner | 1; the label names the process that runs it
expectations gauge expectations check expectations result | Expectations of the last check
verifications counter comparisons verify verifications result |
    Comparisons of topic and table, and whether they came to an end
differing_keys gauge keys verify last:differing_keys |
    Keys whose rows differ between topic and table, by the last comparison
batch_seconds histogram s all own:seconds | Seconds of a batch
freshness_seconds histogram s ingest own:freshness | From the timestamp of the oldest record of a batch to its commit
event_time_lag_seconds gauge s ingest last:event_time_lag_seconds |
    The time minus the newest value of the watermark column
last_commit_timestamp_seconds gauge s all last_commit | When the last batch was committed
batches counter batches ingest ways reader,engine | Batches by what read them and the merge engine
by_spark counter batches ingest reasons part,reason |
    Batches that Spark read or merged, by the reason why not a faster way
"""
"""A line for each: name, kind, unit, verbs, what reads it (with a field of what is observed, of its totals or its last
batch), labels, and behind `|` the meaning."""


def _metric(line: str) -> Metric:
    facts, meaning = line.split(" | ")
    name, kind, unit, verbs, read, *labels = facts.split()
    how, _, field = read.partition(":")
    reads = _READS_OF[how](field) if field else _READS[how]
    labelled = tuple(labels[0].split(",")) if labels else ()
    return Metric(name, Kind(kind), unit.strip("-"), _VERBS[verbs], meaning, reads, labelled)


METRICS: tuple[Metric, ...] = tuple(map(_metric, _TABLE.replace("|\n   ", "|").strip().splitlines()))
