"""What Flink's formats read and wrote, and the same documents and rows by the bridge's decoders and encoders.

`vectors.jsonl` is written by `make flink-vectors`. A case is a format with options and columns. Values are as they are
there: numbers, texts and booleans as they are, others as an object with their kind, and rows without fields that are
null.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.arrow_formats.arrow_types import arrow_type
from bridge.arrow_formats.base import ArrowChanges, ChangeArrowDecoder, RowColumns
from bridge.arrow_formats.catalog import arrow_decoder, arrow_encoder, change_arrow_decoder
from bridge.ddl import parse
from bridge.definition import FormatSpec
from bridge.formats import catalog
from bridge.formats.base import NEEDS_FULL_DECODE, FastPathDecoder
from bridge.options.formats import FORMATS
from bridge.schema import RowField, RowType
from bridge.ways import NotThisWay
from tests.formats.shapes import options_of
from tests.formats.support import encoded
from tests.formats.vector_values import arrow_value, is_error, structs, tagged
from tests.refusals import optional, refusal


@dataclass(frozen=True)
class Decoded:
    """A document, and the rows that are read: kinds with values, or an object with the error."""

    document: bytes | None
    rows: Any


@dataclass(frozen=True)
class Encoded:
    """A row kind with values, and the document that is written for it."""

    kind: str
    row: Any
    document: bytes | None


@dataclass(frozen=True)
class Case:
    """A format with options (as in the DDL, without the prefix) and columns."""

    format: str
    options: Mapping[str, str]
    columns: Mapping[str, str]
    decoded: list[Decoded] = field(default_factory=list)
    encoded: list[Encoded] = field(default_factory=list)

    @cached_property
    def row(self) -> RowType:
        columns = ", ".join(f"`{name}` {type}" for name, type in self.columns.items())
        table = parse(f"CREATE TABLE t ({columns}) WITH ('connector' = 'kafka')", "t.sql")
        return RowType(tuple(RowField(c.name, c.type) for c in table.schema.physical))

    @cached_property
    def spec(self) -> FormatSpec:
        """The format as a definition has it."""
        known = {option.key: option for option in FORMATS[self.format].options}
        given = {key: known[key].parse(text) for key, text in self.options.items()}
        return FormatSpec(self.format, options_of(self.format, given), self.row, self.row.names)

    @property
    def name(self) -> str:
        options = ", ".join(f"{key}={text}" for key, text in self.options.items())
        return f"{self.format} {options} of {', '.join(self.columns)}"


def cases() -> Iterator[Case]:
    """All cases, in the order of the file."""
    found: Case | None = None
    lines = Path(__file__).with_name("vectors.jsonl").read_text().splitlines()
    for line in map(json.loads, lines[1:]):
        if "format" in line:
            if found is not None:
                yield found
            found = Case(line["format"], line["options"], line["columns"])
        elif "decode" in line:
            assert found is not None
            found.decoded.append(Decoded(_document(line["decode"]), line["rows"]))
        else:
            assert found is not None
            kind, row = line["encode"]
            found.encoded.append(Encoded(kind, {"row": row}, _document(line["document"])))
    assert found is not None
    yield found


def _document(shown: Any) -> bytes | None:
    if isinstance(shown, dict):
        return base64.b64decode(shown["bytes"])
    return shown if shown is None else str(shown).encode("utf-8", "surrogatepass")


def decode(spark: SparkSession, case: Case) -> dict[str, list[Any]]:
    """What each path of the bridge reads of the documents, like `Decoded.rows`, by the name of the path; None where the
    path leaves a document to another one."""
    payloads = [d.document for d in case.decoded]
    decoder = catalog.get(case.format).decoder(case.row, case.spec.options)
    made = pa.table({"i": pa.array(range(len(payloads))), "x": pa.array(payloads, pa.binary())})
    frame = spark.createDataFrame(made).coalesce(1)
    frame = frame.withColumn("full", decoder.decode(F.col("x")))
    if isinstance(decoder, FastPathDecoder):
        frame = decoder.decode_fast(frame, F.col("x"), "fast")
    table = frame.drop("x").toArrow().sort_by("i")
    paths = [name for name in table.column_names if name != "i"]
    found = {path: [_outcome(o, case) for o in structs(table[path])] for path in paths}
    if FORMATS[case.format].arrow:
        found["arrow"] = _by_arrow(case)
    if FORMATS[case.format].arrow_changes:
        found["arrow"] = _changes_by_arrow(case)
    return found


def _outcome(outcome: Any, case: Case) -> Any:
    if outcome["error"] == NEEDS_FULL_DECODE:
        return None
    if outcome["error"] is not None:
        return {"error": outcome["error"]}
    return [[change["kind"], tagged(change["row"], case.row)] for change in outcome["rows"] or []]


def _by_arrow(case: Case) -> list[Any]:
    decoder = optional(arrow_decoder)(case.spec)
    found: list[Any] = []
    for wanted in case.decoded:
        read = None
        if decoder is not None and wanted.document is not None:
            with suppress(NotThisWay):
                read = decoder.decode(pa.array([wanted.document], pa.binary()))
        found.append(read if read is None else [["+I", row] for row in _rows_of(read, case)])
    return found


def _changes_by_arrow(case: Case) -> list[Any]:
    """None also for documents that name a column of a type that Arrow's decoders leave to Spark."""
    left_out: list[str] = []
    while column := re.match(r"field '(\w+)' of", refusal(partial(_change_decoder, case)) or ""):
        if len(case.columns) == 1:
            return [None] * len(case.decoded)
        left_out.append(column[1])
        case = replace(case, columns={n: t for n, t in case.columns.items() if n != column[1]})
    decoder = optional(_change_decoder)(case)
    found: list[Any] = []
    for wanted in case.decoded:
        document = wanted.document or b""
        read = None
        if decoder is not None and not any(f'"{name}"'.encode() in document for name in left_out):
            with suppress(NotThisWay):
                read = decoder.decode(pa.array([wanted.document], pa.binary()))
        found.append(read if read is None else _changes(read, wanted.rows, case))
    return found


