"""debezium-json, canal-json, maxwell-json and ogg-json.

Debezium's placeholder stands for a value that the database left out of a change (Postgres: TOASTed and unchanged). It
is the value of strings, in UTF-8 that of bytes, the only item of lists and maps, and as bytes a list of numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.errors import OptionError
from bridge.format_rules.change_documents import CANAL, DEBEZIUM, MAXWELL, OGG, PLACEHOLDER, CdcOptions
from bridge.format_rules.json_options import check
from bridge.formats.base import NOTHING, Options
from bridge.formats.cdc.before_after import BeforeAfterDecoder, Image
from bridge.formats.cdc.changed_fields import ChangedFieldsDecoder
from bridge.formats.cdc.common import ChangeDecoder, Types
from bridge.formats.cdc.encode import CanalEncoder, JsonChangeEncoder, MaxwellEncoder, PairEncoder
from bridge.formats.cdc.metadata import (
    BIGINT,
    STRING,
    Metadata,
    Place,
    as_is,
    date_or_millis,
    millis,
    millis_of_text,
    seconds,
)
from bridge.formats.sql import Names, let, literal, member, null, struct
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType


class _JsonChanges(ABC):
    """A `formats.base.Format` of change documents in JSON; `places` says where its metadata is."""

    name: str
    decodes: type[ChangeDecoder]
    places: ClassVar[Mapping[str, Place]]

    def decoder(
        self, row: RowType, options: Options, *, metadata: RowType = NOTHING, key: Sequence[str] = ()
    ) -> ChangeDecoder:
        """See Format.decoder."""
        check(self.name, row)
        read = CdcOptions.of(options)
        return self.decodes(row, read, Metadata(metadata, self.places), key=key)

    def encoder(self, row: RowType, options: Options) -> JsonChangeEncoder:
        """See Format.encoder."""
        check(self.name, row)
        return self.writes(row, CdcOptions.of(options))

    @abstractmethod
    def writes(self, row: RowType, options: CdcOptions) -> JsonChangeEncoder:
        """Return the encoder."""


class _MaxwellDecoder(ChangedFieldsDecoder):
    types = Types(MAXWELL)
    several = False


class MaxwellJsonFormat(_JsonChanges):
    """Reads and writes Maxwell's row documents. Others (those of its bootstrap, DDL) are errors, as in Flink."""

    name = "maxwell-json"
    decodes = _MaxwellDecoder
    places: ClassVar[Mapping[str, Place]] = {
        "database": Place("database"),
        "table": Place("table"),
        "primary-key-columns": Place("primary_key_columns", ArrayType(STRING)),
        "ingestion-timestamp": Place("ts", BIGINT, read=seconds),
    }

    def writes(self, row: RowType, options: CdcOptions) -> JsonChangeEncoder:
        return MaxwellEncoder(row, options.json)


class _CanalDecoder(ChangedFieldsDecoder):
    types = Types(CANAL)
    several = True

    def __init__(self, row: RowType, options: CdcOptions, metadata: Metadata, *, key: Sequence[str]) -> None:
        super().__init__(row, options, metadata, key=key)
        for name, pattern in self.filters.patterns.items():
            _check_pattern(f"{CanalJsonFormat.name}.{name}.include", pattern)


class CanalJsonFormat(_JsonChanges):
    """Reads and writes Canal's flat messages. CREATE is skipped and other DDL is an error, as in Flink. Its decoder
    raises OptionError for an `include` that is no regular expression."""

    name = "canal-json"
    decodes = _CanalDecoder
    places: ClassVar[Mapping[str, Place]] = {
        "database": Place("database"),
        "table": Place("table"),
        "sql-type": Place("sqlType", MapType(STRING, ScalarType("INT"))),
        "pk-names": Place("pkNames", ArrayType(STRING)),
        "ingestion-timestamp": Place("ts", BIGINT, read=millis),
        "event-timestamp": Place("es", BIGINT, read=millis),
    }

    def writes(self, row: RowType, options: CdcOptions) -> JsonChangeEncoder:
        return CanalEncoder(row, options.json)


