"""Compares an Arrow decoder of changes with both of Spark's paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.arrow_formats.base import ArrowChanges, ChangeArrowDecoder
from bridge.arrow_formats.catalog import change_arrow_decoder
from bridge.definition import FormatSpec
from bridge.format_rules.change_documents import before_image_type
from bridge.formats import catalog
from bridge.formats.base import NEEDS_FULL_DECODE, FastPathDecoder
from bridge.pipelines.ingest.writer_schemas import with_writer_schemas
from bridge.ways import NotThisWay
from tests.arrow_formats.against_spark import array, exact

Change = tuple[str, dict[str, Any]]
"""'+' with a row, or '-U' or '-D' with the key's fields."""


def made_changes(given: FormatSpec, key: Sequence[str]) -> ChangeArrowDecoder:
    """The decoder as consumers have it."""
    decoder = change_arrow_decoder(given, key)
    return with_writer_schemas(decoder, given)


def changes_of(made: ArrowChanges) -> list[Change]:
    """The changes in their order."""
    added = [("+", row) for row in made.additions.to_pylist()]
    kinds = ["-D" if is_delete else "-U" for is_delete in made.is_delete]
    retracted = list(zip(kinds, made.retractions.to_pylist(), strict=True))
    placed = dict(zip([*made.addition_places, *made.retraction_places], [*added, *retracted], strict=True))
    assert len(placed) == len(added) + len(retracted)
    return [placed[place] for place in sorted(placed)]


def changes_by_arrow(
    decoder: ChangeArrowDecoder, payloads: Sequence[bytes | None]
) -> list[list[Change] | None]:
    """The changes of each payload, decoded alone; None where it needs a full decode."""
    found = list[list[Change] | None]()
    for payload in payloads:
        try:
            found.append(changes_of(decoder.decode(pa.array([payload], pa.binary()))))
        except NotThisWay:
            found.append(None)
    return found


def by_spark(
    spark: SparkSession, given: FormatSpec, key: Sequence[str], payloads: Sequence[bytes]
) -> pa.Table:
    """The outcomes of all payloads in their order, in one job: columns `full` and `fast`."""
    x, made = F.col("x"), pa.table({"i": pa.array(range(len(payloads))), "x": array(payloads)})
    decoder = catalog.get(given.name).decoder(given.row, given.options, key=key)
    assert isinstance(decoder, FastPathDecoder)
    frame = spark.createDataFrame(made).coalesce(1)
    decoded = decoder.decode_fast(frame, x, "fast").withColumn("full", decoder.decode(x))
    return decoded.select("i", "full", "fast").toArrow().sort_by("i")


def compare_changes(
    spark: SparkSession, given: FormatSpec, key: Sequence[str], payloads: Sequence[bytes]
) -> int:
    """Assert that no payload is read otherwise, alone or with others; return of how many Arrow reads changes."""
    decoder = made_changes(given, key)
    changes = changes_by_arrow(decoder, payloads)
    read = [at for at, found in enumerate(changes) if found is not None]
    key_names = before_image_type(given.row, key).names
    # Spark reads years that Python's dates do not have, so only what Arrow reads is taken.
    outcomes = by_spark(spark, given, key, payloads).take(pa.array(read, pa.int64())).to_pylist()
    for at, outcome in zip(read, outcomes, strict=True):
        for path in ("full", "fast"):
            error = outcome[path]["error"]
            if error == NEEDS_FULL_DECODE and path == "fast":
                continue
            assert error is None, (path, payloads[at], changes[at], error)
            rows = outcome[path]["rows"] or []
            assert not any(row.get("unavailable") for row in rows), (path, payloads[at])
            expected = [_change(row["kind"], row["row"], key_names) for row in rows]
            assert _exact(changes[at] or []) == _exact(expected), (path, payloads[at], changes[at], outcome)
    _compare_together(decoder, [(payloads[at], changes[at] or []) for at in read])
    return sum(bool(changes[at]) for at in read)


def _compare_together(decoder: ChangeArrowDecoder, read: Sequence[tuple[bytes, list[Change]]]) -> None:
    """What is read alone is read alike with others, in order; documents of two kinds may need a full decode."""
    for size in (2, 7, len(read)):
        for start in range(0, len(read), max(1, size)):
            part = read[start : start + size]
            try:
                together = changes_of(decoder.decode(array([payload for payload, _ in part])))
            except NotThisWay:
                continue
            assert _exact(together) == _exact([change for _, found in part for change in found])


def _change(kind: str, row: dict[str, Any], key: Sequence[str]) -> Change:
    return (kind, {name: row[name] for name in key}) if kind in ("-U", "-D") else ("+", row)


def _exact(changes: Sequence[Change]) -> list[Any]:
    return [(kind, exact(row)) for kind, row in changes]
