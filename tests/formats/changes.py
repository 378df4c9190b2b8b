"""Change documents run through a CDC format's decoder, many in one Spark job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.formats import catalog
from bridge.formats.base import NEEDS_FULL_DECODE, NOTHING, Decoder, FastPathDecoder
from bridge.options.formats import FORMATS
from bridge.schema import RowField, RowType
from tests.formats.shapes import options_of
from tests.formats.support import decode_all, plain, row_type, scalar

GOODS = row_type(id=scalar("INT"), name=scalar("STRING"), weight=scalar("FLOAT"))

UNREADABLE: Mapping[bytes | None, str] = {
    b'{"secret': "malformed JSON",
    b"secret": "not a JSON object",
    b"[{}]": "not a JSON object",
    b'"secret"': "not a JSON object",
    b"  ": "empty document",
    b'{"a":"\xc3\x28secret"}': "not valid UTF-8",
    b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}": "nested more than 1000 deep",
}
"""Payloads that are no document of any CDC format in JSON, and their errors."""


def decoder_of(
    format: str,
    row: RowType = GOODS,
    options: Mapping[str, Any] | None = None,
    *,
    metadata: RowType = NOTHING,
    key: Sequence[str] = (),
) -> Decoder:
    """The format's decoder with its default options, changed by `options`."""
    made = options_of(format, options or {})
    return catalog.get(format).decoder(row, made, metadata=metadata, key=key)


def metadata_of(format: str, *names: str) -> RowType:
    """Metadata of a format by name, in that order; all of it when none is named."""
    known = FORMATS[format].metadata
    return RowType(tuple(RowField(name, known[name]) for name in names or known))


def changes(spark: SparkSession, decoder: Decoder, payloads: Sequence[bytes | None]) -> list[Any]:
    """For each payload its changes as tuples (kind, values...), or its error.

    The fast path has the same, or needs a full decode."""
    full = decode_all(spark, decoder, payloads)
    fast = decode_all(spark, decoder, payloads, fast=True)
    assert [a for a, b in zip(fast, full, strict=True) if a not in (b, (None, NEEDS_FULL_DECODE))] == []
    return [
        error if error is not None else [(kind, *row.values()) for kind, row in rows or []]
        for rows, error in full
    ]


def check_changes(spark: SparkSession, decoder: Decoder, expected: Mapping[Any, Any]) -> None:
    """Each payload has its `changes`, or an error with this text; and no value of "secret" is shown."""
    for (payload, outcome), decoded in zip(
        expected.items(), changes(spark, decoder, list(expected)), strict=True
    ):
        assert outcome in decoded if isinstance(outcome, str) else outcome == decoded, payload
        assert "secret" not in str(decoded)


def details(spark: SparkSession, decoder: Decoder, payloads: Sequence[bytes], field: str) -> list[Any]:
    """The same for a field beside the row, without kinds: `metadata` or `unavailable`."""
    frame = spark.createDataFrame(list(enumerate(payloads)), "i INT, x BINARY").coalesce(1)
    both = frame.withColumn("d", decoder.decode(F.col("x")))
    if isinstance(decoder, FastPathDecoder):
        both = decoder.decode_fast(both, F.col("x"), "fast")
    rows = sorted(both.drop("x").collect())
    assert [r.i for r in rows if "fast" in r and r.fast.error != NEEDS_FULL_DECODE and r.fast != r.d] == []
    return [r.d.error if r.d.error else [plain(x[field]) for x in r.d.rows or []] for r in rows]
