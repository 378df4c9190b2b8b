"""JSON documents to rows: the fast path where it is safe, else the slow one, in one expression."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.format_rules.json_options import JsonOptions
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.formats.json.fast_path import FastPath
from bridge.formats.json.full_decode import FullDecode
from bridge.formats.sql import Names, apply, let, literal, null, struct
from bridge.schema import RowType

__all__ = ["JsonDecoder"]

_INSERT = "'+I'"
_NOT_UTF8 = "not valid UTF-8"


class JsonDecoder:
    """Reads objects, and arrays of objects as several rows. Fields that the row does not name are ignored."""

    has_unavailable = False

    def __init__(self, row: RowType, options: JsonOptions) -> None:
        self.row = row
        self.options = options
        self.skips_errors = options.ignore_parse_errors
        self._rows_type = f"ARRAY<STRUCT<kind: STRING, row: {row.spark()}>>"

    def decode(self, payload: Column, *, fast: bool = False) -> Column:
        """See Decoder.decode. Under ignore-parse-errors a bad field is null; a bad document is an error still.

        With `fast` only the fast path is taken: what it cannot decode is NEEDS_FULL_DECODE, malformed documents too.
        """
        names = Names()
        quick, full = FastPath(self.row, self.options, names), FullDecode(self.row, self.options, names)

        def slowly(text: str) -> str:
            def outcome(found: str) -> str:
                rows = f"transform({found}.v, r -> {struct(kind=_INSERT, row='r')})"
                return struct(rows=rows, error=f"{found}.e")

            return let(names, full.rows(text), outcome)

        def quickly(text: str) -> str:
            def judge(parsed: str, converted: str) -> str:
                rows = struct(rows=f"array({struct(kind=_INSERT, row=converted)})", error=null("STRING"))
                closer = self._none(literal(NEEDS_FULL_DECODE)) if fast else slowly(text)
                return f"IF({quick.needs_full_decode(text, parsed, converted)}, {closer}, {rows})"

            def convert(parsed: str) -> str:
                if not quick.converts:
                    return judge(parsed, quick.convert(parsed))
                return let(names, quick.convert(parsed), lambda c: judge(parsed, c))

            return let(names, quick.parse(text), convert)

        # What Spark generates code for stands outside of the lambda function, which it does not.
        text, variable = payload.cast("string"), names.fresh()
        return (
            F.when(F.is_valid_utf8(text), apply(text, quickly(variable), variable))
            .when(payload.isNull(), F.expr(self._none(null("STRING"))))
            .otherwise(F.expr(self._none(literal(_NOT_UTF8))))
        )

    def decode_fast(self, frame: DataFrame, payload: Column, name: str) -> DataFrame:
        """See formats.base.Stepwise: the fast path, each part a column of its own."""
        quick = FastPath(self.row, self.options, Names())
        text, parsed, converted = f"{name}_text", f"{name}_parsed", f"{name}_converted"
        steps = frame.withColumn(text, payload.cast("string")).withColumn(parsed, F.expr(quick.parse(text)))
        if quick.converts:
            steps = steps.withColumn(converted, F.expr(quick.convert(parsed)))
        found = converted if quick.converts else quick.convert(parsed)
        rows = struct(rows=f"array({struct(kind=_INSERT, row=found)})", error=null("STRING"))
        doubtful = f"NOT is_valid_utf8({text}) OR {quick.needs_full_decode(text, parsed, found)}"
        outcome = (
            f"CASE WHEN {text} IS NULL THEN {self._none(null('STRING'))} "
            f"WHEN {doubtful} THEN {self._none(literal(NEEDS_FULL_DECODE))} ELSE {rows} END"
        )
        return steps.withColumn(name, F.expr(outcome)).drop(text, parsed, converted)

    def for_payloads(self, payloads: DataFrame) -> JsonDecoder:
        """See Decoder.closer: nothing to find out."""
        return self

    def _none(self, error: str) -> str:
        return struct(rows=null(self._rows_type), error=error)
