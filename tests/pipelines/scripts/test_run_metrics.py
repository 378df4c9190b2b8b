"""The metrics of a script: the counters of all that it runs are there before its first batch."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from tests.pipelines.scripts.scripts import ScriptRun

TEXT = """
SET 'bridge.metrics' = 'script.prom';
CREATE TABLE views (user_id BIGINT, region STRING) WITH ({kafka}, 'topic' = '{prefix}-views');
CREATE TABLE regions (region STRING, pv BIGINT, PRIMARY KEY (region) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-regions');
CREATE TABLE users (user_id BIGINT) WITH ('connector' = 'delta', 'path' = 'users');
INSERT INTO regions SELECT region, COUNT(*) FROM views GROUP BY region;
INSERT INTO users SELECT user_id FROM views;
"""


def test_counters_begin_at_0(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    """A first value above 0 is no increase for Prometheus, so that alerts would miss bad records of a first batch."""
    script, stopped = ScriptRun(spark, broker, lake, unique("s"), TEXT), threading.Event()
    script.create("views", partitions=1)
    stopped.set()
    script.run(stop=stopped)
    shown = (lake / "script.prom").read_text()
    counted = re.findall(
        r'^bridge_batch_seconds_count\{pipeline="(.*?)",.*verb="(.*?)"\} 0\.0$', shown, re.MULTILINE
    )
    assert sorted(counted) == [
        ("script.regions", "insert"),
        ("script.results-regions", "publish"),
        ("script.sources-views", "ingest"),
        ("script.users", "insert"),
    ]
    assert 'bridge_bad_records_total{pipeline="script.sources-views"' in shown
