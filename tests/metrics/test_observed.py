"""Sums, rates of the last minute, buckets and ways of what a pipeline reports."""

from __future__ import annotations

from bridge.metrics.observed import Arrivals, Histogram, Observed
from bridge.metrics.reports import BatchReport, PartitionRead


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


def test_long_batches_are_spread_over_the_time_that_they_took() -> None:
    """Until a batch as long as the last one may have ended; then the rate goes to 0 within a minute."""
    observed = Observed("orders", "ingest")
    observed.since_ms = 0
    for number in (1, 2, 3):
        at_ms = number * 600_000
        observed.add(
            BatchReport("orders", "ingest", number, committed_ms=at_ms, seconds=600, records_in=6_000_000)
        )
        assert {observed.per_second("records_in", at_ms + 1000 * s) for s in (0, 60, 599)} == {10_000}
    assert observed.per_second("records_in", 2_430_000) == 5_000
    assert observed.per_second("records_in", 2_460_000) == 0


def test_a_bucket_holds_its_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    assert histogram.buckets() == [("1.0", 0), ("2.0", 0), ("+Inf", 0)]
    for value in (1.0, 1.5, 9.0):
        histogram.add(value)
    assert histogram.buckets() == [("1.0", 1), ("2.0", 2), ("+Inf", 3)] and histogram.sum == 11.5


def test_reasons_are_those_of_spark() -> None:
    observed = Observed("orders", "ingest")
    ways = [
        ("consumer", "driver (3 of 9 files)"),
        ("spark (the key format is raw)", "spark"),
        (None, None),
    ]
    for reader, engine in ways:
        observed.add(BatchReport("orders", "ingest", 0, reader=reader, engine=engine))
    assert observed.ways == {("consumer", "driver"): 1, ("spark", "spark"): 1, ("", ""): 1}
    assert observed.reasons == {("reader", "the key format is raw"): 1}


def test_freshness_is_that_of_the_oldest_record() -> None:
    observed = Observed("orders", "ingest")
    observed.add(
        BatchReport("orders", "ingest", 0, committed_ms=9000, oldest_record_ms=1000, newest_record_ms=8000)
    )
    assert observed.freshness.sum == 8.0
    observed.add(BatchReport("orders", "ingest", 1, committed_ms=9000))
    assert sum(observed.freshness.counts) == 1


def test_the_lag_of_a_partition_is_the_age_of_its_first_record_that_is_not_read() -> None:
    arrivals = Arrivals()
    for at_ms, next_offset, end in ((1000, 5, 5), (2000, 5, 8), (3000, 5, 12), (4000, 8, 12)):
        arrivals.add(PartitionRead("t", 0, 0, next_offset, end), at_ms)
    assert arrivals.lag_seconds(10_000) == 7.0  # offset 8 came with the end that was seen at 3000
    arrivals.add(PartitionRead("t", 0, 8, 12, 12), 11_000)
    assert arrivals.lag_seconds(60_000) == 0.0
    arrivals.add(PartitionRead("t", 0, 12, 12, 13), 61_000)
    assert arrivals.lag_seconds(61_500) == 0.5
    assert Arrivals().lag_seconds(5) == 0.0
