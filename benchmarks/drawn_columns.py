"""Rows of drawn columns in a format: every value is a function of the row's id and of the number of its record, written
in Python for the documents and in SQL for the judge.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import random
import struct
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import fastavro

from benchmarks.topics import Load, TopicRows

FORMATS = ("json", "avro-confluent", "debezium-json", "csv")
_NULL = "-"
_EPOCH = datetime.datetime(1970, 1, 1)
_MILLIS = 1_700_000_000_000


def _uuid(v: int) -> str:
    text = hashlib.md5(str(v).encode(), usedforsecurity=False).hexdigest()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_MD5 = "md5(CAST({v} AS STRING))"
_UUID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
_UUID = f"concat_ws('-', {', '.join(f'substr({_MD5}, {at}, {size})' for at, size in _UUID_PARTS)})"


@dataclass(frozen=True)
class Column:
    """A column: its types in Flink and Avro, and its value by one number `v`, in Python and in Spark's SQL."""

    flink: str
    avro: object
    value: Callable[[int], Any]
    sql: str
    quoted: bool = False
    """Whether JSON has its text between quotes."""

    def text(self, v: int) -> str | None:
        """The value as documents of JSON and CSV have it."""
        value = self.value(v)
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, datetime.datetime):
            return value.isoformat(" ", "milliseconds")
        return str(value)


def _text(length: int) -> Column:
    return Column(
        "STRING", "string", lambda v: f"{v:x>{length}}", f"lpad(CAST({{v}} AS STRING), {length}, 'x')", True
    )


def _logical(type: str, name: str, **more: int) -> dict[str, object]:
    return {"type": type, "logicalType": name, **more}


_KINDS = (
    Column("BIGINT", "long", lambda v: v * 1_000_003, "{v} * 1000003L"),
    Column("INT", "int", lambda v: v % 2_000_000_000, "CAST({v} % 2000000000L AS INT)"),
    Column("DOUBLE", "double", lambda v: v / 8, "CAST({v} AS DOUBLE) / 8"),
    Column(
        "DECIMAL(12, 2)",
        _logical("bytes", "decimal", precision=12, scale=2),
        lambda v: Decimal(v % 1_000_000_000).scaleb(-2),
        "CAST(CAST({v} % 1000000000L AS DECIMAL(10, 0)) / 100 AS DECIMAL(12, 2))",
    ),
    Column("BOOLEAN", "boolean", lambda v: v % 3 == 0, "{v} % 3 = 0"),
    Column(
        "TIMESTAMP(3)",
        _logical("long", "timestamp-millis"),
        lambda v: _EPOCH + datetime.timedelta(milliseconds=_MILLIS + v),
        f"CAST(timestamp_millis({_MILLIS} + {{v}}) AS TIMESTAMP_NTZ)",
        quoted=True,
    ),
    Column(
        "DATE",
        _logical("int", "date"),
        lambda v: (_EPOCH + datetime.timedelta(days=10_000 + v % 10_000)).date(),
        "date_add(DATE '1970-01-01', CAST(10000 + {v} % 10000 AS INT))",
        quoted=True,
    ),
    Column("STRING", "string", _uuid, _UUID, quoted=True),
    *map(_text, (10, 24, 60, 120)),
    Column(
        "STRING",
        "string",
        lambda v: None if v % 4 else "please leave it at the door",
        "IF({v} % 4 = 0, 'please leave it at the door', NULL)",
        quoted=True,
    ),
)


