"""Rows made by a random generator, with the odd values of every type, as Spark has them."""

from __future__ import annotations

import random
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bridge.columns import KIND, POSITION
from bridge.schema import DataType, ScalarType, quote
from tests.formats.support import scalar

TYPES: dict[str, DataType] = {
    "flag": scalar("BOOLEAN"),
    "tiny": scalar("TINYINT"),
    "small": scalar("SMALLINT"),
    "int": scalar("INT"),
    "big": scalar("BIGINT"),
    "float": scalar("FLOAT"),
    "double": scalar("DOUBLE"),
    "text": scalar("STRING"),
    "char": scalar("CHAR", 3),
    "varchar": scalar("VARCHAR", 5),
    "bytes": scalar("BYTES"),
    "binary": scalar("VARBINARY", 4),
    "money": scalar("DECIMAL", 10, 2),
    "whole": scalar("DECIMAL", 38, 0),
    "digit": scalar("DECIMAL", 1, 0),
    "half": scalar("DECIMAL", 38, 18),
    "tail": scalar("DECIMAL", 38, 38),
    "small rate": scalar("DECIMAL", 7, 6),
    "rate": scalar("DECIMAL", 9, 7),
    "day": scalar("DATE"),
    **{f"at{p}": scalar("TIMESTAMP", p) for p in range(7)},
    **{f"ltz{p}": scalar("TIMESTAMP_LTZ", p) for p in range(7)},
    "q`u'o\"t\\e\n.名": scalar("STRING"),
    "key": scalar("BIGINT"),
    "timestamp": scalar("STRING"),
}
"""Every type that Arrow writes, and awkward names."""

_CHARACTERS = [*map(chr, range(0x23)), *"\\\"/aé名😀\x7f\x80\u2028\u2029\ufeff\ufffd{},'"]
_BYTES = [
    b"a",
    b"\x80",
    b"\xbf",
    b"\xc0",
    b"\xc2",
    b"\xe0",
    b"\xe2",
    b"\xed",
    b"\xa0",
    b"\x90",
    b"\xf0",
    b"\xf1",
    b"\xf4",
    b"\xf5",
    b"\xff",
]
_DAYS = [-719_529, -719_528, -719_163, -719_162, -1, 0, 1, 2_932_896, 2_932_897, 18_321]
_FLOATS = [
    0.0,
    -0.0,
    float("nan"),
    float("inf"),
    float("-inf"),
    5e-324,
    2.0**-149,
    1e7,
    1e-3,
    2e-3,
    1e23,
    2.0**44,
]
_DAY_MICROS = 86_400_000_000
_BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}


def drawn_rows(spark: SparkSession, rng: random.Random, types: dict[str, DataType], rows: int) -> DataFrame:
    """Changes of a table with columns of these types; one in ten deletes its row."""
    nulls = rng.choice([0.0, 0.1, 0.5])
    odd = rng.choice([0.0, 0.02, 0.5])
    columns, made = [], {}
    for n, (name, type) in enumerate(types.items()):
        assert isinstance(type, ScalarType)
        drawn = [None if rng.random() < nulls else _value(rng, type, odd) for _ in range(rows)]
        if type.is_string:  # others are refused
            drawn = [text and text.decode(errors="replace").encode() for text in drawn]
        made[f"c{n}"] = pa.array(drawn, _transport(type))
        columns.append(f"{_as(type).format(f'c{n}')} AS {quote(name)}")
    kinds = [rng.choices(["+I", "+U", "-D"], [5, 4, 1])[0] for _ in range(rows)]
    made |= {"k": pa.array(kinds), "n": pa.array(range(rows), pa.int64())}
    frame = spark.createDataFrame(pa.table(made)).coalesce(1)
    return frame.selectExpr(*columns, f"k AS {KIND}", f"named_struct('version', n) AS {POSITION}")


def _transport(type: ScalarType) -> pa.DataType:
    """How values come to Spark: numbers for moments that Python lacks."""
    if type.name == "DECIMAL":
        return pa.decimal128(*type.parameters)
    if type.is_string or type.is_binary:
        return pa.binary()
    if type.name in ("FLOAT", "DOUBLE"):
        return pa.float32() if type.name == "FLOAT" else pa.float64()
    return pa.bool_() if type.name == "BOOLEAN" else pa.int64()


def _as(type: ScalarType) -> str:
    if type.name == "DATE":
        return "date_from_unix_date(CAST({} AS INT))"
    if type.name.startswith("TIMESTAMP"):
        return f"CAST(timestamp_micros({{}}) AS {type.spark()})"
    return f"CAST({{}} AS {type.spark()})"


def _value(rng: random.Random, type: ScalarType, odd: float) -> Any:
    if type.name == "BOOLEAN":
        return rng.random() < 0.5
    if type.name == "DECIMAL":
        return _decimal(rng, *type.parameters)
    if type.name in ("FLOAT", "DOUBLE"):
        code = "f" if type.name == "FLOAT" else "d"
        drawn = struct.unpack(code, rng.randbytes(struct.calcsize(code)))[0]
        return (
            rng.choice(_FLOATS)
            if rng.random() < odd
            else rng.choice([drawn, round(rng.uniform(-1e4, 1e4), 2)])
        )
    if type.is_string or type.is_binary:
        return _text(rng, odd)
    if type.name == "DATE":
        days = rng.choice([*_DAYS, rng.randrange(-(10**8), 10**8)])
        return days if rng.random() < odd else rng.randrange(-719_162, 2_932_897)
    if type.name.startswith("TIMESTAMP"):
        return _micros(rng, odd)
    bits = _BITS[type.name]
    return rng.choice(
        [rng.getrandbits(rng.randint(1, bits)), 2**bits - 1, -(2**bits), 0, -rng.getrandbits(bits)]
    )


def _micros(rng: random.Random, odd: float) -> int:
    step = rng.choice([1, 10, 100, 1000, 10_000, 100_000, 1_000_000])
    if rng.random() >= odd:
        drawn = rng.randrange(-719_162 * _DAY_MICROS, 2_932_897 * _DAY_MICROS)
    else:
        edge = rng.choice(_DAYS) * _DAY_MICROS + rng.randrange(-2, 3)
        drawn = rng.choice([edge, rng.randrange(-(2**62), 2**62)])
    return drawn - drawn % step


def _text(rng: random.Random, odd: float) -> bytes:
    size = rng.choice([0, 1, 3, 9])
    if rng.random() >= odd:
        return bytes(rng.choice(b"abc xyz019-") for _ in range(size))
    if rng.random() < 0.5:
        return "".join(rng.choice(_CHARACTERS) for _ in range(size)).encode()
    return b"".join(rng.choice(_BYTES) for _ in range(size))


def _decimal(rng: random.Random, precision: int, scale: int) -> Decimal:
    digits = rng.getrandbits(rng.randint(1, 130)) % 10 ** rng.randint(1, precision)
    zeros = rng.choice([0, 0, rng.randint(0, precision)])
    unscaled = digits - digits % 10**zeros
    return Decimal((rng.randrange(2), tuple(map(int, str(unscaled))), -scale))
