"""The options of the formats, by keys without a prefix."""

from __future__ import annotations

from typing import Any

from bridge.options.kinds import BOOLEAN, STRING, choice
from bridge.options.model import Option, Side, Support

_OTHER_PARSER = (
    "'false' selects Flink's tree parser, which casts some values differently; the bridge casts like the streaming "
    "parser: use 'true' or remove the option"
)


def _flag(key: str, text: str, default: str = "false", side: Side = Side.BOTH) -> Option[bool]:
    return Option(key, BOOLEAN, text, default=default, side=side)


def _text(key: str, text: str, default: str | None = None, required: bool = False) -> Option[str]:
    return Option(key, STRING, text, default=default, required=required)


_IGNORE_PARSE_ERRORS = _flag(
    "ignore-parse-errors",
    "Skip and count documents that cannot be decoded, instead of applying 'ingest.bad-records' to them.",
    side=Side.SOURCE,
)
_TIMESTAMP_FORMAT = Option(
    "timestamp-format.standard",
    choice("SQL", "ISO-8601", subject="timestamp-format.standard", exact=True),
    "Format of timestamps: 'SQL' is 2020-12-30 12:13:14.123, 'ISO-8601' is 2020-12-30T12:13:14.123.",
    default="SQL",
)
_NO_NULL_KEYS = "maps in Spark have no null keys (docs/adr/005)"
_JSON_SINK_OPTIONS: tuple[Option[Any], ...] = (
    Option(
        "map-null-key.mode",
        choice("LITERAL", "FAIL", "DROP", subject="option map-null-key.mode"),
        "How Flink handles null keys of a map: fail, drop the entry, or write 'map-null-key.literal' as its key.",
        default="FAIL",
        side=Side.SINK,
        support=Support.IGNORED,
        reason=_NO_NULL_KEYS,
    ),
    Option(
        "map-null-key.literal",
        STRING,
        "The key that Flink writes for a null key of a map in the mode 'LITERAL'.",
        default="null",
        side=Side.SINK,
        support=Support.IGNORED,
        reason=_NO_NULL_KEYS,
    ),
    _flag(
        "encode.decimal-as-plain-number",
        "Write decimals without an exponent: 0.000000027 instead of 2.7E-8.",
        side=Side.SINK,
    ),
    _flag("encode.ignore-null-fields", "Omit fields that are null.", side=Side.SINK),
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
        "Whether Flink uses its streaming JSON parser.",
        default="true",
        side=Side.SOURCE,
        support=Support.REFUSED,
        reason=_OTHER_PARSER,
    ),
)
CDC_JSON = (_IGNORE_PARSE_ERRORS, _TIMESTAMP_FORMAT, *_JSON_SINK_OPTIONS)
CSV = (
    _text(
        "field-delimiter",
        "One character that separates fields. Java escapes such as \\t or \\u0001 are supported.",
        ",",
    ),
    _flag("disable-quote-character", "Read and write values without quotes."),
    _text(
        "quote-character",
        'Character that encloses values containing a delimiter; by default " unless quotes are disabled.',
    ),
    _flag("allow-comments", "Skip lines that start with '#'."),
    _flag("ignore-parse-errors", "Read fields that cannot be parsed as null, and skip malformed lines."),
    _text("array-element-delimiter", "Character that separates the elements of an array or a row.", ";"),
    _text("escape-character", "Character that escapes the character after it."),
    _text("null-literal", "Text that represents null."),
    _flag(
        "write-bigdecimal-in-scientific-notation",
        "Write decimals without zeros at their end, in scientific notation: 1E+5 instead of 100000. Flink's manual "
        "says that this is the default; Flink 2.0.2 does it only where the option is 'true'.",
    ),
    _flag("trim-spaces", "Trim spaces and control characters around unquoted values.", side=Side.SOURCE),
    _flag("empty-string-as-null", "Read empty values, quoted or not, as null.", side=Side.SOURCE),
    Option(
        "allow-trailing-comma",
        BOOLEAN,
        "Ignore one empty field after the last column. If the option is not set, such a field is ignored as well, as "
        "in all releases of Flink without the option; 'false' makes the line a bad record.",
        side=Side.SOURCE,
    ),
    _flag(
        "ignore-trailing-unmappable",
        "Ignore all fields after the last column.",
        side=Side.SOURCE,
    ),
    _flag(
        "fail-on-missing-columns",
        "With 'ignore-parse-errors': skip a line with fewer fields than columns, instead of reading the missing "
        "columns as null. Without 'ignore-parse-errors' such a line is always a bad record.",
        side=Side.SOURCE,
    ),
)
REGISTRY = (
    _text("url", "Address of the schema registry.", required=True),
    _text("subject", "Subject under which a schema is registered; by default <topic>-key or <topic>-value."),
    _text("schema", "Avro schema to use instead of the schema derived from the table."),
    _text(
        "basic-auth.credentials-source",
        "Source of the credentials for basic authentication: USER_INFO or URL.",
    ),
    _text("basic-auth.user-info", "Credentials for basic authentication: <user>:<password>."),
    _text("bearer-auth.credentials-source", "Source of the bearer token: STATIC_TOKEN."),
    _text("bearer-auth.token", "Bearer token for the schema registry."),
    _text(
        "ssl.keystore.location",
        "Location of the key store with the client's certificate for the schema registry.",
    ),
    _text("ssl.keystore.password", "Password of that key store."),
    _text("ssl.truststore.location", "Location of the trust store for the schema registry."),
    _text("ssl.truststore.password", "Password of that trust store."),
    _text(
        "properties.*",
        "A setting of Confluent's registry client under its Java name: auto.register.schemas, use.latest.version, "
        "normalize.schemas, http.read.timeout.ms, max.retries, retries.wait.ms, retries.max.wait.ms, "
        "bearer.auth.logical.cluster or bearer.auth.identity.pool.id. Other names are errors.",
    ),
)
DEBEZIUM_JSON = (
    _flag(
        "schema-include",
        "Documents contain the event in the field payload, beside its Kafka Connect schema. A publish does not "
        "support it.",
        side=Side.SOURCE,
    ),
    *CDC_JSON,
)
CANAL_JSON = (
    _text("database.include", "Regular expression; changes of databases that do not match are not read."),
    _text("table.include", "Regular expression; changes of tables that do not match are not read."),
    *CDC_JSON,
)
RAW: tuple[Option[Any], ...] = (
    _text(
        "charset",
        "Character set of a string: UTF-8, US-ASCII, ISO-8859-1, UTF-16, UTF-16BE, UTF-16LE or UTF-32, which are the "
        "character sets of Spark.",
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
        "Avro's binary or JSON encoding.",
        default="binary",
    ),
    _flag(
        "timestamp_mapping.legacy",
        "'true' maps TIMESTAMP to Avro's timestamp-millis, as Flink did before 1.19, and supports neither "
        "TIMESTAMP_LTZ nor microseconds. 'false' maps TIMESTAMP to local timestamps and TIMESTAMP_LTZ to timestamps, "
        "always with milliseconds: Flink 2.0 reads and writes these also where its schema says microseconds.",
        "true",
    ),
)
