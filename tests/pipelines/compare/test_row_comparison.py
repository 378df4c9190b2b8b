"""The comparison finds each kind of difference, and only that."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from bridge.pipelines.compare.row_comparison import Comparison, compare

DDL = "a int, b string, v double"
ROWS = [(1, "x", 1.0), (1, None, 2.0), (None, "x", None), (2, "y", 4.0)]


def run(
    spark: SparkSession, topic: Sequence[tuple[object, ...]], table: Sequence[tuple[object, ...]]
) -> Comparison:
    left, right = (spark.createDataFrame(rows, DDL) for rows in (topic, table))
    return compare(left, right, key=["a", "b"], fields=left.schema.fields)


def test_equal_rows_in_any_order(spark: SparkSession) -> None:
    found = run(spark, ROWS, ROWS[::-1])
    assert found.equal and found.examples == ()
    assert (found.topic_rows, found.table_rows) == (4, 4)
    assert found.topic_checksum == found.table_checksum and len(found.topic_checksum) == 16


def test_every_kind_of_difference_is_counted_and_named(spark: SparkSession) -> None:
    found = run(
        spark, [*ROWS, (3, "only in topic", 1.0)], [*ROWS[:3], (2, "y", 4.5), (4, "only in table", 1.0)]
    )
    assert not found.equal
    assert (found.missing_in_table, found.missing_in_topic, found.different, found.duplicate_keys) == (
        1,
        1,
        1,
        0,
    )
    assert {e.key for e in found.examples} == {
        '{"a":3,"b":"only in topic"}',
        '{"a":4,"b":"only in table"}',
        '{"a":2,"b":"y"}',
    }
    assert found.topic_checksum != found.table_checksum


def test_a_duplicate_key_is_a_difference_even_if_the_rows_are_the_same(spark: SparkSession) -> None:
    found = run(spark, ROWS, [*ROWS, ROWS[1]])
    assert (found.duplicate_keys, found.different) == (1, 0) and not found.equal
    assert [(e.key, e.why) for e in found.examples] == [('{"a":1}', "duplicate_keys")]


def test_two_empty_sides_are_equal(spark: SparkSession) -> None:
    found = run(spark, [], [])
    assert found.equal and found.topic_rows == 0 and found.topic_checksum == "0" * 16


def test_a_key_that_compaction_may_have_taken_is_not_missing(spark: SparkSession) -> None:
    topic, table = (spark.createDataFrame(rows, DDL) for rows in (ROWS[:2], ROWS))
    later = spark.createDataFrame([(None, "x"), (9, "new")], "a int, b string")
    found = compare(topic, table, key=["a", "b"], fields=topic.schema.fields, later=later)
    assert (found.superseded, found.missing_in_topic) == (1, 1)
    assert [e.key for e in found.examples] == ['{"a":2,"b":"y"}']


def test_buckets_that_differ_are_listed(spark: SparkSession) -> None:
    found = run(spark, [(n, "x", 1.0) for n in range(300)], [(n, "x", 1.0 + (n == 7)) for n in range(300)])
    assert len(found.buckets) == 1
    assert found.buckets[0].topic_rows == found.buckets[0].table_rows > 0
    assert found.buckets[0].topic_checksum != found.buckets[0].table_checksum
    assert (found.topic_rows, found.table_rows) == (300, 300)
