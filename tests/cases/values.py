"""Converts values between case files, Spark and a comparable form.

The comparable form is strict about types (True is not 1), rounds FLOAT to float32 and DECIMAL to its scale, treats NaN
as equal to NaN, and interprets times without a zone as UTC.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Context, Decimal
from typing import Any

from bridge import ddl
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType, quote, unsupported
from tests.cases.outcome import Unsupported

NULL_KEY = "<NULL>"
"""The null key of a map in case files."""

_EXACT = Context(prec=38)
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def payload(value: Any) -> bytes | None:
    """Returns the bytes of a record's key, value or header: text is UTF-8, null is null."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Mapping) and len(value) == 1:
        form, text = next(iter(value.items()))
        if form == "b64":
            return base64.b64decode(text)
        if form == "hex":
            return bytes.fromhex(text)
        if form == "utf8":
            return str(text).encode()
    if isinstance(value, Mapping) and "avro" in value:
        raise Unsupported("a document to be encoded with a schema, outside of a topic")
    raise Unsupported(f"a payload written as {type(value).__name__}")


def split(columns: str) -> list[tuple[str, str]]:
    """Splits `a INT, b ROW<c INT, d STRING>` into (name, type) pairs."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(columns):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(columns[start:at])
            start = at + 1
    parts.append(columns[start:])
    return [(name, type) for name, _, type in (part.strip().partition(" ") for part in parts)]


def types(columns: Sequence[tuple[str, str]]) -> dict[str, DataType]:
    """Returns the type of each column; raises Unsupported for one without a counterpart in Spark."""
    for _, text in columns:
        root = text.partition("(")[0].partition("<")[0].strip().upper()
        if unsupported(ScalarType(root, (0,))):
            raise Unsupported(f"type {root}")
    body = ", ".join(f"{quote(name)} {type}" for name, type in columns)
    parsed = ddl.parse(f"CREATE TABLE t ({body}) WITH ('connector' = 'kafka')")
    return {column.name: column.type for column in parsed.schema.physical}


def from_case(value: Any, type: DataType) -> Any:
    """Converts a case file's value to the Python value for Spark's `type`; raises Unsupported where there is none."""
    if value is None:
        return None
    if isinstance(type, ArrayType):
        return [from_case(item, type.element) for item in value]
    if isinstance(type, MapType):
        if NULL_KEY in value:
            raise Unsupported("a null key of a map: Spark's maps cannot hold one")
        return {from_case(k, type.key): from_case(v, type.value) for k, v in value.items()}
    if isinstance(type, RowType):
        items = [value.get(n) for n in type.names] if isinstance(value, Mapping) else list(value)
        return tuple(from_case(item, f.type) for item, f in zip(items, type.fields, strict=True))
    assert isinstance(type, ScalarType)
    return _scalar(value, type)


def _scalar(value: Any, type: ScalarType) -> Any:
    if type.name == "DECIMAL":
        return Decimal(str(value))
    if type.is_binary:
        # Within a JSON document bytes are base64 text.
        return base64.b64decode(value) if isinstance(value, str) else payload(value)
    if type.is_string and isinstance(value, Mapping):  # bytes upstream, text where declared as STRING
        return (payload(value) or b"").decode()
    if type.name == "DATE":
        return date.fromisoformat(value)
    if type.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return _time(value, zoned=type.name == "TIMESTAMP_LTZ")
    if type.name in ("FLOAT", "DOUBLE") and not isinstance(value, bool):
        return float(value)
    if type.name in _WHOLE and isinstance(value, str):
        return int(value)
    return value


def _time(value: Any, *, zoned: bool) -> datetime:
    if isinstance(value, int):
        found = datetime.fromtimestamp(value / 1000, timezone.utc)
    else:
        text = value.replace(" ", "T", 1).replace("Z", "+00:00")
        head, dot, tail = text.partition(".")
        digits = tail[: next((i for i, c in enumerate(tail) if not c.isdigit()), len(tail))]
        # Python 3.10 parses fractions of three or six digits only.
        found = datetime.fromisoformat(head + (f".{digits:0<6.6}{tail[len(digits) :]}" if dot else ""))
    if not zoned:
        return found.replace(tzinfo=None)
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def comparable(value: Any, type: DataType) -> Any:
    """Returns a hashable form of a value of Spark or `from_case`, in which equal values of `type` are equal."""
    if value is None:
        return None
    if isinstance(type, ArrayType):
        return tuple(comparable(item, type.element) for item in value)
    if isinstance(type, MapType):
        entries = [(comparable(k, type.key), comparable(v, type.value)) for k, v in value.items()]
        return ("map", *sorted(entries, key=repr))
    if isinstance(type, RowType):
        return tuple(comparable(item, f.type) for item, f in zip(value, type.fields, strict=True))
    assert isinstance(type, ScalarType)
    if type.name in ("FLOAT", "DOUBLE") and value != value:
        return "NaN"  # equal to itself, unlike the number
    if type.name == "FLOAT":
        return struct.unpack("f", struct.pack("f", value))[0]
    if type.name == "DECIMAL":
        return value.quantize(Decimal(1).scaleb(-type.parameters[1]), context=_EXACT)
    if type.name == "BOOLEAN":
        return ("boolean", value)
    if type.is_binary:
        return bytes(value)
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    return value
