"""JSON documents to rows: by the fast path where it covers the document, else by a full decode."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.format_rules.json_options import JsonOptions, check
from bridge.formats.base import NEEDS_FULL_DECODE, NOTHING, Options
from bridge.formats.json.encode import JsonEncoder
from bridge.formats.json.fast_path import FastPath
from bridge.formats.json.full_decode import FullDecode, may_be_foreign
from bridge.formats.sql import INSERT, Names, RowDecoder, apply, let, literal, null, struct
from bridge.schema import RowType

_NOT_UTF8 = "not valid UTF-8"


class JsonDecoder(RowDecoder):
    """Reads objects, and arrays of objects as several rows. Fields that are not in the row are ignored."""

    def __init__(self, row: RowType, options: JsonOptions, key: Sequence[str] = ()) -> None:
        self.row = row
        self.options = options
        self.key = tuple(key)
        self.skips_errors = options.ignore_parse_errors

    def decode(self, payload: Column) -> Column:
        """See Decoder.decode. Under ignore-parse-errors a bad field is null; a bad document is still an error."""
        names = Names()
        fast = FastPath(self.row, self.options, names)
        full = FullDecode(self.row, self.options, names, self.key)

        def full_decode(text: str) -> str:
            def outcome(node: str) -> str:
                rows = f"transform({node}.v, r -> {struct(kind=INSERT, row='r')})"
                return struct(rows=rows, error=f"{node}.e")

            return let(names, full.rows(text), outcome)

        def fast_or_full(text: str) -> str:
            def outcome(parsed: str, converted: str) -> str:
                rows = self.good(converted, names)
                foreign = may_be_foreign(text, parsed, self.row, self.key)
                needs_full_decode = f"{foreign} OR {fast.needs_full_decode(text, parsed, converted)}"
                return f"IF({needs_full_decode}, {full_decode(text)}, {rows})"

            def convert(parsed: str) -> str:
                if not fast.converts:
                    return outcome(parsed, fast.convert(parsed))
                return let(names, fast.convert(parsed), lambda c: outcome(parsed, c))

            return let(names, fast.parse(text), convert)

        # Spark compiles what is outside of the lambda function, and interprets the lambda function.
        text, variable = payload.cast("string"), names.fresh()
        return (
            F.when(F.is_valid_utf8(text), apply(text, fast_or_full(variable), variable))
            .when(payload.isNull(), F.expr(self.bad(null("STRING"))))
            .otherwise(F.expr(self.bad(literal(_NOT_UTF8))))
        )

    def decode_fast(self, frame: DataFrame, payload: Column, name: str) -> DataFrame:
        """See FastPathDecoder.decode_fast. Malformed documents need a full decode, too."""
        fast = FastPath(self.row, self.options, Names())
        text, parsed, converted = f"{name}_text", f"{name}_parsed", f"{name}_converted"
        frame = frame.withColumn(text, payload.cast("string")).withColumn(parsed, F.expr(fast.parse(text)))
        if fast.converts:
            frame = frame.withColumn(converted, F.expr(fast.convert(parsed)))
        row = converted if fast.converts else fast.convert(parsed)
        rows = self.good(row, Names())
        foreign = may_be_foreign(text, parsed, self.row, self.key)
        needs_full_decode = (
            f"NOT is_valid_utf8({text}) OR {foreign} OR {fast.needs_full_decode(text, parsed, row)}"
        )
        outcome = (
            f"CASE WHEN {text} IS NULL THEN {self.bad(null('STRING'))} "
            f"WHEN {needs_full_decode} THEN {self.bad(literal(NEEDS_FULL_DECODE))} ELSE {rows} END"
        )
        return frame.withColumn(name, F.expr(outcome)).drop(text, parsed, converted)


class JsonFormat:
    """Decodes as flink-json does with its streaming parser; encodes the same bytes."""

    name = "json"

    def decoder(
        self, row: RowType, options: Options, *, metadata: RowType = NOTHING, key: Sequence[str] = ()
    ) -> JsonDecoder:
        """See Format.decoder."""
        check(self.name, row)
        return JsonDecoder(row, JsonOptions.of(options), key)

    def encoder(self, row: RowType, options: Options) -> JsonEncoder:
        """See Format.encoder."""
        check(self.name, row)
        return JsonEncoder(row, JsonOptions.of(options))
