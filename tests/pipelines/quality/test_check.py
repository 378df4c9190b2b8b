"""The suite runs on one version of the table, and the report says which.

The report of a check: on the disk by path and by URI, and on S3.

The suite of a check on S3: read, proposed, and not overwritten.

What a check reads: the shipped suite in one scan of the table's files, and nothing persisted in Spark's cache.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from bridge import config
from bridge.definition import Definition, DeltaTarget
from bridge.delta.result_table import QUALITY_RESULTS, ResultTable
from bridge.errors import BridgeError, DefinitionError, TableError
from bridge.metrics.monitoring import Monitoring
from bridge.pipelines.quality.check import (
    Checked,
    check,
    load_suite,
    refuse_existing,
    write_report_file,
    write_suite_file,
)
from bridge.quality.summary import scope
from tests.config.files import pipeline_text
from tests.metrics.test_prometheus import gateway
from tests.object_store import BUCKET, ObjectStore

FILE = pipeline_text(
    "id BIGINT, part STRING, n INT, PRIMARY KEY (id, part) NOT ENFORCED",
    name="things",
    sections="quality: {suite: things.json}\n",
)
SUITE = {
    "name": "things",
    "expectations": [
        {"type": "expect_key_to_be_unique", "kwargs": {"column_list": ["id", "part"]}},
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "n", "min_value": 0}},
    ],
    "meta": {},
}


@pytest.fixture
def definition(tmp_path: Path) -> Definition:
    (tmp_path / "things.json").write_text(json.dumps(SUITE))
    (tmp_path / "things.yaml").write_text(FILE)
    return config.load(tmp_path / "things.yaml")


def write(spark: SparkSession, definition: Definition, *rows: tuple[int, str | None, int]) -> None:
    frame = spark.createDataFrame(rows, "id bigint, part string, n int")
    frame.write.format("delta").mode("append").save(str(definition.delta.path))


def test_a_good_table_passes_and_the_report_lies_beside_the_file(
    spark: SparkSession, definition: Definition
) -> None:
    write(spark, definition, (1, "a", 5), (1, None, 6), (2, "a", 7))
    checked = check(spark, definition)
    assert checked.verdict.success and checked.verdict.row_count == 3
    assert checked.version == 0
    assert checked.report == f"{definition.base}/reports/things.html"
    assert "<title>" in Path(checked.report).read_text(encoding="utf-8")


def test_failures_name_keys_and_nothing_else(spark: SparkSession, definition: Definition) -> None:
    write(spark, definition, (1, "a", 5), (2, None, -987654))
    write(spark, definition, (1, "a", 5))
    with gateway() as (url, told):
        alerted = replace(definition, run=replace(definition.run, monitoring=Monitoring.of(None, None, url)))
        checked = check(spark, alerted)
    assert [o.success for o in checked.verdict.expectations] == [False, False]
    assert '"cause": "check"' in told[0] and "version 1: 2 expectations failed" in told[0]
    duplicated, negative = checked.verdict.expectations
    assert list(duplicated.example_keys) == [{"id": 1, "part": "a"}]
    assert list(negative.example_keys) == [{"id": 2, "part": None}]
    assert "987654" not in Path(checked.report).read_text(encoding="utf-8")


def rows_of(spark: SparkSession, definition: Definition) -> list[Row]:
    assert definition.quality
    frame = QUALITY_RESULTS.stored(spark, definition.quality.results)
    assert frame is not None
    return frame.orderBy("started", "number").collect()


@pytest.mark.slow
def test_results_are_kept_and_tell_what_became_worse(spark: SparkSession, definition: Definition) -> None:
    write(spark, definition, (1, "a", 5), (2, None, -1))
    first = check(spark, definition)
    assert (first.history.runs, first.now.inserted) == ((), None)
    write(spark, definition, (1, "a", 5))
    spark.sql(f"DELETE FROM delta.`{definition.delta.path}` WHERE id = 2")
    second = check(spark, definition, trigger="schedule")

    unique, between = second.verdict.expectations
    assert (unique.success, between.success) == (False, True)
    assert second.history.regressed(unique) and not second.history.regressed(between)
    course = second.history.trend(unique)
    assert course.last_passed == first.verdict.started_at and course.failing_since is None
    assert second.history.trend(between).failing_since == first.verdict.started_at
    (before,) = second.history.runs
    assert (before.run, before.rows, before.critical, before.total) == (first.verdict.subject.run, 2, 1, 2)
    assert (second.now.inserted, second.now.updated, second.now.deleted) == (1, 0, 1)

    results = rows_of(spark, definition)
    assert [(r["run_id"], r["number"], r["trigger"], r["success"]) for r in results] == [
        (first.verdict.subject.run, 1, "check", True),
        (first.verdict.subject.run, 2, "check", False),
        (second.verdict.subject.run, 1, "schedule", False),
        (second.verdict.subject.run, 2, "schedule", True),
    ]
    newest = results[2].asDict()
    assert newest["observed"] == "1 key occurs more than once (2 rows)"
    assert (newest["columns"], newest["severity"], newest["unexpected_count"]) == (
        ["id", "part"],
        "critical",
        2,
    )
    assert (newest["table_version"], newest["row_count"], newest["inserted"]) == (2, 2, 1)
    assert newest["newest_arrival"] is not None and newest["lag"] is None
    assert [r["inserted"] for r in results] == [None, None, 1, 1]


def test_results_that_cannot_be_kept_are_loud_and_the_report_is_there(
    spark: SparkSession, definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise TableError("no space")

    write(spark, definition, (1, "a", 5))
    monkeypatch.setattr(ResultTable, "append", full)
    with pytest.raises(
        TableError, match=r"no space\. The check itself is done: 0 of 2 .* failed; see .*html"
    ):
        check(spark, definition)
    assert Path(definition.base, "reports", "things.html").is_file()


def test_a_place_of_results_that_holds_something_else_is_refused_before_anything_runs(
    spark: SparkSession, definition: Definition
) -> None:
    write(spark, definition, (1, "a", 5))
    assert definition.quality
    other = DeltaTarget(path=f"{definition.base}/other")
    spark.range(1).write.format("delta").save(str(other.path))
    wrong = replace(definition, quality=replace(definition.quality, results=other))
    with pytest.raises(TableError, match="is not a table of quality results"):
        check(spark, wrong)
    assert not Path(definition.base, "reports").exists()


def test_without_a_suite_or_a_table_it_says_so(spark: SparkSession, definition: Definition) -> None:
    with pytest.raises(TableError, match="no Delta table at"):
        check(spark, definition)
    with pytest.raises(DefinitionError, match="has no `quality` section"):
        check(spark, replace(definition, quality=None))


def test_a_path_and_a_uri_of_the_disk_are_files(spark: SparkSession, tmp_path: Path) -> None:
    write_report_file(spark, "<html>1", str(tmp_path / "reports" / "a.html"))
    write_report_file(spark, "<html>2", (tmp_path / "reports" / "b.html").as_uri())
    files = sorted((tmp_path / "reports").iterdir())
    assert [(file.name, file.read_text()) for file in files] == [("a.html", "<html>1"), ("b.html", "<html>2")]


def test_a_report_on_s3_is_an_object_that_the_next_one_replaces(
    spark: SparkSession, store: ObjectStore, unique: Callable[[str], str]
) -> None:
    folder = unique("reports")
    for text in ("<html>é", "<html>2"):
        write_report_file(spark, text, f"s3a://{BUCKET}/{folder}/orders.html")
        assert store.text(f"{folder}/orders.html") == text
    assert store.names(folder) == [f"{folder}/orders.html"]


def test_a_store_that_refuses_the_report_is_named(spark: SparkSession, store: ObjectStore) -> None:
    for name, value in store.settings("no-such-bucket").items():
        spark.conf.set(name, value)
    place = "s3a://no-such-bucket/orders.html"
    with pytest.raises(
        BridgeError, match=r"^s3a://no-such-bucket/orders\.html: the quality report cannot be"
    ):
        write_report_file(spark, "<html>", place)


SUITE_FILE_SUITE = """\
{"name": "s", "expectations": [{"type": "expect_key_to_be_unique", "kwargs": {"column_list": ["id"]}}]}"""


def test_a_suite_on_s3_is_written_once_and_read(
    spark: SparkSession, store: ObjectStore, unique: Callable[[str], str]
) -> None:
    uri = f"s3a://{BUCKET}/{unique('suites')}/orders.json"
    with pytest.raises(
        DefinitionError, match=re.escape(f"{uri}: the quality suite cannot be read: there is")
    ):
        load_suite(spark, uri)
    refuse_existing(spark, uri, overwrite=False)
    write_suite_file(spark, SUITE_FILE_SUITE, uri)
    found = load_suite(spark, uri)
    assert (found.name, found.file, len(found)) == ("s", uri, 1)
    with pytest.raises(DefinitionError, match="exists and was not changed: replace it with `--overwrite`"):
        refuse_existing(spark, uri, overwrite=False)
    refuse_existing(spark, uri, overwrite=True)


def test_a_store_that_refuses_is_named(spark: SparkSession, store: ObjectStore) -> None:
    for name, value in store.settings("no-such-bucket").items():
        spark.conf.set(name, value)
    uri = "s3a://no-such-bucket/orders.json"
    with pytest.raises(DefinitionError, match=re.escape(uri)):
        load_suite(spark, uri)
    with pytest.raises(BridgeError, match=re.escape(f"{uri}: the suite cannot be written")):
        write_suite_file(spark, SUITE_FILE_SUITE, uri)


def test_a_suite_on_the_disk(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "expectations" / "orders.json"
    write_suite_file(spark, SUITE_FILE_SUITE, str(file))
    assert len(load_suite(spark, str(file))) == len(load_suite(spark, file.as_uri())) == 1
    for place in (str(file), file.as_uri()):
        with pytest.raises(DefinitionError, match="exists and was not changed"):
            refuse_existing(spark, place, overwrite=False)


COST_SUITE = Path(__file__).parents[3] / "expectations" / "orders.json"
COST_FILE = pipeline_text(
    "order_id BIGINT, customer STRING, status STRING, quantity INT, amount DECIMAL(10,2), updated_at TIMESTAMP(3), "
    "note STRING, WATERMARK FOR updated_at AS updated_at, PRIMARY KEY (order_id) NOT ENFORCED",
    sections=f"quality: {{suite: {COST_SUITE}}}\n",
)
FILES = 3


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> Definition:
    """A table of 3,000 good orders in three files."""
    (tmp_path / "orders.yaml").write_text(COST_FILE)
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
