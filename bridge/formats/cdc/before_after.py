"""Decodes documents with a row's `before` and `after` images and an operation: Debezium's and GoldenGate's.

Flink: DebeziumJsonDeserializationSchema, OggJsonDeserializationSchema.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.format_rules.change_documents import Operations
from bridge.formats.cdc.common import ChangeDecoder, envelope, unknown_operation
from bridge.formats.cdc.metadata import STRING
from bridge.formats.json.fast_path import FastPath
from bridge.formats.json.full_decode import FullDecode
from bridge.formats.sql import Names, let, literal, member, null, struct
from bridge.schema import RowField, RowType

BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Image:
    """SQL of a before or an after image, and of the names of its unavailable fields ('' where there can be none)."""

    row: str
    unavailable: str = ""


class BeforeAfterDecoder(ChangeDecoder):
    """An update without a before image is +U alone with a key and bad without; a delete always needs one."""

    operations: Operations
    wrapper: str = ""
    """The field that wraps the event; '' for none."""
    beside: tuple[str, ...] = ()
    """Metadata fields beside the wrapper, not in it."""

    def envelope(self, text: str, names: Names) -> str:
        """See ChangeDecoder.envelope: json's own paths read a row type that contains the table's row twice."""
        document, options = self._document(), self.options.json
        fast, full = FastPath(document, options, names), FullDecode(document, options, names)

        def parsed_or_null(parsed: str, converted: str) -> str:
            good = struct(v=converted, e=null("STRING"))
            return f"IF({fast.needs_full_decode(text, parsed, converted)}, NULL, {good})"

        parsed_fast = let(
            names, fast.parse(text), lambda p: let(names, fast.convert(p), lambda c: parsed_or_null(p, c))
        )
        # Not one inside the other: Spark's analyzer limits how many expressions may depend on each other.
        return f"coalesce({parsed_fast}, {envelope(full, text, names)})"

    def fast_outcome(self, text: str, names: Names) -> str:
        """See ChangeDecoder.fast_outcome."""
        fast = FastPath(self._document(), self.options.json, names.lambdas())
        parsed = let(names, fast.parse(text), str)
        converted = let(names, fast.convert(parsed), str)
        # In a column of its own, so that no later column depends on the parsed document.
        needs_full_decode = let(names, fast.needs_full_decode(text, parsed, converted), str)
        return self.checked(text, needs_full_decode, self.outcome(converted, text, names))

    def _document(self) -> RowType:
        event = (
            RowField(BEFORE, self.before_type),
            RowField(AFTER, self.row),
            RowField(self.operations.field, STRING),
        )
        if not self.wrapper:
            return RowType((*event, *self.metadata.fields()))
        outside = tuple(f for f in self.metadata.fields() if f.name in self.beside)
        inside = self.metadata.fields(but=self.beside)
        return RowType((RowField(self.wrapper, RowType((*event, *inside))), *outside))

    def outcome(self, document: str, text: str, names: Names) -> str:
        """See ChangeDecoder.outcome."""
        if not self.wrapper:
            return self._event_outcome(document, document, names)
        missing = self.failed(f"field '{self.wrapper}' is null or missing")
        return let(
            names,
            member(document, self.wrapper),
            lambda event: f"IF({event} IS NULL, {missing}, {self._event_outcome(document, event, names)})",
        )

    def _event_outcome(self, document: str, event: str, names: Names) -> str:
        """Return the outcome of the `event` in `document`; without a wrapper both are the same."""

        def raw(field: str) -> str:
            return member(document if field in self.beside else event, field)

        def by_operation(metadata: str) -> str:
            return self._by_operation(event, metadata, names)

        if not self.metadata.places:
            return by_operation("")
        prefix = f"{self.wrapper}." if self.wrapper else ""

        def checked(metadata: str) -> str:
            if self.options.json.ignore_parse_errors:
                return by_operation(metadata)
            return let(
                names,
                self.metadata.error(metadata, raw, prefix),
                lambda e: f"IF({e} IS NULL, {by_operation(metadata)}, {self.none(e)})",
            )

        return let(names, self.metadata.value(raw), checked)

    def _by_operation(self, event: str, metadata: str, names: Names) -> str:
        def with_operation(operation: str) -> str:
            def with_before(before: Image) -> str:
                return self.image(
                    f"{event}.{AFTER}",
                    self.row,
                    names,
                    lambda after: self._changes(operation, metadata, before, after),
                )

            return self.image(f"{event}.{BEFORE}", self.before_type, names, with_before)

        return let(names, member(event, self.operations.field), with_operation)

    def _changes(self, operation: str, metadata: str, before: Image, after: Image) -> str:
        words = self.operations

        def addition(kind: str) -> str:
            return self.change(kind, after.row, metadata, after.unavailable)

        def retraction(kind: str) -> str:
            return self.retraction(kind, before.row, metadata, before.unavailable)

        inserted, updated = self.rows(f"array({addition('+I')})"), self.rows(f"array({addition('+U')})")
        both = self.rows(f"array({retraction('-U')}, {addition('+U')})")
        deleted = self.rows(f"array({retraction('-D')})")
        without_before = updated if self.keyed else self.failed(self._no_before("UPDATE"))
        no_after = self.failed(f"field '{self._path(AFTER)}' is null or missing")
        unknown = self.none(unknown_operation(words, self._path(words.field), operation))
        return (
            f"CASE WHEN {operation} IS NULL THEN {self.failed(self._no_operation())} "
            f"WHEN {operation} IN ({', '.join(literal(w) for w in words.insert)}) "
            f"THEN IF({after.row} IS NULL, {no_after}, {inserted}) "
            f"WHEN {operation} = {literal(words.update)} THEN CASE WHEN {after.row} IS NULL THEN {no_after} "
            f"WHEN {before.row} IS NULL THEN {without_before} ELSE {both} END "
            f"WHEN {operation} = {literal(words.delete)} "
            f"THEN IF({before.row} IS NULL, {self.failed(self._no_before('DELETE'))}, {deleted}) ELSE {unknown} END"
        )

    def image(self, state: str, row: RowType, names: Names, body: Callable[[Image], str]) -> str:
        """Return `body` of a before or an after image; `state` is SQL of its fields, those of `row`."""
        return body(Image(state))

    def _path(self, field: str) -> str:
        return f"{self.wrapper}.{field}" if self.wrapper else field

    def _no_operation(self) -> str:
        return f"field '{self._path(self.operations.field)}' is null or missing"

    def _no_before(self, message: str) -> str:
        way_out = " or declare a PRIMARY KEY" if message == "UPDATE" else ""
        return (
            f'The "{self._path(BEFORE)}" field of {message} message is null: if it comes from Postgres, set the '
            f"REPLICA IDENTITY of its table to FULL{way_out}"
        )
