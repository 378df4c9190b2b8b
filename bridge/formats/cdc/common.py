"""What the decoders of change documents share: payloads that are no document, and the decoded column.

Of before images only the key's fields are read where there is a key (`change_documents.before_image_type`): the row
of a keyed table is deleted by its key. Reading the other fields of `before` or `old` would cost as much as reading
the after image, and errors in values that nobody needs would make the document bad.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from bridge.format_rules.change_documents import CdcOptions, Operations, before_image_type
from bridge.formats.base import NEEDS_FULL_DECODE, TRUNCATES
from bridge.formats.cdc.metadata import Metadata
from bridge.formats.json.full_decode import FullDecode
from bridge.formats.sql import Names, apply, let, literal, member, null, struct, with_sql_column
from bridge.schema import RowType

_NOT_UTF8 = "not valid UTF-8"
_NOT_AN_OBJECT = "not a JSON object"
_OBJECT_OR_BLANK = r"^\ufeff?\s*(?:\{|$)"


class ChangeDecoder(ABC):
    """Turns change documents into rows with row kinds.

    An envelope is a struct of `v`, the parsed document, and `e`, the error; both are null for a document to skip. An
    outcome is a value of the decoded column (see formats.base.DecodedColumn). `before_type` has the fields that are
    read of a before image (see format_rules.change_documents).
    """

    has_unavailable = False

    def __init__(self, row: RowType, options: CdcOptions, metadata: Metadata, *, key: Sequence[str]) -> None:
        self.row, self.options, self.metadata, self.keyed = row, options, metadata, bool(key)
        self.before_type = before_image_type(row, key)
        self.skips_errors = options.json.ignore_parse_errors

    def decode(self, payload: Column) -> Column:
        """See Decoder.decode. Null and zero bytes are no document and no error (a CDC source's tombstones).

        Under ignore-parse-errors a bad field is null; a bad document is still an error.
        """
        names = Names()

        def decoded(text: str) -> str:
            decoded_envelope = let(
                names,
                self.envelope(text, names),
                lambda e: (
                    f"IF({e}.v IS NULL, {self.none(f'{e}.e')}, "
                    f"{let(names, f'{e}.v', lambda v: self.outcome(v, text, names))})"
                ),
            )
            return (
                f"CASE WHEN {text} IS NULL OR {text} = '' THEN {self.none(null('STRING'))} "
                f"WHEN NOT is_valid_utf8({text}) THEN {self.failed(_NOT_UTF8)} ELSE {decoded_envelope} END"
            )

        variable = names.fresh()
        return apply(payload, let(names, f"CAST({variable} AS STRING)", decoded), variable)

    def decode_fast(self, frame: DataFrame, payload: Column, name: str) -> DataFrame:
        """See FastPathDecoder.decode_fast. Malformed documents need a full decode, too."""
        # As text from here on: to take bytes out of a row is to copy them.
        return with_sql_column(frame, payload.cast("string"), name, self.fast_outcome)

    @abstractmethod
    def fast_outcome(self, text: str, names: Names) -> str:
        """Return the outcome on the fast path. `text` is SQL that is cheap to repeat; it may be null or no UTF-8."""

    def checked(self, text: str, needs_full_decode: str, outcome: str) -> str:
        """Return `outcome`, or what is due for a text that is no document or, never null, needs a full decode."""
        full = self.none(literal(NEEDS_FULL_DECODE))
        return (
            f"CASE WHEN {text} IS NULL OR {text} = '' THEN {self.none(null('STRING'))} "
            f"WHEN {needs_full_decode} OR NOT is_valid_utf8({text}) THEN {full} ELSE {outcome} END"
        )

    def for_payloads(self, payloads: DataFrame) -> ChangeDecoder:
        """See Decoder.for_payloads: documents name no schema."""
        return self

    @abstractmethod
    def envelope(self, text: str, names: Names) -> str:
        """Return the envelope of a document; `text` is a variable, valid UTF-8 and not empty."""

    @abstractmethod
    def outcome(self, document: str, text: str, names: Names) -> str:
        """Return the outcome of an envelope's `v`, the variable `document`."""

    def none(self, error: str) -> str:
        """Return the outcome without rows; `error` is SQL."""
        metadata = f", metadata: {self.metadata.type.spark()}" if self.metadata.places else ""
        unavailable = ", unavailable: ARRAY<STRING>" if self.has_unavailable else ""
        rows = f"ARRAY<STRUCT<kind: STRING, row: {self.row.spark()}{metadata}{unavailable}>>"
        return struct(rows=null(rows), error=error)

    def failed(self, reason: str) -> str:
        """Return the outcome of a bad document."""
        return self.none(literal(reason))

    def rows(self, array: str) -> str:
        """Return the outcome of a good document; `array` is SQL of changes."""
        return struct(rows=array, error=null("STRING"))

    def retraction(self, kind: str, before: str, metadata: str, unavailable: str = "") -> str:
        """Return a change that takes a row away; `before` is SQL of its before image, not null."""
        return self.change(kind, as_row(self.row, self.before_type, before), metadata, unavailable)

    def change(self, kind: str, row: str, metadata: str, unavailable: str = "") -> str:
        """Return one change. `metadata` and `unavailable` are ignored where rows have no such field."""
        fields = {"metadata": metadata} if self.metadata.places else {}
        if self.has_unavailable:
            fields["unavailable"] = unavailable
        return struct(kind=literal(kind), row=row, **fields)


def envelope(full: FullDecode, text: str, names: Names) -> str:
    """Return an envelope by json's full decode; `text` is a variable. A list of documents is an error."""
    failed = struct(v=null(full.row.spark()), e=literal(_NOT_AN_OBJECT))
    first = let(names, full.rows(text), lambda rows: struct(v=f"get({rows}.v, 0)", e=f"{rows}.e"))
    return f"IF({text} RLIKE {literal(_OBJECT_OR_BLANK)}, {first}, {failed})"


@dataclass(frozen=True)
class Changes:
    """SQL of the outcome of a document's rows by its type; `missing`: whether a row is missing."""

    missing: str
    inserted: str
    updated: str
    deleted: str


@dataclass(frozen=True)
class Types:
    """The values of `type`."""

    words: Operations

    def outcome(self, type: str, changes: Changes, none: Callable[[str], str]) -> str:
        """Return the outcome that `type`, SQL, selects; `none` makes the outcome without rows of SQL of an error."""
        words = self.words
        skipped = ", ".join(map(literal, words.skipped))
        unknown = unknown_operation(words, words.field, type)
        skip = f"WHEN {type} IN ({skipped}) THEN {none(null('STRING'))} " if skipped else ""
        return (
            f"CASE WHEN {type} IS NULL THEN {none(_missing('type'))} "
            f"WHEN {type} NOT IN ({', '.join(map(literal, words.known))}) THEN {none(unknown)} {skip}"
            f"WHEN {changes.missing} THEN {none(_missing('data'))} "
            f"WHEN {type} IN ({', '.join(map(literal, words.insert))}) THEN {changes.inserted} "
            f"WHEN {type} = {literal(words.delete)} THEN {changes.deleted} ELSE {changes.updated} END"
        )


def unknown_operation(words: Operations, path: str, value: str) -> str:
    """Return SQL of the error of a document whose operation is none of the known ones: TRUNCATES for a truncate. Of
    `value`, SQL, it shows only words of the tool, since others may be anything."""
    known = f"known are {', '.join(words.known)}"
    start, end = literal(f"field '{path}' is '"), literal(f"', which is no change of a row; {known}")
    others = (
        f"WHEN {value} IN ({', '.join(map(literal, words.others))}) THEN concat({start}, {value}, {end}) "
    )
    truncate = (
        f"WHEN {value} = {literal(words.truncate)} THEN {literal(TRUNCATES)} " if words.truncate else ""
    )
    unknown = literal(f"field '{path}' has an unknown value; {known}")
    return f"CASE {others if words.others else ''}{truncate}ELSE {unknown} END"


def _missing(field: str) -> str:
    return literal(f"field '{field}' is null or missing")


def as_row(row: RowType, before_type: RowType, before: str) -> str:
    """Return the `before` image, SQL of fields `before_type` and not null, as a row; null in the other fields."""
    if before_type == row:
        return before
    return padded(row, {name: member(before, name) for name in before_type.names})


def padded(row: RowType, fields: Mapping[str, str]) -> str:
    """Return a row of the given SQL by field, null in the other fields."""
    values = [f"{literal(f.name)}, {fields.get(f.name) or null(f.type.spark())}" for f in row.fields]
    return f"named_struct({', '.join(values)})"
