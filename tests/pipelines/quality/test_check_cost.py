"""What a check reads: the shipped suite in one scan of the table's files, and nothing persisted in Spark's cache."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import config
from bridge.definition import Definition
from bridge.pipelines.quality.check import Checked, check
from bridge.quality.summary import scope

SUITE = Path(__file__).parents[3] / "expectations" / "orders.json"
FILE = f"""\
version: 1
name: orders
topic:
  ddl: |
    CREATE TABLE orders (order_id BIGINT, customer STRING, status STRING, quantity INT, amount DECIMAL(10,2),
      updated_at TIMESTAMP(3), note STRING, WATERMARK FOR updated_at AS updated_at, PRIMARY KEY (order_id) NOT ENFORCED)
    WITH ('connector' = 'upsert-kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = '127.0.0.1:1',
      'key.format' = 'json', 'value.format' = 'json')
delta: {{path: table}}
run: {{checkpoint: checkpoint, trigger: available-now}}
quality: {{suite: {SUITE}}}
"""
FILES = 3


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> Definition:
    """A table of 3,000 good orders in three files."""
    (tmp_path / "orders.yaml").write_text(FILE)
    definition = config.load(tmp_path / "orders.yaml")
    _append(spark, definition, 0, FILES * 1000, FILES)
    return definition


def _append(spark: SparkSession, definition: Definition, first: int, end: int, files: int) -> None:
    now = datetime.now(timezone.utc).isoformat()
    rows = spark.range(first, end, 1, files).selectExpr(
        "id AS order_id", "concat('c', id % 7) AS customer", "IF(id % 2 = 0, 'new', 'paid') AS status",
        "CAST(1 + id % 9 AS INT) AS quantity", "CAST(id % 100 AS DECIMAL(10,2)) AS amount",
        f"CAST(TIMESTAMP '{now}' AS TIMESTAMP_NTZ) AS updated_at", "repeat('x', 50) AS note",
    )  # fmt: skip
    rows.write.format("delta").mode("append").save(str(definition.delta.path))


def _scans(spark: SparkSession, after: int) -> list[tuple[int, str]]:
    """(files, columns read) of each scan of a table's files in queries after number `after`, as Spark counted them."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(10_000)
    store = spark._jsparkSession.sharedState().statusStore()
    found = list[tuple[int, str]]()
    for n in _numbers(spark):
        if n <= after:
            continue
        values = store.executionMetrics(n)
        nodes = store.planGraph(n).allNodes()
        for i in range(nodes.size()):
            node = nodes.apply(i)
            if not node.name().startswith("Scan parquet") or "_delta_log" in node.desc():
                continue
            for j in range(node.metrics().size()):
                metric = node.metrics().apply(j)
                if metric.name() == "number of files read":
                    read = values.get(metric.accumulatorId())
                    if read.isDefined():
                        schema = node.desc().split("ReadSchema: ")[-1]
                        found.append((int(read.get().replace(",", "")), schema))
    return found


def _numbers(spark: SparkSession) -> list[int]:
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    return [found.apply(i).executionId() for i in range(found.size())]


@contextmanager
def _watched(spark: SparkSession) -> Iterator[list[int]]:
    """The numbers of frames that were persisted meanwhile, read every few milliseconds."""
    seen, done = list[int](), threading.Event()
    cache = spark._jsparkSession.sharedState().cacheManager()
    before = set(spark.sparkContext._jsc.getPersistentRDDs())  # of tests that let a run die

    def watch() -> None:
        while not done.wait(0.005):
            persistent = spark.sparkContext._jsc.getPersistentRDDs()
            # Delta persists the state of its log itself.
            frames = [
                n
                for n in set(persistent) - before
                if not str(persistent[n].name()).startswith("Delta Table State")
            ]
            seen.append(len(frames) + (not cache.isEmpty()))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def _checked(spark: SparkSession, definition: Definition) -> tuple[Checked, list[tuple[int, str]]]:
    before = max(_numbers(spark))
    checked = check(spark, definition)
    return checked, _scans(spark, before)


def test_the_shipped_suite_takes_one_scan_of_the_columns_it_asks_about(
    spark: SparkSession, orders: Definition
) -> None:
    checked, scans = _checked(spark, orders)
    assert (checked.verdict.row_count, checked.now.event_time is not None) == (FILES * 1000, True)
    assert checked.verdict.success, checked.verdict.failed
    assert [files for files, _ in scans] == [FILES]
    assert "note" not in scans[0][1]
    cost = checked.verdict.cost
    assert cost is not None and (cost.scans, cost.files) == (1, FILES)
    size = sum(file.stat().st_size for file in Path(str(orders.delta.path)).glob("*.parquet"))
    assert cost.bytes == pytest.approx(size, rel=0.01) and cost.seconds > 0
    assert f"One scan of {FILES} files, " in scope(checked.verdict, checked.now)[-1]
    assert json.loads(json.dumps(checked.verdict.as_dict()))["cost"]["scans"] == 1


def test_nothing_is_persisted_while_a_check_runs(spark: SparkSession, orders: Definition) -> None:
    spark.catalog.clearCache()
    _append(spark, orders, 5, 7, 1)
    with _watched(spark) as seen:
        checked, scans = _checked(spark, orders)
    (wrong,) = checked.verdict.failed
    assert wrong.example_keys == ({"order_id": 5}, {"order_id": 6})
    # The second one finds the examples.
    assert [files for files, _ in scans] == [FILES + 1, FILES + 1]
    assert checked.verdict.cost is not None and checked.verdict.cost.scans == 2
    assert len(seen) > 10 and not any(seen)
