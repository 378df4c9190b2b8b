"""Rows to Avro bytes."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.formats.avro.format import AvroFormat
from bridge.schema import ArrayType
from tests.formats.support import encode_all, row_type, scalar

_FORMAT = AvroFormat()
_NEW = {"timestamp_mapping.legacy": False}


def test_a_null_where_the_schema_has_none_fails_with_the_field(spark: SparkSession) -> None:
    row = row_type(a=scalar("INT").required(), r=row_type(b=ArrayType(scalar("INT").required())))
    encoder = _FORMAT.encoder(row, _NEW)
    assert encode_all(spark, encoder, row, [(1, None), (1, (None,)), None])[2] is None
    for bad, field in (((None, None), "'a'"), ((1, ([None],)), "'r.b'")):
        with pytest.raises(PySparkException, match=f"format 'avro': field {field} is null"):
            encode_all(spark, encoder, row, [bad])