def _change_decoder(case: Case) -> ChangeArrowDecoder:
    """The decoder of a table whose key has as many columns as it may have: retractions have no others."""
    decoder = optional(change_arrow_decoder)(case.spec, case.row.names)
    return change_arrow_decoder(case.spec, case.row.names[:-1]) if decoder is None else decoder


def _changes(read: ArrowChanges, wanted: Any, case: Case) -> list[Any]:
    """What the decoder does not say is as Flink has it: whether an addition is +U, and what is not in the key."""
    made: dict[int, list[Any]] = {}
    for row, place in zip(_rows_of(read.additions, case), read.addition_places, strict=True):
        made[place] = ["+I", row]
    retracted = zip(_rows_of(read.retractions, case), read.retraction_places, read.is_delete, strict=True)
    for row, place, is_delete in retracted:
        made[place] = ["-D" if is_delete else "-U", row]
    changes = [made[place] for place in sorted(made)]
    given = [] if is_error(wanted) or len(wanted) != len(changes) else wanted
    for change, (kind, row) in zip(changes, given, strict=bool(given)):
        if change[0] == "+I" and kind == "+U":
            change[0] = kind
        elif change[0][0] == "-" and change[0] == kind and _of_key(row, read) == change[1]:
            change[1] = row
    return changes


def _of_key(row: Any, read: ArrowChanges) -> Any:
    key = read.retractions.column_names
    return {"row": {name: value for name, value in row["row"].items() if name in key}}


def _rows_of(table: pa.Table, case: Case) -> list[Any]:
    type = RowType(tuple(f for f in case.row.fields if f.name in table.column_names))
    rows = structs(pa.chunked_array([table.combine_chunks().to_struct_array().combine_chunks()]))
    return [tagged(row, type) for row in rows]


def encode(spark: SparkSession, case: Case) -> dict[str, list[bytes | None]]:
    """What each path of the bridge writes for the rows, by the name of the path."""
    rows = pa.array([arrow_value(e.row, case.row) for e in case.encoded], arrow_type(case.row))
    is_old = pa.array([e.kind in ("-U", "-D") for e in case.encoded])
    encoder = catalog.get(case.format).encoder(case.row, case.spec.options)
    frame = spark.createDataFrame(pa.table({"at": pa.array(range(len(rows))), "x": rows, "old": is_old}))
    before, row = None, F.col("x")
    if not FORMATS[case.format].insert_only:
        before, row = F.when(F.col("old"), row), F.when(~F.col("old"), row)
    frame = encoded(encoder, frame, "written", row, before)
    by_arrow = optional(arrow_encoder)(case.spec)
    texts = () if by_arrow is None else by_arrow.as_texts
    taken = [
        (F.col(f"x.{name}").cast("string") if name in texts else F.col(f"x.{name}")).alias(name)
        for name in (() if by_arrow is None else by_arrow.columns)
    ]
    table = frame.coalesce(1).select("at", "written", *taken).toArrow().sort_by("at")
    found = {"spark": table["written"].to_pylist()}
    if by_arrow is not None:
        given = {name: table[name].combine_chunks() for name in by_arrow.columns}
        found["arrow"] = by_arrow.encode(RowColumns(given, table.num_rows)).to_pylist()
    return found
