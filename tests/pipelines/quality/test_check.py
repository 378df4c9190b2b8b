"""The suite runs on one version of the table, and the report says which.

The report of a check: on the disk by path and by URI, and on S3.

The suite of a check on S3: read, proposed, and not overwritten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from bridge import config
from bridge.definition import Definition, DeltaTarget
from bridge.delta.result_table import QUALITY_RESULTS, ResultTable
from bridge.errors import BridgeError, DefinitionError, TableError
from bridge.metrics.monitoring import Monitoring
from bridge.pipelines.quality.check import (
    check,
    load_suite,
    refuse_existing,
    write_report_file,
    write_suite_file,
)
from tests.metrics.test_prometheus import gateway
from tests.object_store import BUCKET, ObjectStore

FILE = """\
version: 1
name: things
topic:
  ddl: |
    CREATE TABLE things (id BIGINT, part STRING, n INT, PRIMARY KEY (id, part) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = 'things', 'properties.bootstrap.servers' = '127.0.0.1:1',
      'key.format' = 'json', 'value.format' = 'json')
delta: {path: table}
run: {checkpoint: checkpoint, trigger: available-now}
quality: {suite: things.json}
"""
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
