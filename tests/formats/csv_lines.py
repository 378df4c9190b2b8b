"""Lines of flink-csv, read in both ways that there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from bridge.formats import catalog
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.schema import RowType
from tests.formats.support import decode_all


def read(spark: SparkSession, row: RowType, payloads: Any, options: Mapping[str, Any]) -> list[Any]:
    """The values of the row, or the error; a glance has the same or is in doubt."""
    decoder, documents = catalog.get("csv").decoder(row, options), [p.encode() for p in payloads]
    found = decode_all(spark, decoder, documents)
    glanced = decode_all(spark, decoder, documents, fast=True, steps=True)
    for document, known, seen in zip(documents, found, glanced, strict=True):
        assert seen in (known, (None, NEEDS_FULL_DECODE)), document
    return [error if rows is None else tuple(rows[0][1].values()) for rows, error in found]


def short(expected: int, found: int) -> str:
    return f"Row length mismatch. {expected} fields expected but was {found}."
