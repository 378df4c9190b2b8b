"""Canal's and Maxwell's documents: which changes they are, and which are left to Spark's path."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from bridge.arrow_formats.catalog import change_arrow_decoder
from bridge.ways import NotThisWay
from tests.arrow_formats.against_spark import array, spec
from tests.arrow_formats.changes_against_spark import Change, changes_of, made_changes
from tests.refusals import refusal

_TYPES = {"id": "BIGINT", "name": "STRING", "price": "DECIMAL(10, 2)", "ok": "BOOLEAN"}
_NONE = dict.fromkeys(_TYPES)


def changes(format: str, *documents: dict[str, Any], types: dict[str, str] = _TYPES) -> list[Change]:
    """Of documents, whose keys are the columns that end with NOT NULL, or `id`."""
    key = [name for name, type in types.items() if type.endswith("NOT NULL")] or ["id"]
    decoder = made_changes(spec(format, types), key)
    return changes_of(decoder.decode(array([json.dumps(d).encode() for d in documents])))


def test_maxwell_s_operations() -> None:
    assert changes(
        "maxwell-json",
        {"database": "d", "ts": 1, "type": "insert", "data": {"id": 1, "name": "a", "ok": True}},
        {"type": "update", "data": {"id": 1, "name": "b"}, "old": {"name": 5}},
        {"type": "update", "data": {"id": 2}, "old": {"id": 1}},
        {"type": "update", "data": {"id": 2}},
        {"type": "delete", "data": {"id": 2, "name": "x"}, "old": {"id": 9}},
    ) == [
        ("+", _NONE | {"id": 1, "name": "a", "ok": True}),
        ("-U", {"id": 1}),
        ("+", _NONE | {"id": 1, "name": "b"}),
        ("-U", {"id": 1}),
        ("+", _NONE | {"id": 2}),
        ("+", _NONE | {"id": 2}),
        ("-D", {"id": 2}),
    ]


def test_canal_s_documents_have_several_rows_and_texts() -> None:
    found = changes(
        "canal-json",
        {"type": "INSERT", "data": [{"id": "1", "price": "1.50", "ok": "1"}, {"id": "2", "ok": "true"}]},
        {"type": "CREATE", "data": None, "sql": "CREATE TABLE t"},
        {"type": "INSERT", "data": []},
        {"type": "UPDATE", "data": [{"id": "3"}, {"id": "4"}, {"id": "5"}], "old": [{"id": "1"}, None]},
        {"type": "UPDATE", "data": [{"id": "4", "name": "x"}], "old": [{"name": "y"}, {"id": "7"}]},
        {"type": "DELETE", "data": [{"id": "3"}, {"id": "4"}], "old": None},
    )
    assert [(kind, str(row["id"])) for kind, row in found] == [
        ("+", "1"), ("+", "2"), ("-U", "1"), ("+", "3"), ("+", "4"), ("+", "5"),
        ("-U", "4"), ("+", "4"), ("-D", "3"), ("-D", "4"),
    ]  # fmt: skip
    assert (str(found[0][1]["price"]), found[0][1]["ok"], found[1][1]["ok"]) == ("1.50", False, True)


def test_values_of_their_types_are_read_too() -> None:
    """As Flink writes them."""
    typed = {"type": "INSERT", "data": [{"id": 1, "price": 1.5, "ok": True}]}
    assert [str(v) for v in changes("canal-json", typed)[0][1].values()] == ["1", "None", "1.50", "True"]
    texts = {"type": "insert", "data": {"id": "1", "price": "1.5", "ok": "true"}}
    assert changes("maxwell-json", texts) == changes("canal-json", typed)
    with pytest.raises(NotThisWay):
        changes("maxwell-json", texts, {"type": "insert", "data": {"id": 1}})


@pytest.mark.parametrize(
    "document",
    [
        {"type": "ALTER", "data": None},
        {"data": [{"id": "1"}]},
        {"type": "INSERT"},
        {"type": "DELETE", "data": None},
        {"type": "INSERT", "data": [{"id": "1"}, None]},
        {"type": "INSERT", "data": [{"id": "1x"}]},
        {"type": "INSERT", "data": [{"id": "1", "price": "1.005"}]},
        {"type": "UPDATE", "data": [{"id": "1"}], "old": [{"id": "1x"}]},
        {"type": "CREATE", "data": [{"id": "1x"}]},
        {"type": "INSERT", "data": {"id": "1"}},
    ],
)
def test_what_is_left_to_spark(document: dict[str, Any]) -> None:
    with pytest.raises(NotThisWay):
        changes("canal-json", {"type": "INSERT", "data": [{"id": "1"}]}, document)


def test_a_key_of_two_columns() -> None:
    types = {"a": "INT NOT NULL", "b": "STRING NOT NULL", "c": "INT"}
    update = {"type": "update", "data": {"a": 1, "b": "x"}, "old": {"b": "y"}}
    assert changes("maxwell-json", update, types=types) == [
        ("-U", {"a": 1, "b": "y"}),
        ("+", {"a": 1, "b": "x", "c": None}),
    ]


@pytest.mark.parametrize(
    ("format", "types", "options", "reason"),
    [
        ("maxwell-json", {"a": "INT", "b": "INT", "c": "INT"}, {}, "columns of the PRIMARY KEY or of delta.seq"),
        ("maxwell-json", {"a": "INT", "b": "INT"}, {}, "all columns are in the PRIMARY KEY"),
        ("canal-json", {"a": "INT", "c": "BYTES"}, {}, "field 'c' of a json document is BYTES"),
        ("canal-json", {"a": "INT", "c": "INT"}, {"table.include": "t.*"}, "canal-json has a pattern"),
    ],
)  # fmt: skip
def test_pipelines_that_are_left_to_spark(
    format: str, types: dict[str, str], options: dict[str, str], reason: str
) -> None:
    given, key = spec(format, types, **options), [n for n in types if n in "ab"]
    found = refusal(lambda: change_arrow_decoder(given, key))
    assert found is not None and re.match(reason, found), found
