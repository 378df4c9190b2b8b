"""The suite runs on one version of the table, and the report says which."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import config
from bridge.definition import Definition
from bridge.errors import DefinitionError, TableError
from bridge.pipelines.check import check

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
    assert checked.report == definition.base / "reports" / "things.html"
    assert "<title>" in checked.report.read_text(encoding="utf-8")


def test_failures_name_keys_and_nothing_else(spark: SparkSession, definition: Definition) -> None:
    write(spark, definition, (1, "a", 5), (2, None, -987654))
    write(spark, definition, (1, "a", 5))
    checked = check(spark, definition)
    assert [o.success for o in checked.verdict.expectations] == [False, False]
    duplicated, negative = checked.verdict.expectations
    assert list(duplicated.example_keys) == [{"id": 1, "part": "a"}]
    assert list(negative.example_keys) == [{"id": 2, "part": None}]
    assert "987654" not in checked.report.read_text(encoding="utf-8")


def test_without_a_suite_or_a_table_it_says_so(spark: SparkSession, definition: Definition) -> None:
    with pytest.raises(TableError, match="no Delta table at"):
        check(spark, definition)
    with pytest.raises(DefinitionError, match="has no `quality` section"):
        check(spark, replace(definition, quality=None))
