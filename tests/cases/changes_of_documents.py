"""Runs the kinds `decode` and `encode`: one document of a format and its changes, without a topic or a table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import struct_type
from bridge.definition import FormatSpec
from bridge.formats import catalog
from bridge.formats.base import ChangeEncoder, DecodedColumn
from bridge.schema import RowType
from tests.cases import pipeline
from tests.cases.bench import Bench
from tests.cases.case import Part
from tests.cases.outcome import Mismatch, Unsupported
from tests.cases.values import comparable, from_case, payload

_AT = DecodedColumn()
_ANY_TOPIC = "documents"
_Row = tuple[Any, ...] | None


def decode(bench: Bench, part: Part) -> None:
    """Decodes the part's record; compares its rows (or the first one and their number) and its metadata."""
    spec = _spec(bench, part)
    record = part.take("record")
    if record is None:
        raise Unsupported("a document to decode without a record")
    decoder = catalog.get(spec.name).decoder(spec.row, spec.options, metadata=spec.metadata)
    frame = bench.world.spark.createDataFrame([(payload(record["value"]),)], "payload binary")
    found = frame.select(decoder.for_payloads(frame).decode(F.col("payload")).alias("d")).collect()[0]["d"]
    if found[_AT.error] is not None:
        raise Mismatch(f"a bad document: {found[_AT.error]}")
    rows = found[_AT.rows] or []
    count = part.take("rows_from_this_message", 1)
    if count != len(rows):
        raise Mismatch(f"rows: wanted {count}, there are {len(rows)}")
    wanted = part.take("first_row") or part.take("row")
    if wanted is not None:
        _same("row", _comparable(wanted, spec.row), comparable(rows[0][_AT.row], RowType(spec.row.fields)))
    if part.has("metadata"):
        _check_metadata(part.take("metadata"), rows[0][_AT.metadata].asDict())


def _check_metadata(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Compares `name`, or a property: `name.size`, `name[0]`, `name_startswith`. Points in time are milliseconds."""
    for key, value in wanted.items():
        inside = re.fullmatch(r"(.+?)(\.size|\[(\d+)\]|_startswith)", key)
        name, suffix, at = inside.groups() if inside else (key, "", None)
        have = found[name]
        if suffix == ".size":
            have = len(have)
        elif suffix == "_startswith":
            have = have[: len(value)]
        elif at is not None:
            have = have[int(at)]
        elif hasattr(have, "timestamp"):
            have = round((have.timestamp()) * 1000)
        _same(f"metadata {key}", value, have)


def encode(bench: Bench, part: Part) -> None:
    """Encodes the part's changes; compares the documents.

    With as many documents as changes, an update is a delete and a create, as in Flink; otherwise it is one message.
    Both are tested: the one message must decode to its changes.
    """
    spec = _spec(bench, part)
    changes = [(c[0], _python(c[1:], spec.row)) for c in part.take("changes") or []]
    wanted = part.take("expected_records") or []
    as_json = str(part.take("compare") or "") == "as JSON"
    pairs = list(_singles(changes))
    joined = list(_joined(changes))
    made = _encoded(bench.world.spark, spec, pairs if len(wanted) == len(pairs) else joined)
    expected = [payload(record["value"]) for record in wanted]
    if as_json:
        _same("documents", [json.loads(e or b"null") for e in expected], [json.loads(m) for m in made])
    else:
        _same("documents", expected, made)
    _read_back(bench.world.spark, spec, _encoded(bench.world.spark, spec, joined), changes)


def _spec(bench: Bench, part: Part) -> FormatSpec:
    """Returns the format of the value, resolved from a pipeline file."""
    made = pipeline.options_of(part, _ANY_TOPIC, bench.world.broker.bootstrap)
    return pipeline.write(bench.folder, bench.name, pipeline.create_table(part, made)).topic.value


def _python(values: Any, row: RowType) -> tuple[Any, ...]:
    return cast(tuple[Any, ...], from_case(values, RowType(row.fields)))


def _comparable(values: Any, row: RowType) -> Any:
    return comparable(_python(values, row), RowType(row.fields))


def _singles(changes: list[tuple[str, tuple[Any, ...]]]) -> Iterator[tuple[_Row, _Row]]:
    """Yields (before, after) for each change separately."""
    for kind, row in changes:
        yield (row, None) if kind in ("-U", "-D") else (None, row)


def _joined(changes: list[tuple[str, tuple[Any, ...]]]) -> Iterator[tuple[_Row, _Row]]:
    """Yields (before, after), with the two changes of an update in one."""
    before: _Row = None
    for kind, row in changes:
        if kind == "-U":
            before = row
        else:
            yield (row, None) if kind == "-D" else (before, row)
            before = None


def _encoded(spark: SparkSession, spec: FormatSpec, pairs: list[tuple[_Row, _Row]]) -> list[bytes]:
    encoder = cast(ChangeEncoder, catalog.get(spec.name).encoder(spec.row, spec.options))
    one = struct_type(spec.row)
    shape = T.StructType(
        [T.StructField("i", T.IntegerType()), T.StructField("before", one), T.StructField("after", one)]
    )
    frame = spark.createDataFrame([(i, *p) for i, p in enumerate(pairs)], shape, verifySchema=False)
    written = encoder.encode_change(frame, F.col("before"), F.col("after"), "e")
    return [bytes(row["e"]) for row in sorted(written.select("i", "e").collect())]


def _read_back(
    spark: SparkSession, spec: FormatSpec, documents: list[bytes], changes: list[tuple[str, tuple[Any, ...]]]
) -> None:
    decoder = catalog.get(spec.name).decoder(spec.row, spec.options)
    frame = spark.createDataFrame(list(enumerate(documents)), "i int, payload binary")
    found = sorted(frame.select("i", decoder.decode(F.col("payload")).alias("d")).collect())
    rows = [(r[_AT.kind], comparable(r[_AT.row], spec.row)) for f in found for r in f["d"][_AT.rows] or []]
    _same("read back", [(kind, comparable(row, spec.row)) for kind, row in changes], rows)


def _same(what: str, wanted: Any, found: Any) -> None:
    if wanted != found:
        raise Mismatch(f"{what}: wanted {wanted!r}, there is {found!r}")
