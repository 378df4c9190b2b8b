"""Bytes of one column as text."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from bridge.peek.base import Undecodable
from bridge.peek.view import reader
from tests.peek.pipelines import value_spec


@pytest.mark.parametrize(
    ("type", "options", "document", "value"),
    [
        ("STRING", {}, "ü".encode(), "ü"),
        ("STRING", {"raw__charset": "UTF-16LE"}, "ü".encode("utf-16-le"), "ü"),
        ("BIGINT", {}, struct.pack(">q", -2), -2),
        ("INT", {"raw__endianness": "little-endian"}, struct.pack("<i", 7), 7),
        ("BOOLEAN", {}, b"\x01", True),
        ("DOUBLE", {}, struct.pack(">d", 1.5), 1.5),
        ("BYTES", {}, b"\x00\xff", "AP8="),
    ],
)
def test_raw_bytes_are_the_value_of_the_column(
    tmp_path: Path, type: str, options: dict[str, str], document: bytes, value: Any
) -> None:
    read = reader(value_spec(tmp_path, "raw", f"v {type}", **options))
    assert json.loads(read(document)) == {"v": value}


def test_raw_bytes_of_another_size_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(Undecodable, match="3 bytes, where BIGINT has 8"):
        reader(value_spec(tmp_path, "raw", "v BIGINT"))(b"abc")
    with pytest.raises(Undecodable, match="not UTF-8 at byte 1"):
        reader(value_spec(tmp_path, "raw", "v STRING"))(b"a\xff")
