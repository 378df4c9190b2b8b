"""Avro schemas, values and documents made by a random generator, written by fastavro; and damaged documents."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable
from typing import Any

import fastavro

from bridge.format_rules.avro_derive import derive
from bridge.formats.avro.decode import structure
from bridge.schema import DataType, RowField, RowType
from tests.formats.support import scalar

SCALARS: list[DataType] = [
    *(scalar(n) for n in "BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE STRING BYTES DATE".split()),
    *(
        scalar("DECIMAL", *parameters)
        for parameters in ((10, 2), (5, 5), (18, 0), (25, 3), (38, 0), (38, 38))
    ),
    *(scalar("TIMESTAMP", precision) for precision in (0, 2, 3, 4, 6)),
    *(scalar("TIMESTAMP_LTZ", precision) for precision in (1, 3, 5, 6)),
    scalar("CHAR", 3),
    scalar("VARBINARY", 5),
]
SYMBOLS = ("ON", "OFF", "_x", "A", "B")
"""Of all enums."""
_LEAVES = [
    "boolean", "int", "long", "float", "double", "bytes", "string",
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "int", "logicalType": "date"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
]  # fmt: skip
_TEXTS = ["", "a", "ab", "äöü", "名前", "😀", "\0", "x" * 70, "y" * 200, "true", "12"]
_DAMAGE = [
    b"\0",
    b"\1",
    b"\2",
    b"\xff",
    b"\x80",
    b"\x80\x80",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xff" * 9 + b"\1",
    b"\x7f",
]


def drawn_row(rng: random.Random, *, deep: int = 2) -> RowType:
    """A row of a few fields of any type that is read, some NOT NULL, some rows themselves."""
    fields = []
    for at in range(rng.randint(1, 5 if deep else 3)):
        nested = deep > 0 and rng.random() < 0.2
        type = drawn_row(rng, deep=deep - 1) if nested else rng.choice(SCALARS)
        fields.append(RowField(f"f{at}", type.required() if rng.random() < 0.4 else type))
    return RowType(tuple(fields))


def drawn_writer(rng: random.Random, row: RowType) -> Any:
    """A writer's schema for documents that are to be read as `row`: its own, or another in some fields."""
    drawing = _Writer(rng)
    made = drawing.changed(derive(row, legacy_timestamps=rng.random() < 0.5))
    return rng.choice([made] * 6 + [["null", made], [made, "null"], ["null", "string", made]])


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.count = 0
        self.rate = rng.choice([0, 0.1, 0.3])

    def changed(self, schema: Any) -> Any:
        if isinstance(schema, list):
            # The second branch is the value's.
            changed = self.changed(schema[1])
            made = changed if isinstance(changed, list) else ["null", changed]
            if self.maybe():
                return self.rng.choice(
                    [made[::-1], made[1], [*made, {**self.named("enum"), "symbols": list(SYMBOLS[3:4])}]]
                )
            return made
        if not (isinstance(schema, dict) and schema["type"] == "record"):
            if self.maybe():
                return self.other(schema)
            return ["null", schema] if self.maybe() and self.rng.random() < 0.3 else schema
        fields = [{"name": f["name"], "type": self.changed(f["type"])} for f in schema["fields"]]
        if self.maybe():
            self.rng.shuffle(fields)
        if self.maybe():
            fields.pop()
        if self.maybe():
            fields.insert(self.rng.randint(0, len(fields)), {"name": "extra", "type": self.extra()})
        return {**schema, **self.named("record"), "fields": fields}

    def maybe(self) -> bool:
        return self.rng.random() < self.rate

    def named(self, kind: str) -> dict[str, str]:
        self.count += 1
        return {"type": kind, "name": f"n{self.count}", "namespace": self.rng.choice(["", "a.b"])}

    def other(self, schema: Any) -> Any:
        """What is often promoted to `schema`, and any other leaf."""
        kind = schema["type"] if isinstance(schema, dict) else schema
        promoted: dict[str, list[Any]] = {
            "long": ["int", "long"],
            "float": ["int", "long"],
            "double": ["float", "int", "long"],
            "string": ["bytes", {**self.named("enum"), "symbols": list(SYMBOLS[:3])}],
            "bytes": ["string", {**self.named("fixed"), "size": self.rng.choice([1, 3, 9, 16, 17])}],
        }
        near = promoted.get(str(kind), [])
        if isinstance(schema, dict) and schema.get("logicalType") == "decimal":
            scale = self.rng.choice([schema["scale"], schema["scale"], 1])
            precision = self.rng.choice([max(4, scale), 38])
            logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
            near = [{**near[-1], **logical}, {"type": "bytes", **logical}]
        return self.rng.choice([*near * 3, *_LEAVES])

    def extra(self) -> Any:
        """A field that the table does not have."""
        kind = self.rng.randrange(6)
        leaf = self.rng.choice(_LEAVES)
        if kind == 0:
            fields = [{"name": "a", "type": leaf}, {"name": "b", "type": ["null", "string", "int"]}]
            return {**self.named("record"), "fields": fields}
        if kind == 1:
            return {**self.named("enum"), "symbols": list(SYMBOLS[3:])}
        if kind == 2:
            return ["null", "int", {**self.named("fixed"), "size": 2}]
        return {"type": "array", "items": "int"} if kind == 3 and self.rng.random() < 0.3 else leaf


