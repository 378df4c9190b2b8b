"""Columns of every type, their values at the limits, and how Spark and delta-rs write them down."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

MICROS = 'Timestamp(Microsecond, Some("UTC"))'


@dataclass(frozen=True)
class Kind:
    """A column, its values at the limits, and one value in the words of both readers."""

    type: T.DataType
    arrow: pa.DataType
    limits: Sequence[Any]
    drawn: st.SearchStrategy[Any]
    spark: Callable[[Any], Column]
    rust: Callable[[Any], str]


def whole(bits: int, type: T.DataType, arrow: pa.DataType) -> Kind:
    end = 1 << (bits - 1)
    near = [p + d for n in range(0, bits - 1, 9) for p in (1 << n, -(1 << n)) for d in (-1, 0, 1)]
    limits = [-end, end - 1, 0, *((2**53 + 1, 10**18, -(10**18) - 1) if bits == 64 else ())]
    name = type.simpleString()
    return Kind(
        type,
        arrow,
        limits,
        st.sampled_from(near) | st.integers(-end, end - 1),
        lambda v: F.expr(f"CAST('{v}' AS {name})"),
        lambda v: f"CAST('{v}' AS {name})",
    )


def decimal(precision: int, scale: int) -> Kind:
    most = 10**precision - 1
    ints = [most, -most, 0, 1, -1, most - 1, 1234567890123456789 % (most + 1), (2**53 + 1) % (most + 1)]
    near = [
        s * (b**n + d)
        for b, top in ((2, int(precision * 3.3)), (10, precision))
        for n in range(top)
        for s in (1, -1)
        for d in (-1, 0, 1)
    ]
    drawn = (st.sampled_from(near) | st.integers(-most, most)).map(
        lambda v: Decimal(max(-most, min(most, v)))
    )
    name = f"DECIMAL({precision},{scale})"
    return Kind(
        T.DecimalType(precision, scale),
        pa.decimal128(precision, scale),
        [_scaled(Decimal(v), scale) for v in ints],
        drawn.map(lambda v: _scaled(v, scale)),
        lambda v: F.expr(f"CAST('{v:f}' AS {name})"),
        lambda v: f"CAST('{v:f}' AS {name})",
    )


def _scaled(v: Decimal, scale: int) -> Decimal:
    return Decimal((v.is_signed(), v.as_tuple().digits, -scale))


def moment(
    type: T.DataType, arrow: pa.DataType, spark: str, rust: str, limits: Sequence[int], day: int
) -> Kind:
    """`day`: how long one is. Of the ten days that the calendar left out in 1582 Spark does not find its own."""
    gap = range(-141_437 * day, -141_427 * day)
    near = [v + d for v in limits for d in (-1, 1) if min(limits) <= v + d <= max(limits)]
    return Kind(
        type,
        arrow,
        limits,
        (st.sampled_from(near) | st.integers(min(limits), max(limits))).filter(lambda v: v not in gap),
        lambda v: F.expr(spark.format(v)),
        lambda v: f"arrow_cast({v}, '{rust}')",
    )


SECOND = 1_000_000
DAY = 86_400 * SECOND
YEAR_1, YEAR_10000 = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND
MOMENTS = [
    YEAR_1,
    -1,
    -SECOND + 1,
    -(2**53) - 1,
    0,
    999,
    1001,
    2**53 + 1,
    YEAR_10000 - 1,
    YEAR_10000,
    YEAR_10000 + 999_999,
    YEAR_10000 + 5000 * 365 * 86400 * SECOND,
]
DAYS = [-719_162, -1, 0, 1, -141_438, -141_427, 2_932_896, 2_932_897, 4_000_000]
ALPHABET = st.sampled_from("aé\u00ff\ud7ff\ue000\uffff\U00010000\U0001f600\U0010ffff'\\")
SHARED = "s" * 31
TEXTS = [
    "",
    "a" * 100,
    SHARED + "é1" * 20,
    SHARED + "é2" * 20,
    "é" * 60,
    "\U0001f600" * 40,
    "s" * 30 + "\U0001f600" * 9,
    "\U0010ffff" * 7 + "x" * 40,
    "\ud7ff" * 20,
    "\uffff" * 20,
    "'`\\" * 12,
    "\x7f" * 40,
]
BYTES = [b"", b"\x00", b"\x00" * 40, b"\xff" * 50, b"b" * 31 + b"\xff" * 9, b"b" * 40]

KINDS: dict[str, Kind] = {
    "tiny": whole(8, T.ByteType(), pa.int8()),
    "small": whole(16, T.ShortType(), pa.int16()),
    "int": whole(32, T.IntegerType(), pa.int32()),
    "big": whole(64, T.LongType(), pa.int64()),
    **{
        f"d{p}_{s}": decimal(p, s)
        for p, s in (
            (9, 2),
            (15, 0),
            (15, 15),
            (16, 0),
            (18, 2),
            (19, 0),
            (20, 0),
            (38, 0),
            (38, 18),
            (38, 38),
        )
    },
    "text": Kind(
        T.StringType(),
        pa.string(),
        TEXTS,
        st.text(ALPHABET, max_size=40).map(lambda v: SHARED[: len(v) % 32] + v),
        F.lit,
        lambda v: "'" + v.replace("'", "''") + "'",
    ),
    "bytes": Kind(
        T.BinaryType(),
        pa.binary(),
        BYTES,
        st.binary(max_size=50),
        lambda v: F.lit(bytearray(v)),
        lambda v: f"X'{v.hex()}'",
    ),
    "flag": Kind(T.BooleanType(), pa.bool_(), [True, False], st.booleans(), F.lit, lambda v: str(v).lower()),
    "day": moment(T.DateType(), pa.date32(), "date_from_unix_date({})", "Date32", DAYS, 1),
    "at": moment(T.TimestampType(), pa.timestamp("us", "UTC"), "timestamp_micros({}L)", MICROS, MOMENTS, DAY),
    "local": moment(
        T.TimestampNTZType(),
        pa.timestamp("us"),
        "CAST(timestamp_micros({}L) AS TIMESTAMP_NTZ)",
        "Timestamp(Microsecond, None)",
        MOMENTS,
        DAY,
    ),
    "float": Kind(
        T.DoubleType(),
        pa.float64(),
        [math.nan, -0.0, 0.0, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 2.0**53 + 2, 0.1],
        st.floats(),
        lambda v: F.expr(f"CAST('{v}' AS DOUBLE)"),
        lambda v: f"arrow_cast('{v}', 'Float64')",
    ),
}
