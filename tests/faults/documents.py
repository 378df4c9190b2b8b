"""Writes and reads keys and rows as documents of each format, without code of the bridge.

A key is a number; `KEY_TYPES` maps it to values of the key's type.
"""

from __future__ import annotations

import base64
import io
import json
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import fastavro

from tests.faults.history import TRUNCATE, Row
from tests.faults.sums import more_values

KEYS = 300
UNKNOWN = -1
"""The number of every key that the writer has not sent."""

BAD = b"\x07 no document of any format"
"""An undecodable value."""

_Values = tuple[Any, ...]


@dataclass(frozen=True)
class KeyType:
    columns: Mapping[str, str]
    """Flink's types by name."""
    avro: tuple[Any, ...]
    values: Callable[[int], _Values]

    def number(self, values: _Values) -> int:
        """Returns the number of the key with these values."""
        numbers = _NUMBERS.setdefault(id(self), {self.values(n): n for n in range(KEYS)})
        return numbers.get(values, UNKNOWN)


_NUMBERS: dict[int, dict[_Values, int]] = {}


def _decimal(n: int) -> _Values:
    # 19 to 38 digits: more than a double can represent.
    return (Decimal((10**37 if n % 2 else 1234567890123456789) + n),)


def _pair(n: int) -> _Values:
    at = datetime(1969, 12, 31, 23, 59, 59, 999000) + timedelta(days=n % 7 - 3)
    return bytes((0, 255, n // 256, n % 256)), at


KEY_TYPES = {
    "BIGINT": KeyType({"id": "BIGINT"}, ("long",), lambda n: (n,)),
    # They differ after the prefix that statistics contain.
    "STRING": KeyType(
        {"id": "STRING"}, ("string",), lambda n: (f"thirty-two characters are the same: ä{n}",)
    ),
    "DECIMAL(38,0)": KeyType(
        {"id": "DECIMAL(38, 0)"},
        ({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0},),
        _decimal,
    ),
    "BINARY, TIMESTAMP": KeyType(
        {"id": "BYTES", "at": "TIMESTAMP(3)"},
        ("bytes", {"type": "long", "logicalType": "timestamp-millis"}),
        _pair,
    ),
}
_ROW = {"seq": "long", "writer": "string", "seed": "long"}
_MORE = {"low": "long", "high": "long", "tags": {"type": "array", "items": "long"}}


class Documents:
    """One topic's documents. `registry` is the schema registry's URL, for avro-confluent. `more`: rows have further
    values, to be combined."""

    def __init__(
        self,
        key: str = "BIGINT",
        format: str = "json",
        registry: str = "",
        topic: str = "",
        *,
        more: bool = False,
    ) -> None:
        self._more = more
        self._type, self._format = KEY_TYPES[key], format
        self._registry, self._topic = registry, topic
        self._ids: dict[str, int] = {}
        self._schemas: dict[int, Any] = {}

    def key(self, number: int) -> bytes | None:
        if number == TRUNCATE:
            return None
        named = self._named(number)
        return self._avro("key", named) if self._format == "avro-confluent" else _json(named)

    def value(self, number: int, row: Row | None, before: Row | None = None) -> bytes | None:
        """Writes the document of a row, or of its delete."""
        if number == TRUNCATE:
            return _json({"before": None, "after": None, "op": "t", "source": {"ts_ms": 0}})
        if self._format == "debezium-json":
            sides = self._full(number, before), self._full(number, row)
            op = "d" if row is None else "u" if before else "c"
            at = (row or before or (0,))[0]
            return _json(
                {
                    "before": sides[0] or self._full(number, (0, "", 0)) if row is None else sides[0],
                    "after": sides[1],
                    "op": op,
                    "source": {"ts_ms": at},
                }
            )
        full = self._full(number, row)
        if full is None:
            return None
        return self._avro("value", full) if self._format == "avro-confluent" else _json(full)

    def read(self, key: bytes | None, value: bytes | None) -> tuple[int, Row | None]:
        """Returns (number, row); raises ValueError for an undecodable value."""
        if key is None:
            return TRUNCATE, None
        avro = self._format == "avro-confluent"
        number = self._number(self._parsed(key) if avro else json.loads(key, parse_float=Decimal))
        if value is None:
            return number, None
        if value == BAD:
            raise ValueError(value)
        fields = self._parsed(value) if avro else json.loads(value, parse_float=Decimal)
        if self._format == "debezium-json":
            fields = None if fields["op"] == "d" else fields["after"]
        if fields is None:
            return number, None
        if self._number(fields) != number:  # the row belongs to another key
            return UNKNOWN, (fields["seq"], fields["writer"], fields["seed"])
        return number, (fields["seq"], fields["writer"], fields["seed"])

    def order(self, value: bytes | None) -> int:
        """Returns the number of a decodable change that is in debezium-json, of a deletion's too."""
        fields = json.loads(value or b"")
        return int((fields["before"] if fields["op"] == "d" else fields["after"])["seq"])

    def _named(self, number: int) -> dict[str, Any]:
        return dict(zip(self._type.columns, self._type.values(number), strict=True))

    def _full(self, number: int, row: Row | None) -> dict[str, Any] | None:
        if row is None:
            return None
        more = dict(zip(_MORE, more_values(row), strict=True)) if self._more else {}
        return {**self._named(number), **dict(zip(_ROW, row, strict=True)), **more}

    def _number(self, fields: Mapping[str, Any]) -> int:
        return self._type.number(tuple(_read(type, fields[n]) for n, type in self._type.columns.items()))

    def _avro(self, side: str, named: Mapping[str, Any]) -> bytes:
        fields = [{"name": n, "type": t} for n, t in zip(self._type.columns, self._type.avro, strict=True)]
        if side == "value":
            fields += [{"name": n, "type": t} for n, t in {**_ROW, **(_MORE if self._more else {})}.items()]
        if side not in self._ids:
            schema = {"type": "record", "name": "Written", "fields": fields}
            asked = json.dumps({"schema": json.dumps(schema)}).encode()
            response = self._ask(f"subjects/{self._topic}-{side}/versions", asked)
            self._ids[side] = response["id"]
            self._schemas[response["id"]] = fastavro.parse_schema(schema)
        out = io.BytesIO()
        aware = {
            n: v.replace(tzinfo=timezone.utc) if isinstance(v, datetime) else v for n, v in named.items()
        }
        fastavro.schemaless_writer(out, self._schemas[self._ids[side]], aware)
        return b"\0" + self._ids[side].to_bytes(4, "big") + out.getvalue()

    def _parsed(self, document: bytes) -> dict[str, Any]:
        id = int.from_bytes(document[1:5], "big")
        if id not in self._schemas:
            self._schemas[id] = fastavro.parse_schema(json.loads(self._ask(f"schemas/ids/{id}")["schema"]))
        document_fields = fastavro.schemaless_reader(io.BytesIO(document[5:]), self._schemas[id], None)
        assert isinstance(document_fields, dict)
        return document_fields

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        kind = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(f"{self._registry}/{path}", body, kind)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def _json(document: Mapping[str, Any]) -> bytes:
    return (
        json.dumps(document, default=_plain).encode()
        if not _has_decimal(document)
        else _with_numbers(document)
    )


def _has_decimal(document: Any) -> bool:
    inside = document.values() if isinstance(document, Mapping) else ()
    return any(isinstance(v, Decimal) or _has_decimal(v) for v in inside)


def _with_numbers(document: Mapping[str, Any]) -> bytes:
    def whole(v: Any) -> Any:
        if isinstance(v, Mapping):
            return {n: whole(x) for n, x in v.items()}
        return int(v) if isinstance(v, Decimal) else v

    return json.dumps(whole(document), default=_plain).encode()


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)[:23]


def _read(type: str, value: Any) -> Any:
    """Parses the value of a key column from JSON or Avro."""
    if type.startswith("DECIMAL"):
        return Decimal(value)
    if type == "BYTES" and isinstance(value, str):
        return base64.b64decode(value)
    if type.startswith("TIMESTAMP"):
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.replace(tzinfo=None)
    return value
