"""Casts to TIMESTAMP(p) give what Flink 2.0.2 gives, before 1970 and inside of other types, too."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tests.ddl.helpers import table

BY_FLINK = {
    "1969-12-31 23:59:59.999999": {
        3: "1969-12-31 23:59:59.999",
        1: "1970-01-01 00:00:00",
        0: "1970-01-01 00:00:00",
    },
    "1969-12-31 23:59:58.5": {
        3: "1969-12-31 23:59:58.5",
        1: "1969-12-31 23:59:58.5",
        0: "1969-12-31 23:59:59",
    },
    "2020-01-01 00:00:00.987654": {
        6: "2020-01-01 00:00:00.987654",
        3: "2020-01-01 00:00:00.987",
        1: "2020-01-01 00:00:00.9",
        0: "2020-01-01 00:00:00",
    },
}
"""What CAST(x AS TIMESTAMP(p)) is in Flink, and what an INSERT writes into such a column."""


def test_casts_cut_as_flink_does(spark: SparkSession) -> None:
    asked: list[tuple[str | None, int, str | None]] = [
        (text, digits, found) for text, by in BY_FLINK.items() for digits, found in by.items()
    ]
    asked += [("1969-12-31 23:59:59.999999", 4, "1969-12-31 23:59:59.9999"), (None, 2, None)]
    computed = []
    for n, (text, digits, _) in enumerate(asked):
        type = "TIMESTAMP" if n % 2 else "TIMESTAMP_LTZ"
        value = f"CAST({repr(text) if text else 'NULL'} AS {type}(6))"
        computed.append(f"c{n} AS CAST({value} AS {type}({digits}))")
    columns = table("x STRING", *computed).schema.computed
    row = spark.range(1).selectExpr(*(f"CAST({c.spark} AS STRING)" for c in columns)).first()
    assert row is not None and list(row) == [found for *_, found in asked]


def test_times_inside_of_other_types_are_cut(spark: SparkSession) -> None:
    spark.range(1).selectExpr(
        "TIMESTAMP_NTZ '2020-01-01 00:00:00.987654' AS ts", "CAST(NULL AS STRUCT<a: TIMESTAMP_NTZ>) AS none"
    ).createOrReplaceTempView("times")
    columns = table(
        "ts TIMESTAMP(6)",
        "none ROW<a TIMESTAMP(6)>",
        "a AS CAST(ARRAY[ROW(ts, 1)] AS ARRAY<ROW<t TIMESTAMP(1), n INT>>)",
        "m AS CAST(MAP_FROM_ARRAYS(ARRAY[ts], ARRAY[ts]) AS MAP<TIMESTAMP(3), TIMESTAMP(0)>)",
        "n AS CAST(none AS ROW<a TIMESTAMP(0)>)",
        "d AS CAST(TO_TIMESTAMP('2020-01-01 00:00:00.987654') AS TIMESTAMP(6))",
    ).schema.computed
    row = spark.table("times").selectExpr(*(f"CAST({c.spark} AS STRING)" for c in columns)).first()
    assert row is not None and list(row) == [
        "[{2020-01-01 00:00:00.9, 1}]",
        "{2020-01-01 00:00:00.987 -> 2020-01-01 00:00:00}",
        None,
        "2020-01-01 00:00:00.987",
    ]
