"""JSON documents as text.

Lines of CSV as text.

Bytes of one column as text.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from bridge.options import FORMATS
from bridge.peek.readers import Undecodable
from bridge.peek.view import reader
from tests.peek.pipelines import value_spec


def test_a_json_document_is_shown_as_it_is(tmp_path: Path) -> None:
    """Digits that a float would lose, fields that the DDL does not have, and the order of fields."""
    text = '{"z":1.10,"id":12345678901234567890.5,"more":[1,null]}'
    assert reader(value_spec(tmp_path, "json"))(text.encode()) == text


def test_a_json_document_of_several_lines_is_one_line(tmp_path: Path) -> None:
    shown = reader(value_spec(tmp_path, "json"))(b'{\n "id": 1,\n "name": "a\\nb"\n}')
    assert "\n" not in shown and json.loads(shown) == {"id": 1, "name": "a\nb"}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"{broken", "not JSON at character 1"),
        (b"", "not JSON at character 0"),
        (b"\xff{}", "not UTF-8 at byte 0"),
        (b'{"a": NaN}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_json_is_an_error_with_the_reason(tmp_path: Path, document: bytes, reason: str) -> None:
    with pytest.raises(Undecodable, match=reason):
        reader(value_spec(tmp_path, "json"))(document)


@pytest.mark.parametrize("format", [name for name in FORMATS if name.endswith("-json")])
def test_cdc_documents_are_shown_whole(tmp_path: Path, format: str) -> None:
    text = '{"op":"c","after":{"id":1},"source":{"db":"shop"}}'
    assert reader(value_spec(tmp_path, format))(text.encode()) == text


def test_csv_fields_have_the_names_of_the_columns(tmp_path: Path) -> None:
    read = reader(value_spec(tmp_path, "csv", csv__null_literal="n/a", csv__field_delimiter=";"))
    assert json.loads(read(b'1;"a;b"')) == {"id": "1", "name": "a;b"}
    assert json.loads(read(b"2;n/a")) == {"id": "2", "name": None}
    with pytest.raises(Undecodable, match="3 fields, where the DDL has 2 columns"):
        read(b"1;2;3")


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
