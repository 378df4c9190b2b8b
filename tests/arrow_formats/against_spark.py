"""Compares an Arrow decoder with both of Spark's paths."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.arrow_formats.base import ArrowDecoder
from bridge.arrow_formats.catalog import arrow_decoder
from bridge.ddl import parse
from bridge.definition import FormatSpec
from bridge.formats import catalog
from bridge.formats.base import NEEDS_FULL_DECODE, FastPathDecoder
from bridge.pipelines.ingest.writer_schemas import with_writer_schemas
from bridge.schema import RowField, RowType
from bridge.ways import NotThisWay


def spec(format: str, types: dict[str, str], **options: Any) -> FormatSpec:
    """A format with fields of these types, as DDL."""
    columns = ", ".join(f"`{name}` {type}" for name, type in types.items())
    table = parse(f"CREATE TABLE t ({columns}) WITH ('connector' = 'kafka')")
    fields = tuple(RowField(c.name, c.type) for c in table.schema.physical)
    return FormatSpec(format, {k.replace("_", "-"): v for k, v in options.items()}, RowType(fields), ())


def made(given: FormatSpec) -> ArrowDecoder:
    """The decoder as consumers have it."""
    decoder = arrow_decoder(given)
    return with_writer_schemas(decoder, given)


def array(payloads: Sequence[bytes]) -> pa.BinaryArray:
    return pa.array(payloads, pa.binary())


def by_arrow(given: FormatSpec, payloads: Sequence[bytes]) -> list[dict[str, Any] | None]:
    """The row of each payload, decoded alone; None where it needs a full decode."""
    decoder, rows = made(given), list[dict[str, Any] | None]()
    for payload in payloads:
        try:
            rows += decoder.decode(array([payload])).to_pylist()
        except NotThisWay:
            rows.append(None)
    return rows


def by_spark(spark: SparkSession, given: FormatSpec, payloads: Sequence[bytes]) -> pa.Table:
    """The outcomes of all payloads in their order, in one job: columns `full` and `fast`."""
    x, made = F.col("x"), pa.table({"i": pa.array(range(len(payloads))), "x": array(payloads)})
    decoder, frame = catalog.get(given.name).decoder(given.row, given.options), spark.createDataFrame(made)
    assert isinstance(decoder, FastPathDecoder)
    decoded = decoder.decode_fast(frame.coalesce(1), x, "fast").withColumn("full", decoder.decode(x))
    return decoded.select("i", "full", "fast").toArrow().sort_by("i")


def exact(value: Any) -> Any:
    """What is equal only for equal values: floats by their bits, others by their type and text."""
    if isinstance(value, dict):
        return {name: exact(v) for name, v in value.items()}
    if isinstance(value, list):
        return [exact(v) for v in value]
    return struct.pack(">d", value) if isinstance(value, float) else (type(value), str(value))


def compare(spark: SparkSession, given: FormatSpec, payloads: Sequence[bytes]) -> int:
    """Assert that no payload is read otherwise, alone or with others; return how many of them Arrow reads."""
    rows = by_arrow(given, payloads)
    read = [at for at, row in enumerate(rows) if row is not None]
    # Spark reads years that Python's dates do not have, so only the rows that Arrow reads are taken.
    outcomes = by_spark(spark, given, payloads).take(pa.array(read, pa.int64())).to_pylist()
    for at, outcome in zip(read, outcomes, strict=True):
        for path in ("full", "fast"):
            error = outcome[path]["error"]
            if error == NEEDS_FULL_DECODE and path == "fast":
                continue
            assert error is None, (path, payloads[at], rows[at], error)
            expected = exact([{"kind": "+I", "row": rows[at]}])
            assert exact(outcome[path]["rows"]) == expected, (path, payloads[at], rows[at], outcome)
    # The integer -0 of JSON makes a batch need a full decode that has -0.0, too.
    odd = rb"-0[^.0-9eE]" if given.name == "json" else rb"$^"
    plain = [at for at in read if not re.search(odd, payloads[at])]
    together = made(given).decode(array([payloads[at] for at in plain]))
    assert exact(together.to_pylist()) == exact([rows[at] for at in plain])
    return len(read)
