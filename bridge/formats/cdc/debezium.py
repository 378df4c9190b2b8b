"""debezium-json.

Debezium's placeholder for a value that the database left out of a change (Postgres: TOASTed and unchanged).

It is the value of strings, in UTF-8 that of bytes, the only item of lists and maps, and as bytes a list of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bridge.errors import OptionError
from bridge.format_rules.change_documents import DEBEZIUM, PLACEHOLDER, CdcOptions
from bridge.format_rules.json_options import check
from bridge.formats.base import NOTHING
from bridge.formats.cdc.before_after import BeforeAfterDecoder, Image
from bridge.formats.cdc.encode import PairEncoder
from bridge.formats.cdc.metadata import BIGINT, Metadata, Place, as_is, millis, millis_of_text
from bridge.formats.sql import Names, let, literal, member, null, struct
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType

_TEXT, _BYTES = literal(PLACEHOLDER), f"encode({literal(PLACEHOLDER)}, 'UTF-8')"


def has_placeholder(row: RowType, value: str) -> str:
    """Return SQL that is true where a field of `value` holds the placeholder, else false or null; '' where none can."""
    return " OR ".join(test for f in row.fields if (test := _is_placeholder(member(value, f.name), f.type)))


def unavailable_fields(row: RowType, value: str) -> str:
    """Return the array of the names of the fields of `value` that hold the placeholder."""
    conditions = [(f.name, _is_placeholder(member(value, f.name), f.type)) for f in row.fields]
    tests = [f"IF({test}, {literal(name)}, NULL)" for name, test in conditions if test]
    return f"array_compact(array({', '.join(tests)}))" if tests else null("ARRAY<STRING>")


def without_placeholders(row: RowType, value: str) -> str:
    """Return `value` with null for every placeholder."""
    pairs = []
    for f in row.fields:
        plain, test = member(value, f.name), _is_placeholder(member(value, f.name), f.type)
        pairs.append(f"{literal(f.name)}, " + (f"IF({test}, NULL, {plain})" if test else plain))
    return f"named_struct({', '.join(pairs)})"


def _is_placeholder(value: str, type: DataType) -> str:
    """Return SQL that is true where `value` is the placeholder; '' for a type that cannot hold it."""
    if isinstance(type, ScalarType):
        form = _TEXT if type.is_string else _BYTES if type.is_binary else ""
        return f"{value} = {form}" if form else ""
    if isinstance(type, ArrayType) and isinstance(type.element, ScalarType):
        if type.element.name in ("INT", "BIGINT"):
            items = ", ".join(f"CAST({byte} AS {type.element.spark()})" for byte in PLACEHOLDER.encode())
            return f"{value} = array({items})"
        only = _is_placeholder(f"{value}[0]", type.element)
        return f"(size({value}) = 1 AND {only})" if only else ""
    if isinstance(type, MapType) and isinstance(type.value, ScalarType) and type.value.is_string:
        return f"(size({value}) = 1 AND {value}[{_TEXT}] = {_TEXT})"
    return ""


_PLACES = {
    "schema": Place("schema"),
    "ingestion-timestamp": Place("ts_ms", BIGINT, read=millis),
    "source.timestamp": Place("source", inner="ts_ms", read=millis_of_text),
    "source.database": Place("source", inner="db"),
    "source.schema": Place("source", inner="schema"),
    "source.table": Place("source", inner="table"),
    "source.properties": Place("source", whole=True, read=as_is),
}


class _Decoder(BeforeAfterDecoder):
    operations = DEBEZIUM
    beside = ("schema",)
    has_unavailable = True

    def __init__(self, row: RowType, options: CdcOptions, metadata: Metadata, *, key: Sequence[str]) -> None:
        super().__init__(row, options, metadata, key=key)
        self.wrapper = "payload" if options.schema_include else ""

    def image(self, state: str, row: RowType, names: Names, body: Callable[[Image], str]) -> str:
        """See BeforeAfterDecoder.image: a placeholder is null in the row, and its field's name is in `unavailable`."""
        found = has_placeholder(row, state)
        if not found:
            return body(Image(state, null("ARRAY<STRING>")))
        without = struct(
            row=without_placeholders(row, state),
            unavailable=unavailable_fields(row, state),
        )
        plain = struct(row=state, unavailable=null("ARRAY<STRING>"))
        return let(
            names,
            f"IF({found}, {without}, {plain})",
            lambda image: body(Image(f"{image}.row", f"{image}.unavailable")),
        )

    def _no_operation(self) -> str:
        if self.wrapper:
            return super()._no_operation()
        return "field 'op' is null or missing (documents wrapped in 'payload' need 'schema-include' = 'true')"


class DebeziumJsonFormat:
    """Reads Debezium's change events, wrapped in Kafka Connect's schema or not; writes them without."""

    name = "debezium-json"

    def decoder(
        self,
        row: RowType,
        options: Mapping[str, Any],
        *,
        metadata: RowType = NOTHING,
        key: Sequence[str] = (),
    ) -> BeforeAfterDecoder:
        """See Format.decoder."""
        check(row)
        read = CdcOptions.of(self.name, options)
        return _Decoder(row, read, Metadata(metadata, _PLACES), key=key)

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> PairEncoder:
        """See Format.encoder. Raises OptionError with 'schema-include', which only a source has (as in Flink)."""
        check(row)
        read = CdcOptions.of(self.name, options)
        if read.schema_include:
            raise OptionError(
                "Debezium JSON serialization doesn't support 'debezium-json.schema-include' option been set to true."
            )
        return PairEncoder(row, read.json, "op", ("c", "u", "d"))