def _check_pattern(option: str, pattern: str) -> None:
    """Raise OptionError for a pattern that Java refuses. Without a session, which has the JVM, nothing is checked."""
    spark = SparkSession.getActiveSession()
    if spark is None:
        return
    try:
        spark.sql(f"SELECT 'x' RLIKE {literal(pattern)}").collect()
    except PySparkException as error:
        raise OptionError(f"'{option}' is not a regular expression of Java's: {pattern!r}") from error


class _OggDecoder(BeforeAfterDecoder):
    operations = OGG


class OggJsonFormat(_JsonChanges):
    """Reads and writes Oracle GoldenGate's change documents. A truncate ('T') is an error, as in Flink."""

    name = "ogg-json"
    decodes = _OggDecoder
    # The keys of Flink's manual. Flink's code has others, with types that no GoldenGate document has.
    places: ClassVar[Mapping[str, Place]] = {
        "table": Place("table"),
        "primary-keys": Place("primary_keys", ArrayType(STRING)),
        "ingestion-timestamp": Place("current_ts", read=date_or_millis),
        "event-timestamp": Place("op_ts", read=date_or_millis),
    }

    def writes(self, row: RowType, options: CdcOptions) -> JsonChangeEncoder:
        return PairEncoder(row, options.json, "op_type", ("I", "U", "D"))


class _DebeziumDecoder(BeforeAfterDecoder):
    operations = DEBEZIUM
    beside = ("schema",)
    has_unavailable = True

    def __init__(self, row: RowType, options: CdcOptions, metadata: Metadata, *, key: Sequence[str]) -> None:
        super().__init__(row, options, metadata, key=key)
        self.wrapper = "payload" if options.schema_include else ""

    def image(self, state: str, row: RowType, names: Names, body: Callable[[Image], str]) -> str:
        """See BeforeAfterDecoder.image: a placeholder is null in the row, and its field's name is in `unavailable`."""
        found = _has_placeholder(row, state)
        if not found:
            return body(Image(state, null("ARRAY<STRING>")))
        without = struct(
            row=_without_placeholders(row, state),
            unavailable=_unavailable_fields(row, state),
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


class DebeziumJsonFormat(_JsonChanges):
    """Reads Debezium's change events, wrapped in Kafka Connect's schema or not; writes them without. Its encoder raises
    OptionError with 'schema-include', which only a source has (as in Flink)."""

    name = "debezium-json"
    decodes = _DebeziumDecoder
    places: ClassVar[Mapping[str, Place]] = {
        "schema": Place("schema"),
        "ingestion-timestamp": Place("ts_ms", BIGINT, read=millis),
        "source.timestamp": Place("source", inner="ts_ms", read=millis_of_text),
        "source.database": Place("source", inner="db"),
        "source.schema": Place("source", inner="schema"),
        "source.table": Place("source", inner="table"),
        "source.properties": Place("source", whole=True, read=as_is),
    }

    def writes(self, row: RowType, options: CdcOptions) -> JsonChangeEncoder:
        if options.schema_include:
            raise OptionError(
                "Debezium JSON serialization doesn't support 'debezium-json.schema-include' option been set to true."
            )
        return PairEncoder(row, options.json, "op", ("c", "u", "d"))


_TEXT, _BYTES = literal(PLACEHOLDER), f"encode({literal(PLACEHOLDER)}, 'UTF-8')"


def _has_placeholder(row: RowType, value: str) -> str:
    """Return SQL that is true where a field of `value` holds the placeholder, else false or null; '' where none can."""
    return " OR ".join(test for f in row.fields if (test := _is_placeholder(member(value, f.name), f.type)))


def _unavailable_fields(row: RowType, value: str) -> str:
    """Return the array of the names of the fields of `value` that hold the placeholder."""
    conditions = [(f.name, _is_placeholder(member(value, f.name), f.type)) for f in row.fields]
    tests = [f"IF({test}, {literal(name)}, NULL)" for name, test in conditions if test]
    return f"array_compact(array({', '.join(tests)}))" if tests else null("ARRAY<STRING>")


def _without_placeholders(row: RowType, value: str) -> str:
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
