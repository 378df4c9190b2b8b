"""Options of the formats, keys without any prefix."""

from __future__ import annotations

from typing import Any

from bridge.options.kinds import BOOLEAN, STRING, choice
from bridge.options.model import Option, Side, Support

__all__ = ["AVRO", "CANAL_JSON", "CDC_JSON", "CSV", "DEBEZIUM_JSON", "JSON", "RAW", "REGISTRY"]

_OTHER_PARSER = (
    "false chooses Flink's tree parser, whose casts differ; the bridge reads as the streaming parser does: "
    "use true"
)


def _flag(key: str, text: str, default: str = "false", side: Side = Side.BOTH) -> Option[bool]:
    return Option(key, BOOLEAN, text, default=default, side=side)


def _text(key: str, text: str, default: str | None = None, required: bool = False) -> Option[str]:
    return Option(key, STRING, text, default=default, required=required)


_IGNORE_PARSE_ERRORS = _flag(
    "ignore-parse-errors",
    "Skip documents that cannot be read, and count them, instead of leaving them to 'ingest.bad-records'.",
    side=Side.SOURCE,
)
_TIMESTAMP_FORMAT = Option(
    "timestamp-format.standard",
    choice("SQL", "ISO-8601", subject="timestamp-format.standard", exact=True),
    "How timestamps are written: 'SQL' as 2020-12-30 12:13:14.123, 'ISO-8601' as 2020-12-30T12:13:14.123.",
    default="SQL",
)
_JSON_SINK_OPTIONS: tuple[Option[Any], ...] = (
    Option(
        "map-null-key.mode",
        choice("LITERAL", "FAIL", "DROP", subject="option map-null-key.mode"),
        "What is done with a null key of a map: fail, leave the entry out, or write 'map-null-key.literal'. A map of "
        "Spark's never holds one (docs/adr/005).",
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
JSON = (
    _flag(
        "fail-on-missing-field", "Treat a missing field as a bad record instead of null.", side=Side.SOURCE
    ),
    _IGNORE_PARSE_ERRORS,
    _TIMESTAMP_FORMAT,
    *_JSON_SINK_OPTIONS,
    Option(
        "decode.json-parser.enabled",
        BOOLEAN,
        "Flink's choice of parser.",
        default="true",
        side=Side.SOURCE,
        support=Support.REFUSED,
        reason=_OTHER_PARSER,
    ),
)
CDC_JSON = (_IGNORE_PARSE_ERRORS, _TIMESTAMP_FORMAT, *_JSON_SINK_OPTIONS)
CSV = (
    _text(
        "field-delimiter", "One character between fields; Java's escapes are read, as in \\t or \\u0001.", ","
    ),
    _flag("disable-quote-character", "Neither expect nor write quotes."),
    _text("quote-character", 'Character round values that hold a delimiter; " unless quotes are disabled.'),
    _flag("allow-comments", "Skip lines that begin with '#'."),
    _flag("ignore-parse-errors", "Read a field that cannot be read as null, and skip a line that is broken."),
    _text("array-element-delimiter", "Character between the elements of an array or row.", ";"),
    _text("escape-character", "Character that makes the next one literal."),
    _text("null-literal", "Text that stands for null."),
    _flag("write-bigdecimal-in-scientific-notation", "Write 100000 as 1E+5.", "true"),
    _flag("trim-spaces", "Cut spaces and control characters around values without quotes.", side=Side.SOURCE),
    _flag("empty-string-as-null", "Read an empty value, quoted or not, as null.", side=Side.SOURCE),
    Option(
        "allow-trailing-comma",
        BOOLEAN,
        "Pass over one blank field after the last column. Where it is not given that is so, too, as in all releases of "
        "Flink that do not have the option; 'false' makes such a line a bad record.",
        side=Side.SOURCE,
    ),
    _flag(
        "ignore-trailing-unmappable",
        "Pass over whatever fields there are after the last column.",
        side=Side.SOURCE,
    ),
    _flag(
        "fail-on-missing-columns",
        "A line of fewer fields than columns is bad as a whole under 'ignore-parse-errors', too, where the columns "
        "that it lacks are null otherwise. Without that option it is a bad record in any case.",
        side=Side.SOURCE,
    ),
)
REGISTRY = (
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
DEBEZIUM_JSON = (
    _flag("schema-include", "The event is wrapped in Kafka Connect's schema and payload."),
    *CDC_JSON,
)
CANAL_JSON = (
    _text("database.include", "Regular expression: only changes of matching databases are read."),
    _text("table.include", "Regular expression: only changes of matching tables are read."),
    *CDC_JSON,
)
RAW: tuple[Option[Any], ...] = (
    _text(
        "charset",
        "Character set of a string, one that Spark reads: UTF-8, US-ASCII, ISO-8859-1, UTF-16, UTF-16BE, UTF-16LE or "
        "UTF-32.",
        "UTF-8",
    ),
    Option(
        "endianness",
        choice("big-endian", "little-endian"),
        "Byte order of a number.",
        default="big-endian",
    ),
)
AVRO: tuple[Option[Any], ...] = (
    Option(
        "encoding",
        choice("binary", "json"),
        "Avro's binary encoding, or its JSON encoding, in which a value that may be null names its type.",
        default="binary",
    ),
    _flag(
        "timestamp_mapping.legacy",
        "Map TIMESTAMP to Avro's instants, as Flink did before 1.19; 'false' has types for TIMESTAMP_LTZ and "
        "microseconds, too.",
        "true",
    ),
)