def documents(
    rng: random.Random,
    schema: Any,
    count: int,
    *,
    wild: bool,
    changed: Callable[[Any], Any] = lambda value: value,
) -> list[bytes]:
    """Documents of a schema, undamaged; `wild` ones have values that are rare, and more of them than others do.
    `changed` may change a value before it is written."""
    parsed = fastavro.parse_schema(structure(schema))
    return [_document(parsed, changed(_value(rng, schema, wild=wild))) for _ in range(count)]


def document(row: RowType, *values: Any, legacy: bool = True) -> bytes:
    """The document of Flink's schema for `row`, of values as they are written (a date is its number)."""
    schema = fastavro.parse_schema(structure(derive(row, legacy_timestamps=legacy)))
    return _document(schema, dict(zip(row.names, values, strict=True)))


def damaged(rng: random.Random, made: bytes) -> bytes:
    """The document with some bytes changed, lost or added, often none."""
    for _ in range(rng.choice([0, 0, 0, 0, 1, 1, 2])):
        at = rng.randint(0, len(made))
        made = made[:at] + rng.choice([b"", *_DAMAGE, rng.randbytes(2)]) + made[at + rng.randint(0, 2) :]
    if rng.random() < 0.05:
        made = rng.choice([made * 2, made[: rng.randint(0, len(made))], made + b"\0", b""])
    return made


def _document(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def _value(rng: random.Random, schema: Any, *, wild: bool) -> Any:
    if isinstance(schema, list):
        return _value(rng, rng.choice(schema), wild=wild)
    kind = schema["type"] if isinstance(schema, dict) else schema
    logical = schema.get("logicalType", "") if isinstance(schema, dict) else ""
    odd = wild and rng.random() < 0.1
    if kind == "record":
        return {f["name"]: _value(rng, f["type"], wild=wild) for f in schema["fields"]}
    if kind == "array":
        return [rng.randrange(9)] * rng.randrange(3)
    if kind == "enum":
        return rng.choice(schema["symbols"])
    if logical == "decimal" and not odd:
        digits = rng.randint(1, min(schema["precision"], 4))
        return _two_s_complement(rng.randrange(-(10**digits) + 1, 10**digits), schema.get("size"))
    if logical.endswith(("millis", "micros")) and not odd:
        return rng.randrange(-(2**40), 2**40) * (1000 if logical.endswith("micros") else 1)
    if logical == "date" and not odd:
        return rng.randrange(-50_000, 50_000)
    return _leaf(rng, kind, schema, odd=odd)


def _leaf(rng: random.Random, kind: str, schema: Any, *, odd: bool) -> Any:
    if kind in ("int", "long"):
        bits = 31 if kind == "int" else 63
        number = rng.getrandbits(rng.randint(1, bits if odd else 7))
        return rng.choice([number, -number, 2**bits - 1, -(2**bits)] if odd else [number, -number - 1])
    if kind in ("float", "double"):
        drawn = rng.choice([rng.uniform(-9, 9), 0.0, -0.0, 1e30])
        if odd:
            drawn = struct.unpack("<d", rng.randbytes(8))[0]
            drawn = rng.choice([drawn, float("nan"), float("-inf")])
        return drawn if kind == "double" or abs(drawn) < 1e38 else 1.5
    if kind == "string":
        return rng.choice(_TEXTS)
    if kind == "fixed":
        return rng.randbytes(schema["size"])
    if kind == "bytes":
        return rng.choice(
            [t.encode() for t in _TEXTS] + [rng.randbytes(rng.choice([1, 3, 8, 9, 16, 17, 20]))]
        )
    return None if kind == "null" else rng.random() < 0.5


def _two_s_complement(number: int, size: int | None) -> bytes:
    if size is None:
        return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
    most = 2 ** (8 * size - 1) - 1 if size else 0
    return max(-most, min(most, number)).to_bytes(size, "big", signed=True) if size else b""
