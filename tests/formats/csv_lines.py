"""Lines of CSV, decoded fully and by the fast path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from bridge.formats import catalog
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.schema import RowType
from tests.formats.support import decode_all


def read(spark: SparkSession, row: RowType, payloads: Any, options: Mapping[str, Any]) -> list[Any]:
    """The values of the row, or the error; the fast path has the same or needs a full decode."""
    decoder, documents = catalog.get("csv").decoder(row, options), [p.encode() for p in payloads]
    full = decode_all(spark, decoder, documents)
    fast = decode_all(spark, decoder, documents, fast=True)
    for document, full_outcome, fast_outcome in zip(documents, full, fast, strict=True):
        assert fast_outcome in (full_outcome, (None, NEEDS_FULL_DECODE)), document
    return [error if rows is None else tuple(rows[0][1].values()) for rows, error in full]


def short(expected: int, actual: int) -> str:
    return f"Row length mismatch. {expected} fields expected but was {actual}."
