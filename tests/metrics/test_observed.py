"""Sums, rates of the last minute, buckets and ways of what a pipeline reports."""

from __future__ import annotations

from bridge.metrics.observed import Histogram, Observed
from bridge.metrics.reports import BatchReport


def test_rates_are_those_of_the_last_minute() -> None:
    observed = Observed("orders", "ingest")
    observed.since_ms = 0
    for second in (10, 30, 70):
        observed.add(BatchReport("orders", "ingest", second, committed_ms=second * 1000, records_in=60))
    assert observed.total.records_in == 180 and observed.batches == 3
    assert observed.per_second("records_in", 80_000) == 2.0
    assert observed.per_second("records_in", 200_000) == 0.0


def test_the_first_seconds_are_no_minute() -> None:
    observed = Observed("orders", "ingest")
    observed.since_ms = 0
    observed.add(BatchReport("orders", "ingest", 0, committed_ms=3000, records_in=60))
    assert observed.per_second("records_in", 6000) == 10.0


def test_a_bucket_holds_its_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    assert histogram.buckets() == [("1.0", 0), ("2.0", 0), ("+Inf", 0)]
    for value in (1.0, 1.5, 9.0):
        histogram.add(value)
    assert histogram.buckets() == [("1.0", 1), ("2.0", 2), ("+Inf", 3)] and histogram.sum == 11.5


def test_reasons_are_those_of_spark() -> None:
    observed = Observed("orders", "ingest")
    ways = [
        ("consumer", "deletion-vectors (3 of 9 files)"),
        ("spark (the key format is raw)", "spark"),
        (None, None),
    ]
    for reader, engine in ways:
        observed.add(BatchReport("orders", "ingest", 0, reader=reader, engine=engine))
    assert observed.ways == {("consumer", "deletion-vectors"): 1, ("spark", "spark"): 1, ("", ""): 1}
    assert observed.reasons == {("reader", "the key format is raw"): 1}


def test_freshness_is_that_of_the_oldest_record() -> None:
    observed = Observed("orders", "ingest")
    observed.add(
        BatchReport("orders", "ingest", 0, committed_ms=9000, oldest_record_ms=1000, newest_record_ms=8000)
    )
    assert observed.freshness.sum == 8.0
    observed.add(BatchReport("orders", "ingest", 1, committed_ms=9000))
    assert sum(observed.freshness.counts) == 1
