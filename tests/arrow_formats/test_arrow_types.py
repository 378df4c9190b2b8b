"""The Arrow types are those that Spark gives for the same type."""

from __future__ import annotations

from pyspark.sql import SparkSession

from bridge.arrow_formats.arrow_types import arrow_schema
from tests.formats.fields import FIELDS
from tests.formats.support import row_type


def test_types_are_those_of_a_frame(spark: SparkSession) -> None:
    row = row_type(**{name: type for name, (type, _) in FIELDS.items()})
    frame = spark.createDataFrame([], row.spark().removeprefix("STRUCT<").removesuffix(">"))
    assert arrow_schema(row).equals(frame.toArrow().schema)
