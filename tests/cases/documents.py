"""Runs the kind `vectors`: one document and one row of a format, with its decoder and encoder in Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import struct_type
from bridge.definition import FormatSpec
from bridge.errors import BridgeError
from bridge.formats import catalog
from bridge.formats.base import DecodedColumn, Encoder
from bridge.schema import RowType, quote
from tests.cases import pipeline
from tests.cases.bench import Bench
from tests.cases.case import Part
from tests.cases.outcome import Mismatch, Unsupported
from tests.cases.pipeline import columns_of
from tests.cases.refusal import check_refusal
from tests.cases.values import comparable, from_case, payload, types

_AT = DecodedColumn()
_NULL_MAP_KEY = "NULL_MAP_KEY"
_KEY = "the_key_of_the_runner"
_ANY_TOPIC = "documents"


def run(bench: Bench, part: Part, earlier: Callable[[str], Any]) -> None:
    """Checks one vector. `earlier` returns a key of an earlier vector, for `same_row`."""
    if part.has("refused"):
        _refused(bench, part, part.own("refused"))
        return
    row = earlier("row") if part.take("same_row") else None
    given = columns_of(part) if {"column", "columns"} & part.data.keys() or row is None else None
    columns = given or columns_of(Part({key: earlier(key) for key in ("column", "columns")}))
    document = _Document(bench, part, columns)
    for text, wanted in part.own("pairs_in_out") or []:
        decoded = document.decode(text)
        _same("document", wanted, document.encode(_only(decoded)))
    if row is not None or ("value" in part.data and "row" in part.data and _is_encode(part)):
        _encode(document, part, row if row is not None else part.own("row"))
    elif "row" in part.data and "value" not in part.data:
        _encode(document, part, part.own("row"))
    elif "value" in part.data:
        _decode(document, part)


def _refused(bench: Bench, part: Part, word: str) -> None:
    """Checks that a type or value that Spark lacks is rejected by name: by the definition, or by Spark itself."""
    for key in [*part.data, "format"]:
        part.take(key)
    if word == _NULL_MAP_KEY:
        try:
            bench.world.spark.sql("SELECT map(CAST(NULL AS STRING), 1)").collect()
        except PySparkException as raised:
            if word in str(raised):
                return
        raise Mismatch("Spark holds a null key of a map: the format must write it then")
    try:
        _Document(bench, part, columns_of(part))
    except BridgeError as raised:
        check_refusal(raised, "", also=(word,))
        return
    raise Mismatch(f"wanted to be refused because of {word}; it was accepted")


def _is_encode(part: Part) -> bool:
    """A vector with both sides is decoded, unless its options are about writing only."""
    return any(".encode." in k or ".map-null-key." in k for k in part.merged("options"))


class _Document:
    def __init__(
        self, bench: Bench, part: Part, columns: list[tuple[str, str]], more: dict[str, str] | None = None
    ) -> None:
        self.bench, self.part, self.columns, self.more = bench, part, columns, more or {}
        self.spec = self._resolve()
        parsed = types(columns)
        self.row = RowType(self.spec.row.fields)
        self.spark = bench.world.spark
        assert list(parsed) == list(self.spec.columns)

    def _resolve(self) -> FormatSpec:
        """Resolves options and types through a pipeline file, as for users."""
        options = self.part.merged("options") | self.more
        standard = self.part.take("timestamp-format")
        format = self.part.take("format")
        if standard:
            options[f"{format}.timestamp-format.standard"] = standard
        body = Part(
            {
                "connector": "upsert-kafka",
                "format": format,
                "key_format": "json",
                "primary_key": [_KEY],
                "columns": [{"name": n, "type": t} for n, t in [(_KEY, "STRING"), *self.columns]],
                "options": {**options, "value.fields-include": "EXCEPT_KEY"},
            }
        )
        made = self.bench.reachable(pipeline.options_of(body, _ANY_TOPIC, self.bench.world.broker.bootstrap))
        statement = pipeline.create_table(body, made)
        name = f"vector-{len(list(self.bench.folder.glob('*.yaml')))}"
        return pipeline.write(self.bench.folder, name, statement).topic.value

    def ignoring_errors(self) -> _Document:
        name = f"{self.part.take('format')}.ignore-parse-errors"
        return _Document(self.bench, self.part, self.columns, {name: "true"})

    def decode(self, value: Any) -> tuple[list[Any], str | None, bool]:
        """Returns (rows, error, whether errors are skipped)."""
        decoder = catalog.get(self.spec.name).decoder(self.spec.row, self.spec.options)
        frame = self.spark.createDataFrame([(payload(value),)], "payload binary")
        found = frame.select(decoder.decode(F.col("payload")).alias("d")).collect()[0]["d"]
        if found is None:
            return [], None, decoder.skips_errors
        rows = [entry[_AT.row] for entry in found[_AT.rows] or []]
        return rows, found[_AT.error], decoder.skips_errors

    def encode(self, row: tuple[Any, ...]) -> str:
        encoder = cast(Encoder, catalog.get(self.spec.name).encoder(self.spec.row, self.spec.options))
        shape = T.StructType([T.StructField("row", struct_type(self.spec.row))])
        frame = self.spark.createDataFrame([(row,)], shape, verifySchema=False)
        made = encoder.encode(frame, F.col(quote("row")), "e").collect()[0]["e"]
        return bytes(made).decode()

    def python(self, row: list[Any]) -> tuple[Any, ...]:
        made: tuple[Any, ...] = from_case(row, self.row)
        return made


def _decode(document: _Document, part: Part) -> None:
    rows, error, skips = document.decode(part.own("value"))
    if part.take("log_contains") and not (error and skips):
        raise Mismatch("a skipped document must be told apart from an empty one: no error for it")
    if part.take("error_contains") is not None:
        if error is None or skips:
            raise Mismatch(f"wanted a bad document, got {rows!r}")
        ignored = part.own("with_ignore_parse_errors")
        if ignored is not None:
            lenient, _, _ = document.ignoring_errors().decode(part.own("value"))
            _same("row with ignore-parse-errors", [document.python(ignored)], lenient, document.row)
        return
    wanted = part.own("rows") if "rows" in part.data else [part.own("row")]
    wanted = [document.python(row) for row in wanted if row is not None]
    if error is not None and not skips:
        raise Mismatch(f"wanted {wanted!r}, got a bad document: {error}")
    _same("rows", wanted, rows, document.row)
    if part.own("encode_back_equals_value"):
        _same("encoded back", part.own("value"), document.encode(wanted[0]))


def _encode(document: _Document, part: Part, row: list[Any]) -> None:
    theirs = part.take("error_contains")
    try:
        made = document.encode(document.python(row))
    except PySparkException as raised:
        if theirs is None:
            raise
        check_refusal(BridgeError(str(raised)), theirs)
        return
    if theirs is not None:
        raise Mismatch(f"wanted to be refused: {theirs[:100]!r}; wrote {made!r}")
    if "value" not in part.data:
        raise Unsupported("a row to encode without a value to compare")
    _same("document", part.own("value"), made)


def _only(decoded: tuple[list[Any], str | None, bool]) -> tuple[Any, ...]:
    rows, error, _ = decoded
    if error or not rows or len(rows) != 1:
        raise Mismatch(f"wanted one row, got {rows!r} ({error})")
    return tuple(rows[0])


def _same(what: str, wanted: Any, found: Any, shape: RowType | None = None) -> None:
    if shape is not None:
        wanted, found = ([comparable(row, shape) for row in rows] for rows in (wanted, found))
    if wanted != found:
        raise Mismatch(f"{what}: wanted {wanted!r}, there is {found!r}")