@dataclass(frozen=True)
class DrawnColumns(TopicRows):
    """Rows with `id`, `number`, and between them `width` columns of types drawn by `seed`, or one text of
    `value_bytes`."""

    format: str
    width: int
    seed: int = 0
    value_bytes: int = 0
    registry: str = ""
    """The URL of the schema registry, for `avro-confluent`."""

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        if self.value_bytes:
            return (_text(self.value_bytes),)
        draw = random.Random(1000 * self.seed + self.width)
        return tuple(draw.choice(_KINDS) for _ in range(self.width))

    @cached_property
    def types(self) -> Mapping[str, str]:
        drawn = {f"c{seat}": column.flink for seat, column in enumerate(self.columns)}
        return {"id": "BIGINT", **drawn, "number": "BIGINT"}

    @cached_property
    def sql(self) -> Mapping[str, str]:
        seats = enumerate(self.columns)
        return {
            f"c{seat}": column.sql.format(v=f"(id * 31L + number * 17L + {7 * seat}L)")
            for seat, column in seats
        }

    def options(self) -> dict[str, str]:
        if self.format == "debezium-json":
            return {"connector": "kafka", "format": self.format, "scan.startup.mode": "earliest-offset"}
        of_format = {
            "csv": {"value.csv.null-literal": _NULL},
            "avro-confluent": {"value.avro-confluent.url": self.registry},
        }
        upserts = {"connector": "upsert-kafka", "key.format": "json", "value.format": self.format}
        return {**upserts, **of_format.get(self.format, {})}

    def documents(self, load: Load, start: int, end: int) -> list[dict[str, bytes | None]]:
        """Keys and values of these records. A change of Debezium has the row as it was before, too."""
        keys, deletes = load.keys[start:end].tolist(), load.deletes[start:end].tolist()
        if self.format == "debezium-json":
            values = self._changes(load, start, end)
        else:
            made = {"json": self._json, "csv": self._csv, "avro-confluent": self._avro}[self.format]
            values = [
                None if gone else made(id, number)
                for number, (id, gone) in enumerate(zip(keys, deletes, strict=True), start + 1)
            ]
        return [{"key": b'{"id":%d}' % id, "value": value} for id, value in zip(keys, values, strict=True)]

    def _changes(self, load: Load, start: int, end: int) -> list[bytes | None]:
        found: list[bytes | None] = []
        for at in range(start, end):
            id, before = int(load.keys[at]), int(load.previous[at])
            was = self._json(id, before) if before else None
            gone = bool(load.deletes[at])
            if gone and was is None:
                was = self._json(id, 0)  # a change of a row that no record of the topic has written
            op = "d" if gone else "u" if was else "c"
            now = b"null" if gone else self._json(id, at + 1)
            found.append(b'{"before":%b,"after":%b,"op":"%b"}' % (was or b"null", now, op.encode()))
        return found

    def _numbers(self, id: int, number: int) -> range:
        first = id * 31 + number * 17
        return range(first, first + 7 * len(self.columns), 7)

    def _json(self, id: int, number: int) -> bytes:
        parts = [f'"id":{id}']
        for seat, (column, v) in enumerate(zip(self.columns, self._numbers(id, number), strict=True)):
            text = column.text(v)
            parts.append(f'"c{seat}":"{text}"' if column.quoted and text else f'"c{seat}":{text or "null"}')
        return f'{{{",".join(parts)},"number":{number}}}'.encode()

    def _csv(self, id: int, number: int) -> bytes:
        texts = (c.text(v) for c, v in zip(self.columns, self._numbers(id, number), strict=True))
        return ",".join([str(id), *(_NULL if text is None else text for text in texts), str(number)]).encode()

    def _avro(self, id: int, number: int) -> bytes:
        schema, header = self._registered
        values = (c.value(v) for c, v in zip(self.columns, self._numbers(id, number), strict=True))
        row = {"id": id, **{f"c{seat}": value for seat, value in enumerate(values)}, "number": number}
        out = io.BytesIO()
        out.write(header)
        fastavro.schemaless_writer(out, schema, row)
        return out.getvalue()

    @cached_property
    def _registered(self) -> tuple[Any, bytes]:
        """The writer's schema, and the bytes before each document: a zero and the schema's id."""
        of_columns: list[dict[str, object]] = [
            {"name": f"c{seat}", "type": ["null", column.avro]} for seat, column in enumerate(self.columns)
        ]
        number: dict[str, object] = {"name": "number", "type": ["null", "long"]}
        fields = [{"name": "id", "type": "long"}, *of_columns, number]
        schema = {"type": "record", "name": "row", "fields": fields}
        request = urllib.request.Request(
            f"{self.registry}/subjects/drawn-{self.seed}-{self.width}/versions",
            json.dumps({"schema": json.dumps(schema)}).encode(),
            {"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=30) as answer:
            id = int(json.load(answer)["id"])
        return fastavro.parse_schema(schema), struct.pack(">bI", 0, id)
