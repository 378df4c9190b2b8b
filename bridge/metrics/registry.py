"""All metrics of the bridge: `METRICS` is the only place that names them.

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
    is_flinks: bool = False
    """Whether Flink has a metric of this name, which means the same."""

    @property
    def exposed(self) -> str:
        """The name at the endpoint."""
        return f"bridge_{self.name}{'_total' if self.kind is Kind.COUNTER else ''}"


_ALL, _IN, _OUT = ("ingest", "publish", "insert"), ("ingest",), ("publish",)
_TABLE, _RUNS = ("ingest", "insert"), ("ingest", "publish", "run")


def _total(name: str) -> Read:
    return lambda of, _: [Sample(getattr(of.total, name))]


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


def _of_last(name: str, factor: float = 1.0) -> Read:
    def value(of: Observed, _: int) -> float | None:
        found = getattr(of.last, name)
        return None if found is None else factor * found

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


def _flinks(name: str, kind: Kind, unit: str, verbs: tuple[str, ...], meaning: str, read: Read) -> Metric:
    return Metric(name, kind, unit, verbs, meaning, read, is_flinks=True)


_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
METRICS: tuple[Metric, ...] = (
    _flinks("numRecordsIn", _C, "records", _IN, "Records read from the topic", _total("records_in")),
    _flinks(
        "numRecordsInPerSecond",
        _G,
        "records/s",
        _IN,
        "Records read a second, last minute",
        _rate("records_in"),
    ),
    _flinks("numBytesIn", _C, "bytes", _IN, "Bytes of their keys and values", _total("bytes_in")),
    _flinks("numBytesInPerSecond", _G, "bytes/s", _IN, "Bytes read a second, last minute", _rate("bytes_in")),
    _flinks(
        "currentFetchEventTimeLag",
        _G,
        "ms",
        _IN,
        "From the timestamp of the newest record of the last batch to when it was read",
        _since_newest("read_ms"),
    ),
    _flinks(
        "currentEmitEventTimeLag",
        _G,
        "ms",
        _IN,
        "From the timestamp of the newest record of the last batch to its commit",
        _since_newest("committed_ms"),
    ),
    _flinks("sourceIdleTime", _G, "ms", _IN, "Since the commit of the last batch with records", _idle),
    _flinks(
        "pendingRecords",
        _G,
        "records",
        _IN,
        "Offsets behind the end of the topic",
        _of_last("pending_records"),
    ),
    _flinks(
        "watermarkLag",
        _G,
        "ms",
        _IN,
        "The time minus the watermark, of a DDL that has one",
        _last(_watermark_lag),
    ),
    _flinks("numRecordsOut", _C, "records", _OUT, "Records sent, tombstones included", _total("records_out")),
    _flinks(
        "numRecordsOutPerSecond",
        _G,
        "records/s",
        _OUT,
        "Records sent a second, last minute",
        _rate("records_out"),
    ),
    _flinks("numBytesOut", _C, "bytes", _OUT, "Bytes of their keys and values", _total("bytes_out")),
    _flinks(
        "numBytesOutPerSecond", _G, "bytes/s", _OUT, "Bytes sent a second, last minute", _rate("bytes_out")
    ),
    _flinks(
        "currentSendTime",
        _G,
        "ms",
        _OUT,
        "How long sending the last range took",
        _of_last("send_seconds", 1000),
    ),
    Metric("commits", _C, "commits", _ALL, "Batches that were committed", lambda of, _: [Sample(of.batches)]),
    Metric(
        "changes",
        _C,
        "rows",
        ("ingest", "insert"),
        "Rows changed in the table",
        _changes,
        labels=("kind",),
    ),
    Metric("unchanged", _C, "changes", _IN, "Changes without effect on the table", _total("unchanged")),
    Metric("bad_records", _C, "records", ("ingest", "insert"), "Bad records", _total("bad_records")),
    Metric(
        "quarantined",
        _C,
        "records",
        _TABLE,
        "Records and rows written to the quarantine",
        _total("quarantined"),
    ),
    Metric("unexpected_rows", _C, "rows", _ALL, "Rows that fail the gate", _total("unexpected_rows")),
    Metric(
        "keys_in_two_partitions",
        _C,
        "keys",
        _IN,
        "Keys with records in two partitions",
        _total("keys_in_two_partitions"),
    ),
    Metric("tombstones", _C, "records", _OUT, "Tombstones sent", _total("tombstones")),
    Metric(
        "lost_records", _C, "records", _OUT, "Records that the broker did not acknowledge", _total("lost")
    ),
    Metric(
        "pending_versions", _G, "versions", _OUT, "Versions not published yet", _of_last("pending_records")
    ),
    Metric("version", _G, "version", _ALL, "The version written, or published up to", _of_last("version")),
    Metric("files_written", _C, "files", _TABLE, "Data files added by commits", _total("files_written")),
    Metric("bytes_written", _C, "bytes", _TABLE, "Bytes of these files", _total("bytes_written")),
    Metric(
        "files_rewritten",
        _C,
        "files",
        _TABLE,
        "Data files removed by commits: their rows are in others, or gone",
        _total("files_rewritten"),
    ),
    Metric("bytes_rewritten", _C, "bytes", _TABLE, "Bytes of these files", _total("bytes_rewritten")),
    Metric(
        "log_commits",
        _G,
        "commits",
        _IN,
        "Commits since the table's last checkpoint",
        _of_last("log_commits"),
    ),
    Metric(
        "transactions",
        _C,
        "transactions",
        _OUT,
        "Transactions committed, with 'sink.delivery-guarantee' = 'exactly-once'",
        _total("transactions"),
    ),
    Metric(
        "transaction_age_seconds",
        _G,
        "s",
        _OUT,
        "How long transactions have been open; 0 if none is",
        _transaction,
    ),
    Metric("step_seconds", _H, "s", _ALL, "Seconds of a batch's steps", _steps, labels=("step",)),
    Metric(
        "step_age_seconds",
        _G,
        "s",
        _ALL,
        "How long the step that runs now has taken",
        _step_now,
        labels=("step",),
    ),
    Metric(
        "pending_records_of_partition",
        _G,
        "records",
        _IN,
        "Offsets behind the end of a partition; of topics with at most 100",
        _partitions(_pending),
        labels=("partition",),
    ),
    Metric(
        "lag_seconds_of_partition",
        _G,
        "s",
        _IN,
        "For how long the oldest record that is not applied has been seen in the partition",
        _partitions(Arrivals.lag_seconds),
        labels=("partition",),
    ),
    Metric(
        "lease_info", _G, "", _RUNS, "1; the label names the process that runs it", _lease, labels=("owner",)
    ),
    Metric(
        "expectations",
        _G,
        "expectations",
        ("check",),
        "Expectations of the last check",
        _expectations,
        labels=("result",),
    ),
    Metric(
        "verifications",
        _C,
        "comparisons",
        ("verify",),
        "Comparisons of topic and table, and whether they came to an end",
        _verifications,
        labels=("result",),
    ),
    Metric(
        "differing_keys",
        _G,
        "keys",
        ("verify",),
        "Keys whose rows differ between topic and table, by the last comparison",
        _of_last("differing_keys"),
    ),
    Metric("batch_seconds", _H, "s", _ALL, "Seconds of a batch", lambda of, _: [Sample(of.seconds)]),
    Metric(
        "freshness_seconds",
        _H,
        "s",
        _IN,
        "From the timestamp of the oldest record of a batch to its commit",
        lambda of, _: [Sample(of.freshness)],
    ),
    Metric(
        "event_time_lag_seconds",
        _G,
        "s",
        _IN,
        "The time minus the newest value of the watermark column",
        _of_last("event_time_lag_seconds"),
    ),
    Metric(
        "last_commit_timestamp_seconds",
        _G,
        "s",
        _ALL,
        "When the last batch was committed",
        _last(_last_commit),
    ),
    Metric(
        "batches",
        _C,
        "batches",
        _IN,
        "Batches by what read them and the merge engine",
        _ways,
        labels=("reader", "engine"),
    ),
    Metric(
        "by_spark",
        _C,
        "batches",
        _IN,
        "Batches that Spark read or merged, by the reason why not a faster way",
        _reasons,
        labels=("part", "reason"),
    ),
)
