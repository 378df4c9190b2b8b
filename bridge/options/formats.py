"""Formats by name and their options. What a format does is in `bridge/formats`.

Option keys have no prefix here; `given` puts 'value.json.', 'key.json.' or 'json.' before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from bridge.errors import OptionError
from bridge.options.kinds import BOOLEAN, STRING, choice
from bridge.options.model import Fate, Option, Side

__all__ = ["FORMATS", "DeclaredFormat", "declared_format"]

_NO_METADATA: Mapping[str, str] = MappingProxyType({})
_OTHER_PARSER = (
    "false chooses Flink's tree parser, whose casts differ; the bridge reads as the streaming parser does: "
    "use true"
)


@dataclass(frozen=True)
class DeclaredFormat:
    """A format's name, whether all its documents are inserts, its options and its metadata."""

    name: str
    description: str
    options: tuple[Option[Any], ...] = ()
    insert_only: bool = True
    fate: Fate = Fate.NOT_YET
    reason: str = ""
    metadata: Mapping[str, str] = field(default_factory=lambda: _NO_METADATA, hash=False)
    """Readable as METADATA FROM 'value.<key>'."""

    @property
    def changelog_mode(self) -> str:
        """As Flink prints it in messages."""
        return "[INSERT]" if self.insert_only else "[INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE]"


def _flag(key: str, text: str, default: str = "false", side: Side = Side.BOTH) -> Option[bool]:
    return Option(key, BOOLEAN, text, default=default, side=side)


def _text(key: str, text: str, default: str | None = None, required: bool = False) -> Option[str]:
    return Option(key, STRING, text, default=default, required=required)


_SKIP_BAD = _flag(
    "ignore-parse-errors",
    "Skip documents that cannot be read, and count them, instead of leaving them to 'ingest.bad-records'.",
    side=Side.SOURCE,
)
_TIMES = Option(
    "timestamp-format.standard",
    choice("SQL", "ISO-8601", subject="timestamp-format.standard", exact=True),
    "How timestamps are written: 'SQL' as 2020-12-30 12:13:14.123, 'ISO-8601' as 2020-12-30T12:13:14.123.",
    default="SQL",
)
_WRITING: tuple[Option[Any], ...] = (
    Option(
        "map-null-key.mode",
        choice("LITERAL", "FAIL", "DROP", subject="option map-null-key.mode"),
        "What is done with a null key of a map: fail, leave the entry out, or write 'map-null-key.literal'.",
        default="FAIL",
        side=Side.SINK,
    ),
    Option(
        "map-null-key.literal",
        STRING,
        "Written for a null key in mode LITERAL.",
        default="null",
        side=Side.SINK,
    ),
    _flag("encode.decimal-as-plain-number", "Write 0.000000027, not 2.7E-8.", side=Side.SINK),
    _flag("encode.ignore-null-fields", "Leave fields out that are null.", side=Side.SINK),
)
_JSON = (
    _flag(
        "fail-on-missing-field", "Treat a missing field as a bad record instead of null.", side=Side.SOURCE
    ),
    _SKIP_BAD,
    _TIMES,
    *_WRITING,
    Option(
        "decode.json-parser.enabled",
        BOOLEAN,
        "Flink's choice of parser.",
        default="true",
        side=Side.SOURCE,
        fate=Fate.REFUSED,
        reason=_OTHER_PARSER,
    ),
)
_CDC_JSON = (_SKIP_BAD, _TIMES, *_WRITING)
_CSV = (
    _text("field-delimiter", "One character between fields.", ","),
    _flag("disable-quote-character", "Neither expect nor write quotes."),
    _text("quote-character", "Character round values that hold a delimiter.", '"'),
    _flag("allow-comments", "Skip lines that begin with '#'."),
    _flag("ignore-parse-errors", "Read a field that cannot be read as null, and skip a line that is broken."),
    _text("array-element-delimiter", "Text between the elements of an array or row.", ";"),
    _text("escape-character", "Character that makes the next one literal."),
    _text("null-literal", "Text that stands for null."),
    _flag("write-bigdecimal-in-scientific-notation", "Write 100000 as 1E+5.", "true"),
)
_REGISTRY = (
    _text("url", "Address of the schema registry.", required=True),
    _text("subject", "Subject a schema is registered under; by default the topic with -key or -value."),
    _text("schema", "Avro schema to use instead of the one derived from the table."),
    _text("basic-auth.credentials-source", "Where the registry client takes basic credentials from."),
    _text("basic-auth.user-info", "user:password for the registry."),
    _text("bearer-auth.credentials-source", "Where the registry client takes a bearer token from."),
    _text("bearer-auth.token", "Bearer token for the registry."),
    _text("ssl.keystore.location", "Key store for the registry."),
    _text("ssl.keystore.password", "Password of the key store."),
    _text("ssl.truststore.location", "Trust store for the registry."),
    _text("ssl.truststore.password", "Password of the trust store."),
    _text("properties.*", "Any other setting of the registry client."),
)
_TIME, _PAIRS = "TIMESTAMP_LTZ(3)", "MAP<STRING, STRING>"
_DEBEZIUM = {
    "schema": "STRING",
    "ingestion-timestamp": _TIME,
    "source.timestamp": _TIME,
    "source.database": "STRING",
    "source.schema": "STRING",
    "source.table": "STRING",
    "source.properties": _PAIRS,
}
_CANAL = {
    "database": "STRING",
    "table": "STRING",
    "sql-type": "MAP<STRING, INT>",
    "pk-names": "ARRAY<STRING>",
    "ingestion-timestamp": _TIME,
    "event-timestamp": _TIME,
}
_MAXWELL = {
    "database": "STRING",
    "table": "STRING",
    "primary-key-columns": "ARRAY<STRING>",
    "ingestion-timestamp": _TIME,
}
_OGG = {
    "table": "STRING",
    "primary-keys": "ARRAY<STRING>",
    "ingestion-timestamp": _TIME,
    "event-timestamp": _TIME,
}
_CANAL_FILTERS = (
    _text("database.include", "Regular expression: only changes of matching databases are read."),
    _text("table.include", "Regular expression: only changes of matching tables are read."),
)

