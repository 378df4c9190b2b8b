"""Decodes Delta's deletion vectors, by the protocol.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Deletion Vector Format", and
https://github.com/RoaringBitmap/RoaringFormatSpec, the portable layout of 32 and 64 bits.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

MAGIC = 1681511377
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
RUNS, NO_RUNS = 12347, 12346


def deleted_rows(table: Path, vector: Mapping[str, Any] | None) -> set[int]:
    """Returns the row numbers that the descriptor in an add action deletes."""
    if vector is None:
        return set()
    told = vector["pathOrInlineDv"]
    if vector["storageType"] == "i":
        data = _z85(told)[: vector["sizeInBytes"]]
    else:
        if vector["storageType"] == "u":
            place = table / told[:-20] / f"deletion_vector_{uuid.UUID(bytes=_z85(told[-20:]))}.bin"
        else:
            place = Path(told.removeprefix("file:"))
        raw, at = place.read_bytes(), vector.get("offset", 1)
        (size,) = struct.unpack_from(">i", raw, at)
        data = raw[at + 4 : at + 4 + size]
        (checked,) = struct.unpack_from(">I", raw, at + 4 + size)
        if size != vector["sizeInBytes"] or checked != zlib.crc32(data):
            raise ValueError(f"{place}: a deletion vector is torn at {at}")
    rows = set(read_array(data))
    if len(rows) != vector["cardinality"]:
        raise ValueError(
            f"{table}: a deletion vector holds {len(rows)} rows, and says {vector['cardinality']}"
        )
    return rows


def _z85(text: str) -> bytes:
    out = b""
    for at in range(0, len(text), 5):
        number = 0
        for letter in text[at : at + 5]:
            number = number * 85 + _Z85.index(letter)
        out += number.to_bytes(4, "big")
    return out


def read_array(data: bytes) -> Iterator[int]:
    magic, count = struct.unpack_from("<iq", data)
    if magic != MAGIC:
        raise ValueError(f"a deletion vector begins with {magic}, not {MAGIC}")
    at = 12
    for _ in range(count):
        (high,) = struct.unpack_from("<I", data, at)
        low, at = _bitmap(data, at + 4)
        yield from ((high << 32) + value for value in low)


def _bitmap(data: bytes, at: int) -> tuple[list[int], int]:
    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    runs = b""
    if cookie & 0xFFFF == RUNS:
        size = (cookie >> 16) + 1
        runs, at = data[at : at + (size + 7) // 8], at + (size + 7) // 8
    elif cookie == NO_RUNS:
        (size,) = struct.unpack_from("<I", data, at)
        at += 4
    else:
        raise ValueError(f"a roaring bitmap begins with {cookie}")
    heads = [struct.unpack_from("<HH", data, at + 4 * n) for n in range(size)]
    at += 4 * size
    if not runs or size >= 4:
        at += 4 * size  # skips the offsets of the containers, which are contiguous
    values: list[int] = []
    for number, (high, fewer) in enumerate(heads):
        is_run = bool(runs) and bool(runs[number // 8] >> number % 8 & 1)
        low, at = _container(data, at, fewer + 1, is_run)
        values += [(high << 16) + value for value in low]
    return values, at


def _container(data: bytes, at: int, size: int, is_run: bool) -> tuple[list[int], int]:
    if is_run:
        (count,) = struct.unpack_from("<H", data, at)
        pairs = struct.unpack_from(f"<{2 * count}H", data, at + 2)
        found = [v for n in range(count) for v in range(pairs[2 * n], pairs[2 * n] + pairs[2 * n + 1] + 1)]
        return found, at + 2 + 4 * count
    if size <= 4096:
        return list(struct.unpack_from(f"<{size}H", data, at)), at + 2 * size
    bits = int.from_bytes(data[at : at + 8192], "little")
    return [n for n in range(65536) if bits >> n & 1], at + 8192
