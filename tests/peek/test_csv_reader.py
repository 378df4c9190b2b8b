"""Lines of CSV as text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridge.peek.base import Undecodable
from bridge.peek.view import reader
from tests.peek.pipelines import value_spec


def test_csv_fields_have_the_names_of_the_columns(tmp_path: Path) -> None:
    read = reader(value_spec(tmp_path, "csv", csv__null_literal="n/a", csv__field_delimiter=";"))
    assert json.loads(read(b'1;"a;b"')) == {"id": "1", "name": "a;b"}
    assert json.loads(read(b"2;n/a")) == {"id": "2", "name": None}
    with pytest.raises(Undecodable, match="3 fields, where the DDL has 2 columns"):
        read(b"1;2;3")