FORMATS: Mapping[str, DeclaredFormat] = MappingProxyType(
    {
        declared.name: declared
        for declared in (
            DeclaredFormat("json", "One JSON object per document.", _JSON, fate=Fate.HONOURED),
            DeclaredFormat("csv", "One line of separated values.", _CSV),
            DeclaredFormat(
                "raw",
                "The bytes of a single column.",
                (
                    _text("charset", "Character set of a string.", "UTF-8"),
                    Option(
                        "endianness",
                        choice("big-endian", "little-endian"),
                        "Byte order of a number.",
                        default="big-endian",
                    ),
                ),
            ),
            DeclaredFormat(
                "avro",
                "Avro with the schema derived from the table.",
                (
                    Option("encoding", choice("binary", "json"), "Avro's encoding.", default="binary"),
                    _flag("timestamp_mapping.legacy", "Map timestamps as Flink did before 1.19.", "true"),
                ),
            ),
            DeclaredFormat("avro-confluent", "Avro whose schemas are in a schema registry.", _REGISTRY),
            DeclaredFormat(
                "debezium-json",
                "Debezium change events in JSON.",
                (
                    _flag("schema-include", "The event is wrapped in Kafka Connect's schema and payload."),
                    *_CDC_JSON,
                ),
                insert_only=False,
                metadata=_DEBEZIUM,
            ),
            DeclaredFormat(
                "debezium-avro-confluent",
                "Debezium change events in registry Avro.",
                _REGISTRY,
                insert_only=False,
            ),
            DeclaredFormat(
                "canal-json",
                "Canal change events.",
                (*_CANAL_FILTERS, *_CDC_JSON),
                insert_only=False,
                metadata=_CANAL,
            ),
            DeclaredFormat(
                "maxwell-json", "Maxwell change events.", _CDC_JSON, insert_only=False, metadata=_MAXWELL
            ),
            DeclaredFormat(
                "ogg-json", "Oracle GoldenGate change events.", _CDC_JSON, insert_only=False, metadata=_OGG
            ),
            DeclaredFormat(
                "protobuf",
                "Protocol Buffers.",
                fate=Fate.REFUSED,
                reason="Flink reads it with Java classes made from the .proto file, which are not here",
            ),
        )
    }
)


def declared_format(option: str, name: str) -> DeclaredFormat:
    """The format called `name` in `option`. Raises OptionError for an unknown or a refused one."""
    declared = FORMATS.get(name)
    if declared is None:
        near = get_close_matches(name.lower(), FORMATS, 1, 0.7)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise OptionError(f"'{option}': format '{name}' is not known. Known are {', '.join(FORMATS)}{hint}")
    if declared.fate is Fate.REFUSED:
        raise OptionError(f"'{option}' = '{name}' is refused: {declared.reason}")
    return declared
