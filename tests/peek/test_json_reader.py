"""JSON documents as text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridge.options import FORMATS
from bridge.peek.base import Undecodable
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
