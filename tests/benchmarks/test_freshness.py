"""The writer of a stream keeps its rate, and the time of each record."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition

from benchmarks.freshness import Stream, Writer
from benchmarks.topics import PARTITIONS, Load
from bridge.embedded.broker import Broker


def test_a_stream_is_described_by_what_counts() -> None:
    stream = Stream(rate=5000, seconds=210, warm_seconds=30, rows=1_000_000)
    assert stream.what == "5,000 records a second for 180 s into 1,000,000 rows"


def test_a_writer_keeps_its_rate_and_stamps_each_record_with_the_time_at_which_it_was_sent(
    broker: Broker,
) -> None:
    load = Load.random(301, 50, seed=1, tombstones=0.0)
    broker.create_topic("writer", partitions=PARTITIONS)
    writer = Writer(broker, "writer", load, rate=500)
    writer.send(0, 1)
    writer.flush()
    started = time.time()
    writer.stream(1)
    assert 0.55 < time.time() - started < 20
    assert (np.diff(writer.sent) >= 0).all() and writer.sent[1] >= started
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
    consumer.assign([TopicPartition("writer", p, 0) for p in range(PARTITIONS)])
    stamps: list[int] = []
    while len(stamps) < 301 and time.time() - started < 30:
        stamps += [message.timestamp()[1] for message in consumer.consume(301, 1)]
    consumer.close()
    assert sorted(stamps) == [int(at * 1000) for at in writer.sent]


@pytest.mark.slow
def test_a_small_run_measures_freshness_start_and_publish() -> None:
    """Beside Flink, where that was fetched; in a process of its own, as the command stops its Spark."""
    asked = ["--rows", "2000", "--only", "freshness,start,publish", "--rounds", "1", "--tolerance", "inf"]
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks", *asked], check=False, capture_output=True, text=True
    )
    assert ran.returncode in (0, 1), ran.stderr
    for row in (
        "freshness: 10 records a second for 10 s into 2,000 rows, p99",
        "start: an ingest that finds nothing to do",
        "publish of a table of 2,000 rows, whole process",
    ):
        assert row in ran.stdout
    assert "VOID" not in ran.stdout
