"""Parses Flink's data types: converts each spelling to its canonical DataType and checks the ranges.

Rules: Flink's documentation, "Data Types" (https://nightlies.apache.org/flink/flink-docs-stable/docs/dev/table/types/).
"""

from __future__ import annotations

from bridge.ddl.tokens import Cursor, Token, nearest
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType, unsupported

MAX_LENGTH = 2_147_483_647

_WITHOUT_PARAMETERS = (
    *("BIGINT", "BOOLEAN", "BYTES", "DATE", "FLOAT", "INT", "SMALLINT", "STRING", "TINYINT"),
    *("NULL", "VARIANT"),
)
_WITH_LENGTH = ("BINARY", "CHAR", "VARBINARY", "VARCHAR")
_SYNONYMS = {"CHARACTER": "CHAR", "DEC": "DECIMAL", "INTEGER": "INT", "NUMERIC": "DECIMAL"}
_UNBOUNDED = {"VARCHAR": "STRING", "VARBINARY": "BYTES"}
_TIMES = ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
_COMPOSITE = ("ARRAY", "MAP", "MULTISET", "ROW")
_NAMES = sorted(
    {*_WITHOUT_PARAMETERS, *_WITH_LENGTH, *_TIMES, *_COMPOSITE, "DECIMAL", "DOUBLE"}
    - {"NULL", "TIME", "VARIANT"}
)
# Type names of Spark, Java and databases.
_FOREIGN_NAMES = {
    "BLOB": "BYTES",
    "BOOL": "BOOLEAN",
    "DATETIME": "TIMESTAMP",
    "INT64": "BIGINT",
    "JSON": "STRING",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "STRUCT": "ROW",
    "STRUCTURED": "ROW",
    "TEXT": "STRING",
    "TIMESTAMPTZ": "TIMESTAMP_LTZ",
    "TIMESTAMP_NTZ": "TIMESTAMP",
    "UUID": "STRING",
}


def parse_type(c: Cursor, what: str = "a type") -> DataType:
    """Parses the type at the cursor, including its suffixes NOT NULL, ARRAY and MULTISET.

    Raises DdlError for a type that is unknown, out of range, or has no counterpart in Spark.
    """
    type = _nullable(c, _base(c, what))
    while c.at("ARRAY") or c.at("MULTISET"):
        type = ArrayType(type) if c.next().keyword == "ARRAY" else _multiset(type)
        type = _nullable(c, type)
    return type


def _nullable(c: Cursor, type: DataType) -> DataType:
    if c.take("NOT"):
        c.expect("NULL", " after NOT")
        return type.required()
    c.take("NULL")
    return type


def _base(c: Cursor, what: str) -> DataType:
    start = c.token
    if start.kind == "name":
        c.fail(
            f"`{start.text}` is a user-defined type, which the bridge does not support; declare its fields as ROW<...>"
        )
    if start.kind != "word":
        c.fail_expected(what)
    written = c.next().keyword
    word = _SYNONYMS.get(written, written)
    return _composite(c, word) if word in _COMPOSITE else _supported(c, _scalar(c, word, start), start)


def _supported(c: Cursor, type: ScalarType, start: Token) -> ScalarType:
    reason = unsupported(type)
    if reason is not None:
        c.fail(f"type {start.keyword}: {reason}", start)
    return type


def _scalar(c: Cursor, word: str, start: Token) -> ScalarType:
    if word in _WITHOUT_PARAMETERS:
        return ScalarType(word)
    if word == "DOUBLE":
        c.take("PRECISION")
        return ScalarType("DOUBLE")
    if word in _WITH_LENGTH:
        return _with_length(c, word)
    if word == "DECIMAL":
        return _decimal(c)
    if word in _TIMES:
        return _time(c, word)
    if word == "INTERVAL":
        return _interval(c)
    if word == "RAW":
        if c.take("("):
            c.comma_separated(lambda: c.string("a class name or a serializer snapshot"))
        return ScalarType("RAW")
    hint = f"did you mean `{_FOREIGN_NAMES[word]}`?" if word in _FOREIGN_NAMES else nearest(word, _NAMES)
    c.fail(f"unknown type `{start.text}`; {hint}", start)


def _with_length(c: Cursor, name: str) -> ScalarType:
    if c.take("VARYING") and not name.startswith("VAR"):
        name = "VARCHAR" if name == "CHAR" else "VARBINARY"
    length = 1
    if c.take("("):
        length = c.integer(f"the length of {name}", 1, MAX_LENGTH)
        c.expect(")")
    if length == MAX_LENGTH and name in _UNBOUNDED:
        return ScalarType(_UNBOUNDED[name])
    return ScalarType(name, (length,))


def _decimal(c: Cursor) -> ScalarType:
    precision, scale = 10, 0
    if c.take("("):
        precision = c.integer("the precision of DECIMAL", 1, 38)
        if c.take(","):
            scale = c.integer("the scale of DECIMAL (at most its precision)", 0, precision)
        c.expect(")")
    return ScalarType("DECIMAL", (precision, scale))


def _time(c: Cursor, word: str) -> ScalarType:
    precision = 0 if word == "TIME" else 6
    if c.take("("):
        precision = c.integer(f"the precision of {word}", 0, 9)
        c.expect(")")
    if word != "TIMESTAMP_LTZ" and c.take("WITHOUT"):
        _expect_all(c, "TIME", "ZONE")
    elif word == "TIMESTAMP" and c.take("WITH"):
        word = "TIMESTAMP_LTZ" if c.take("LOCAL") else "TIMESTAMP_TZ"
        _expect_all(c, "TIME", "ZONE")
    return ScalarType(word, (precision,))


def _expect_all(c: Cursor, *keywords: str) -> None:
    for keyword in keywords:
        c.expect(keyword)


def _interval(c: Cursor) -> ScalarType:
    def field() -> None:
        c.name("a unit of time")
        if c.take("("):
            c.integer("the precision of the unit", 0, 9)
            c.expect(")")

    field()
    if c.take("TO"):
        field()
    return ScalarType("INTERVAL")


def _composite(c: Cursor, word: str) -> DataType:
    if word == "ROW":
        return _row(c)
    c.expect("<", f" after {word}")
    if word == "MAP":
        key = parse_type(c, "the type of the map's keys")
        c.expect(",", " and the type of the map's values")
        composite: DataType = MapType(key, parse_type(c, "the type of the map's values"))
    else:
        element = parse_type(c, f"the type of the elements of {word}")
        composite = ArrayType(element) if word == "ARRAY" else _multiset(element)
    c.expect(">", f" to close {word}<")
    return composite


def _multiset(element: DataType) -> MapType:
    return MapType(element, ScalarType("INT"))


def _row(c: Cursor) -> RowType:
    fields: dict[str, RowField] = {}

    def field() -> None:
        token = c.name("a field name")
        if token.text.casefold() in fields:
            c.fail(f"field `{token.text}` is declared twice (names in Spark are case-insensitive)", token)
        fields[token.text.casefold()] = RowField(
            token.text, parse_type(c, f"the type of field `{token.text}`")
        )
        # The comment of a field is documentation only and is not stored.
        if c.take("COMMENT"):
            c.string("the comment")
        elif c.token.kind == "string":
            c.next()

    if not (c.at("<") or c.at("(")):
        c.fail_expected("'<' or '(' after ROW")
    c.comma_separated(field, ">" if c.next().text == "<" else ")")
    return RowType(tuple(fields.values()))
