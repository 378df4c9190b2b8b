"""The decoded column of a format, with and without a fast path."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.decode.documents import with_decoded
from bridge.definition import FormatSpec
from bridge.formats import catalog
from tests.formats.made_up import registered
from tests.formats.support import encoded, row_type, scalar


def test_a_decoder_without_a_fast_path_decodes_fully(spark: SparkSession) -> None:
    row = row_type(v=scalar("STRING"))
    frame = spark.createDataFrame([(bytearray(b"ABC"),)], "value binary")
    with registered():
        spec = FormatSpec("upper", {}, row, ("v",))
        for fast in (False, True):
            decoded, decoder = with_decoded(frame, spec, F.col("value"), "d", fast=fast)
            assert decoded.select("d.rows.row.v", "d.error").collect() == [(["abc"], None)]
            assert not decoder.skips_errors
        given = F.struct(F.lit("abc").alias("v"))
        assert encoded(catalog.get("upper").encoder(row, {}), frame, "e", given).collect()[0].e == b"ABC"
