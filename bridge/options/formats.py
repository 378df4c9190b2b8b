"""Registers the formats: one declaration per format, which all layers use instead of comparing names.

To add a format, declare it here and write the modules that the declaration refers to. Option keys have no prefix here;
`table_options` adds 'value.json.', 'key.json.' and 'json.'. Metadata that formats read from their documents have
Flink's keys and types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import Any

from bridge.errors import OptionError
from bridge.options import format_options as options
from bridge.options.model import Option, Support
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType

NONE: Mapping[str, DataType] = MappingProxyType({})

_TEXT, _TIME = ScalarType("STRING"), ScalarType("TIMESTAMP_LTZ", (3,))
_TEXTS, _PAIRS, _TYPES = ArrayType(_TEXT), MapType(_TEXT, _TEXT), MapType(_TEXT, ScalarType("INT"))
DEBEZIUM: Mapping[str, DataType] = {
    "schema": _TEXT,
    "ingestion-timestamp": _TIME,
    "source.timestamp": _TIME,
    "source.database": _TEXT,
    "source.schema": _TEXT,
    "source.table": _TEXT,
    "source.properties": _PAIRS,
}
CANAL: Mapping[str, DataType] = {
    "database": _TEXT,
    "table": _TEXT,
    "sql-type": _TYPES,
    "pk-names": _TEXTS,
    "ingestion-timestamp": _TIME,
    "event-timestamp": _TIME,
}
MAXWELL: Mapping[str, DataType] = {
    "database": _TEXT,
    "table": _TEXT,
    "primary-key-columns": _TEXTS,
    "ingestion-timestamp": _TIME,
}
OGG: Mapping[str, DataType] = {
    "table": _TEXT,
    "primary-keys": _TEXTS,
    "ingestion-timestamp": _TIME,
    "event-timestamp": _TIME,
}


@dataclass(frozen=True)
class DeclaredFormat:
    """A format: its name and options, the properties that decide how it is used, and references to its code.

    `rules`, `reader`, `spark` and what begins with `arrow` are references 'module:name', imported on first use: this
    layer loads neither Spark nor a Kafka client. A refused format has none.
    """

    name: str
    description: str
    options: tuple[Option[Any], ...] = ()
    rules: str = ""
    """A function of (name of the format, row, options) that raises what the decoder and the encoder would raise for
    them: OptionError, DefinitionError or UnsupportedError. It must not import Spark."""
    reader: str = ""
    """A function of a FormatSpec that returns the `peek.readers.Reader` of its documents. It must not import Spark."""
    spark: str = ""
    """A class of the Protocol `formats.base.Format`, made without arguments."""
    arrow: str = ""
    """A function of a FormatSpec that returns an `arrow_formats.base.ArrowDecoder`, or why there is none; '' where the
    format has none."""
    arrow_changes: str = ""
    """Of a CDC format: a function of a FormatSpec and the table's key that returns an
    `arrow_formats.base.ChangeArrowDecoder`, or why there is none; '' where the format has none."""
    arrow_encoder: str = ""
    """A function of a FormatSpec that returns an `arrow_formats.base.ArrowEncoder`, or why there is none; '' where the
    format has none."""
    insert_only: bool = True
    """False for CDC formats, whose documents carry the row kind."""
    operation_field: str = ""
    """The field of a JSON change document that names its operation; '' for formats without one."""
    truncates: bool = False
    """Whether a document may say that all rows are deleted."""
    fixed_fields: bool = False
    """Readers must know all fields in advance, since documents contain neither field names nor a schema."""
    single_column: bool = False
    """A document contains exactly one column."""
    null_is_row: bool = False
    """Null is read as a row whose field is null; other formats read no row."""
    has_nullability: bool = False
    """The schema of a document says whether a field may be null; that of a column of the PRIMARY KEY may not, as in
    Flink, where such a column is NOT NULL (CREATE Statements, "Primary Key")."""
    registry: bool = False
    """Documents start with the id of a schema in the schema registry of the options."""
    metadata: Mapping[str, DataType] = field(default_factory=lambda: NONE, hash=False)
    """Readable as METADATA FROM 'value.<key>'."""
    support: Support = Support.HONOURED
    reason: str = ""

    @property
    def changelog_mode(self) -> str:
        """The changelog mode as in Flink's messages."""
        return "[INSERT]" if self.insert_only else "[INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE]"

    def check(self, row: RowType, options: Mapping[str, Any]) -> None:
        """Raises what the decoder and the encoder would raise for this row and these options.

        These are OptionError, DefinitionError and UnsupportedError. It does not query the schema registry.
        """
        load(self.rules)(self.name, row, options)


