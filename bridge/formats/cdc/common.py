"""What the decoders of change documents share: which payloads are no document, and what a decoder hands over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame

from bridge.format_rules.cdc_options import CdcOptions
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.formats.before_image import as_row, before_image_type
from bridge.formats.cdc.metadata import Metadata
from bridge.formats.json.full_decode import FullDecode
from bridge.formats.sql import Names, apply, let, literal, null, struct, with_sql_column
from bridge.schema import RowType

__all__ = ["ChangeDecoder", "envelope", "failed"]

_NOT_UTF8 = "not valid UTF-8"
_NOT_AN_OBJECT = "not a JSON object"
_OBJECT_OR_BLANK = r"^\ufeff?\s*(?:\{|$)"


class ChangeDecoder(ABC):
    """Turns change documents into rows of kinds. An envelope is a struct of `v` and `e`: what the document says,
    or what is wrong with it; both are null for a document to be passed over.

    `told` are the fields of a former state that are read (see formats.former).
    """

    has_unavailable = False

    def __init__(self, row: RowType, options: CdcOptions, metadata: Metadata, *, key: Sequence[str]) -> None:
        self.row, self.options, self.metadata, self.keyed = row, options, metadata, bool(key)
        self.told = before_image_type(row, key)
        self.skips_errors = options.json.ignore_parse_errors

    def decode(self, payload: Column, *, fast: bool = False) -> Column:
        """See Decoder.decode. Null and zero bytes are no document and no error (a CDC source's tombstones).

        A fast is the fast path: what it does not settle is DOUBTFUL, malformed documents too. Under
        ignore-parse-errors a bad field is null; a bad document is an error still.
        """
        names = Names()

        def classify(text: str) -> str:
            read = let(
                names,
                self.envelope(text, names, fast=fast),
                lambda e: (
                    f"IF({e}.v IS NULL, {self.none(f'{e}.e')}, "
                    f"{let(names, f'{e}.v', lambda v: self.outcome(v, text, names))})"
                ),
            )
            return (
                f"CASE WHEN {text} IS NULL OR {text} = '' THEN {self.none(null('STRING'))} "
                f"WHEN NOT is_valid_utf8({text}) THEN {self.failed(_NOT_UTF8)} ELSE {read} END"
            )

        variable = names.fresh()
        return apply(payload, let(names, f"CAST({variable} AS STRING)", classify), variable)

    def decode_fast(self, frame: DataFrame, payload: Column, name: str) -> DataFrame:
        """See formats.base.Stepwise: the fast path, each part a column of its own."""

        def looked(text: str, names: Names) -> str:
            return self.decoded_fast(text, names)

        # As text from here on: to take bytes out of a row is to copy them.
        return with_sql_column(frame, payload.cast("string"), name, looked)

    @abstractmethod
    def decoded_fast(self, text: str, names: Names) -> str:
        """SQL of what a glance hands over; `text` is SQL that costs nothing, and may be null or no UTF-8."""

    def decoded_fully(self, text: str, doubt: str, outcome: str) -> str:
        """The `outcome` of a document; `doubt` is whether the fast path does not settle it, and never null."""
        return (
            f"CASE WHEN {text} IS NULL OR {text} = '' THEN {self.none(null('STRING'))} "
            f"WHEN {doubt} OR NOT is_valid_utf8({text}) THEN {self.none(literal(NEEDS_FULL_DECODE))} ELSE {outcome} END"
        )

    def for_payloads(self, payloads: DataFrame) -> ChangeDecoder:
        """See Decoder.closer: nothing to find out."""
        return self

    @abstractmethod
    def envelope(self, text: str, names: Names, *, fast: bool) -> str:
        """The envelope of a document; `text` is a variable, valid UTF-8 and not empty."""

    @abstractmethod
    def outcome(self, document: str, text: str, names: Names) -> str:
        """What the decoder hands over for an envelope's `v`, a variable."""

    def none(self, error: str) -> str:
        """The outcome without rows; `error` is SQL."""
        metadata = f", metadata: {self.metadata.type.spark()}" if self.metadata.places else ""
        kept = ", unavailable: ARRAY<STRING>" if self.has_unavailable else ""
        return struct(
            rows=null(f"ARRAY<STRUCT<kind: STRING, row: {self.row.spark()}{metadata}{kept}>>"), error=error
        )

    def failed(self, reason: str) -> str:
        """The outcome of a bad document."""
        return self.none(literal(reason))

    def rows(self, array: str) -> str:
        """The outcome of a good document; `array` is SQL of changes."""
        return struct(rows=array, error=null("STRING"))

    def retracted(self, kind: str, state: str, metadata: str, kept: str = "") -> str:
        """One change that takes away the row of a former `state`: SQL of the fields `told`, not null."""
        return self.change(kind, as_row(self.row, self.told, state), metadata, kept)

    def change(self, kind: str, row: str, metadata: str, kept: str = "") -> str:
        """One change; `metadata` is a variable (of no account when none was asked for)."""
        more = {"metadata": metadata} if self.metadata.places else {}
        return struct(
            kind=literal(kind), row=row, **more, **({"unavailable": kept} if self.has_unavailable else {})
        )


def envelope(slow: FullDecode, text: str, names: Names) -> str:
    """An envelope by json's slow path; `text` is a variable. A list of documents is refused."""
    one = let(names, slow.rows(text), lambda found: struct(v=f"get({found}.v, 0)", e=f"{found}.e"))
    return f"IF({text} RLIKE {literal(_OBJECT_OR_BLANK)}, {one}, {failed(slow, _NOT_AN_OBJECT)})"


def failed(slow: FullDecode, reason: str = NEEDS_FULL_DECODE) -> str:
    """The envelope of a document that is not read."""
    return struct(v=null(slow.row.spark()), e=literal(reason))
