"""With a key a retraction has the key's fields only: the others of a before image are not read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.formats.cdc.common import as_row
from bridge.options import FORMATS
from bridge.schema import ArrayType, RowType
from tests.formats.changes import changes, check_changes, decoder_of
from tests.formats.support import row_type, scalar

_ROW = row_type(
    id=scalar("INT"), name=scalar("STRING"), tags=ArrayType(scalar("STRING")), price=scalar("INT")
)
_NEW = b'{"id":2,"name":"b","tags":["x"],"price":5}'
_NOW = (2, "b", ["x"], 5)

# The update of each format, by before and after image.
_UPDATES = {
    "debezium-json": b'{"before":%s,"after":%s,"op":"u"}',
    "ogg-json": b'{"before":%s,"after":%s,"op_type":"U"}',
    "canal-json": b'{"old":[%s],"data":[%s],"type":"UPDATE"}',
    "maxwell-json": b'{"old":%s,"data":%s,"type":"update"}',
}
_PAIRS = ("debezium-json", "ogg-json")


def test_a_whole_image_is_the_row() -> None:
    assert as_row(_ROW, _ROW, "state") == "state"


def test_every_cdc_format_in_json_has_an_update() -> None:
    assert {n for n, f in FORMATS.items() if not f.insert_only and n.endswith("-json")} == set(_UPDATES)


@pytest.mark.parametrize("name", _UPDATES)
def test_an_update_retracts_the_old_key_and_reads_no_other_field(spark: SparkSession, name: str) -> None:
    update, taken = _UPDATES[name], ("-U", 1, None, None, None)
    expected: dict[bytes, Any] = {
        update % (b'{"id":1,"name":"a","tags":[],"price":4}', _NEW): [taken, ("+U", *_NOW)],
        update % (b'{"id":1,"tags":{},"price":"dear"}', _NEW): [taken, ("+U", *_NOW)],
        update % (b'{"id":"one"}', _NEW): "id' cannot be read as INT",
        update % (b'{"id":1,"price":', _NEW): "malformed JSON",
        update % (b'{"id":1}', b'{"id":2,"price":"dear"}'): "price' cannot be read as INT",
    }
    check_changes(spark, decoder_of(name, _ROW, key=("id",)), expected)


@pytest.mark.parametrize("name", _UPDATES)
def test_without_a_key_every_value_is_read(spark: SparkSession, name: str) -> None:
    update = _UPDATES[name]
    documents = [
        update % (b'{"id":1,"name":"a","tags":null,"price":4}', _NEW),
        update % (b'{"id":1,"price":"dear"}', _NEW),
    ]
    read, refused = changes(spark, decoder_of(name, _ROW), documents)
    assert read == [("-U", 1, "a", None, 4), ("+U", *_NOW)]
    assert "price' cannot be read as INT" in refused


@pytest.mark.parametrize("name", [name for name in _UPDATES if name not in _PAIRS])
def test_a_key_that_did_not_change_is_absent_from_old(spark: SparkSession, name: str) -> None:
    """A null in a key of one column is no key: only the row of the after image is retracted."""
    update, unchanged = _UPDATES[name], [("-U", 2, None, None, None), ("+U", *_NOW)]
    documents = [update % (old, _NEW) for old in (b'{"name":"a"}', b"{}", b'{"id":null,"price":1}')]
    assert changes(spark, decoder_of(name, _ROW, key=("id",)), documents) == [unchanged] * 3


@pytest.mark.parametrize("name", [name for name in _UPDATES if name not in _PAIRS])
def test_a_key_column_that_was_null_differs_from_one_that_did_not_change(
    spark: SparkSession, name: str
) -> None:
    update, key = _UPDATES[name], ("id", "name")
    documents = [update % (old, _NEW) for old in (b'{"name":null}', b'{"price":1}', b'{"id":1}')]
    nullable = changes(spark, decoder_of(name, _ROW, key=key), documents)
    assert [actual[0] for actual in nullable] == [
        ("-U", 2, None, None, None),
        ("-U", 2, "b", None, None),
        ("-U", 1, "b", None, None),
    ]
    required = RowType(tuple(replace(f, type=f.type.required()) if f.name in key else f for f in _ROW.fields))
    assert changes(spark, decoder_of(name, required, key=key), documents[1:]) == nullable[1:]


@pytest.mark.parametrize("name", _PAIRS)
def test_a_delete_has_the_keys_fields_only(spark: SparkSession, name: str) -> None:
    delete = _UPDATES[name].replace(b'"u"', b'"d"').replace(b'"U"', b'"D"')
    documents = [delete % (b'{"id":1,"name":"a","price":"dear"}', b"null")]
    assert changes(spark, decoder_of(name, _ROW, key=("id",)), documents) == [[("-D", 1, None, None, None)]]
