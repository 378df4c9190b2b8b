"""Documents with a row's two states, `before` and `after`, and an operation: Debezium's and GoldenGate's.

Flink: DebeziumJsonDeserializationSchema, OggJsonDeserializationSchema.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bridge.formats.cdc.common import ChangeDecoder, envelope, failed
from bridge.formats.cdc.metadata import STRING
from bridge.formats.json.fast_path import FastPath
from bridge.formats.json.full_decode import FullDecode
from bridge.formats.sql import Names, let, literal, member, null, struct
from bridge.schema import RowField, RowType

__all__ = ["BeforeAfterDecoder", "Operations"]

BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Operations:
    """The field that names the operation, and the words for each."""

    field: str
    insert: tuple[str, ...]
    update: str
    delete: str


class BeforeAfterDecoder(ChangeDecoder):
    """An update without the former state is +U alone for a keyed table and bad for another; a delete needs it."""

    operations: Operations
    wrapper: str = ""
    """The field that the document is wrapped in, or none."""
    beside: tuple[str, ...] = ()
    """Metadata fields that stand beside the wrapper, not in it."""

    def envelope(self, text: str, names: Names, *, fast: bool) -> str:
        """See ChangeDecoder.envelope: by json's own paths, over a row type that holds the table's twice."""
        document = self._document()
        quick, full = (
            FastPath(document, self.options.json, names),
            FullDecode(document, self.options.json, names),
        )

        def judge(parsed: str, converted: str) -> str:
            sure = struct(v=converted, e=null("STRING"))
            return f"IF({quick.needs_full_decode(text, parsed, converted)}, NULL, {sure})"

        parsed_fast = let(
            names, quick.parse(text), lambda p: let(names, quick.convert(p), lambda c: judge(p, c))
        )
        # Not one inside the other: Spark's analyzer allows for so many expressions that need each other first.
        return f"coalesce({parsed_fast}, {failed(full) if fast else envelope(full, text, names)})"

    def decoded_fast(self, text: str, names: Names) -> str:
        """See ChangeDecoder.glanced."""
        quick = FastPath(self._document(), self.options.json, names.lambdas())
        parsed = let(names, quick.parse(text), str)
        converted = let(names, quick.convert(parsed), str)
        # Bound here, that what was parsed need not be handed on.
        doubt = let(names, quick.needs_full_decode(text, parsed, converted), str)
        return self.decoded_fully(text, doubt, self.outcome(converted, text, names))

    def _document(self) -> RowType:
        states = (
            RowField(BEFORE, self.told),
            RowField(AFTER, self.row),
            RowField(self.operations.field, STRING),
        )
        if not self.wrapper:
            return RowType((*states, *self.metadata.fields()))
        outside = tuple(f for f in self.metadata.fields() if f.name in self.beside)
        inside = self.metadata.fields(but=self.beside)
        return RowType((RowField(self.wrapper, RowType((*states, *inside))), *outside))

    def outcome(self, document: str, text: str, names: Names) -> str:
        """See ChangeDecoder.outcome."""
        if not self.wrapper:
            return self._said(document, document, text, names)
        missing = self.failed(f"field '{self.wrapper}' is null or missing")
        return let(
            names,
            member(document, self.wrapper),
            lambda inside: f"IF({inside} IS NULL, {missing}, {self._said(document, inside, text, names)})",
        )

    def _said(self, document: str, inside: str, text: str, names: Names) -> str:
        def raw(field: str) -> str:
            return member(document if field in self.beside else inside, field)

        def by_operation(metadata: str) -> str:
            return self._by_operation(inside, metadata, text, names)

        if not self.metadata.places:
            return by_operation("")
        prefix = f"{self.wrapper}." if self.wrapper else ""

        def checked(value: str) -> str:
            if self.options.json.ignore_parse_errors:
                return by_operation(value)
            return let(
                names,
                self.metadata.error(value, raw, prefix),
                lambda e: f"IF({e} IS NULL, {by_operation(value)}, {self.none(e)})",
            )

        return let(names, self.metadata.value(raw), checked)

    def _by_operation(self, inside: str, metadata: str, text: str, names: Names) -> str:
        before, after = f"{inside}.{BEFORE}", f"{inside}.{AFTER}"

        def told(op: str) -> str:
            def changes(*former: str) -> str:
                return self.known(
                    after, self.row, names, lambda *latter: self._changes(op, metadata, former, latter)
                )

            return self.known(before, self.told, names, changes)

        return let(names, member(inside, self.operations.field), told)

    def _changes(self, op: str, metadata: str, former: Sequence[str], latter: Sequence[str]) -> str:
        words, before, after = self.operations, former[0], latter[0]

        def added(kind: str) -> str:
            return self.change(kind, after, metadata, latter[1])

        def taken(kind: str) -> str:
            return self.retracted(kind, before, metadata, former[1])

        inserted, updated = self.rows(f"array({added('+I')})"), self.rows(f"array({added('+U')})")
        both = self.rows(f"array({taken('-U')}, {added('+U')})")
        deleted = self.rows(f"array({taken('-D')})")
        alone = updated if self.keyed else self.failed(self._no_before("UPDATE"))
        no_after = self.failed(f"field '{self._path(AFTER)}' is null or missing")
        known = ", ".join((*words.insert, words.update, words.delete))
        unknown = self.failed(f"field '{self._path(words.field)}' has an unknown value; known are {known}")
        return (
            f"CASE WHEN {op} IS NULL THEN {self.failed(self._no_operation())} "
            f"WHEN {op} IN ({', '.join(literal(w) for w in words.insert)}) "
            f"THEN IF({after} IS NULL, {no_after}, {inserted}) "
            f"WHEN {op} = {literal(words.update)} THEN "
            f"CASE WHEN {after} IS NULL THEN {no_after} WHEN {before} IS NULL THEN {alone} ELSE {both} END "
            f"WHEN {op} = {literal(words.delete)} "
            f"THEN IF({before} IS NULL, {self.failed(self._no_before('DELETE'))}, {deleted}) ELSE {unknown} END"
        )

    def known(self, state: str, row: RowType, names: Names, body: Callable[[str, str], str]) -> str:
        """`body` of one of the two states, of fields `row`, as far as it is told, and of what is `kept` of it."""
        return body(state, "")

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