_BUILT_IN = (
    DeclaredFormat(
        "json",
        "JSON: one object per document.",
        options.JSON,
        rules="bridge.format_rules.json_options:check_document",
        reader="bridge.peek.readers:json_reader",
        spark="bridge.formats.json.decode:JsonFormat",
        arrow="bridge.arrow_formats.json:decoder",
        arrow_encoder="bridge.arrow_formats.json_encoder:encoder",
    ),
    DeclaredFormat(
        "csv",
        "CSV: one line of separated values per document.",
        options.CSV,
        rules="bridge.format_rules.csv_options:check_document",
        reader="bridge.peek.readers:csv_reader",
        spark="bridge.formats.csv.decode:CsvFormat",
        arrow="bridge.arrow_formats.csv:decoder",
        fixed_fields=True,
    ),
    DeclaredFormat(
        "raw",
        "The bytes of a single column, without further encoding.",
        options.RAW,
        rules="bridge.format_rules.raw:check_document",
        reader="bridge.peek.readers:raw_reader",
        spark="bridge.formats.raw:RawFormat",
        arrow="bridge.arrow_formats.raw:decoder",
        fixed_fields=True,
        single_column=True,
        null_is_row=True,
    ),
    DeclaredFormat(
        "avro",
        "Avro with the schema that is derived from the table.",
        options.AVRO,
        rules="bridge.format_rules.avro_given:derived_schema",
        reader="bridge.peek.avro_reader:reader",
        spark="bridge.formats.avro.format:AvroFormat",
        arrow="bridge.arrow_formats.avro:decoder",
        fixed_fields=True,
        has_nullability=True,
    ),
    DeclaredFormat(
        "avro-confluent",
        "Avro with schemas in a schema registry.",
        options.REGISTRY,
        rules="bridge.format_rules.avro_given:framed_schema",
        reader="bridge.peek.avro_reader:framed_reader",
        spark="bridge.formats.avro.format:AvroConfluentFormat",
        arrow="bridge.arrow_formats.avro:confluent_decoder",
        has_nullability=True,
        registry=True,
    ),
    DeclaredFormat(
        "debezium-json",
        "Debezium change events as JSON.",
        options.DEBEZIUM_JSON,
        rules="bridge.format_rules.change_documents:check_document",
        reader="bridge.peek.readers:json_reader",
        spark="bridge.formats.cdc.json_formats:DebeziumJsonFormat",
        arrow_changes="bridge.arrow_formats.before_after_json:debezium",
        insert_only=False,
        operation_field="op",
        truncates=True,
        metadata=DEBEZIUM,
    ),
    DeclaredFormat(
        "debezium-avro-confluent",
        "Debezium change events as Avro with schemas in a schema registry.",
        options.REGISTRY,
        rules="bridge.format_rules.avro_given:event_schema",
        reader="bridge.peek.avro_reader:framed_reader",
        spark="bridge.formats.debezium_avro:DebeziumAvroFormat",
        arrow_changes="bridge.arrow_formats.avro:debezium_decoder",
        has_nullability=True,
        insert_only=False,
        operation_field="op",
        truncates=True,
        registry=True,
    ),
    DeclaredFormat(
        "canal-json",
        "Canal change events as JSON.",
        options.CANAL_JSON,
        rules="bridge.format_rules.change_documents:check_document",
        reader="bridge.peek.readers:json_reader",
        spark="bridge.formats.cdc.json_formats:CanalJsonFormat",
        arrow_changes="bridge.arrow_formats.changed_fields_json:canal",
        insert_only=False,
        operation_field="type",
        truncates=True,
        metadata=CANAL,
    ),
    DeclaredFormat(
        "maxwell-json",
        "Maxwell change events as JSON.",
        options.CDC_JSON,
        rules="bridge.format_rules.change_documents:check_document",
        reader="bridge.peek.readers:json_reader",
        spark="bridge.formats.cdc.json_formats:MaxwellJsonFormat",
        arrow_changes="bridge.arrow_formats.changed_fields_json:maxwell",
        insert_only=False,
        operation_field="type",
        metadata=MAXWELL,
    ),
    DeclaredFormat(
        "ogg-json",
        "Oracle GoldenGate change events as JSON.",
        options.CDC_JSON,
        rules="bridge.format_rules.change_documents:check_document",
        reader="bridge.peek.readers:json_reader",
        spark="bridge.formats.cdc.json_formats:OggJsonFormat",
        arrow_changes="bridge.arrow_formats.before_after_json:ogg",
        insert_only=False,
        operation_field="op_type",
        truncates=True,
        metadata=OGG,
    ),
    DeclaredFormat(
        "protobuf",
        "Protocol Buffers.",
        support=Support.REFUSED,
        reason="Flink decodes it with Java classes generated from the .proto file, which the bridge does not have; "
        "use another format",
    ),
)
_REGISTERED = {declared.name: declared for declared in _BUILT_IN}

FORMATS: Mapping[str, DeclaredFormat] = MappingProxyType(_REGISTERED)
"""All formats by name, including refused ones."""


def register(declared: DeclaredFormat) -> None:
    """Adds a format to FORMATS. Raises ValueError if the name is already registered."""
    if declared.name in _REGISTERED:
        raise ValueError(f"format '{declared.name}' is registered already")
    _REGISTERED[declared.name] = declared


def unregister(name: str) -> None:
    """Removes a format that `register` added. Raises KeyError for a name that is not in FORMATS."""
    del _REGISTERED[name]


def load(reference: str) -> Any:
    """Returns the object at 'module:name'. Raises ImportError or AttributeError if it does not exist."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def declared_format(option: str, name: str) -> DeclaredFormat:
    """Returns the format `name`, which `option` names. Raises OptionError for unknown and refused formats."""
    declared = FORMATS.get(name)
    if declared is None:
        near = get_close_matches(name.lower(), FORMATS, 1, 0.7)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise OptionError(
            f"'{option}': format '{name}' is not known. Known formats are {', '.join(FORMATS)}{hint}"
        )
    if declared.support is Support.REFUSED:
        raise OptionError(f"'{option}' = '{name}' is refused: {declared.reason}")
    return declared
