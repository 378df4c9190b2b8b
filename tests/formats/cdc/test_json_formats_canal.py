"""canal-json: several rows per document, values as texts, partial before images, filters, DDL."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.errors import OptionError
from bridge.formats import catalog
from bridge.formats.base import TRUNCATES
from tests.formats.changes import GOODS, UNREADABLE, changes, check_changes, decoder_of, details, metadata_of
from tests.formats.support import encode_changes, row_type, scalar

NAME = "canal-json"
ONE, TWO = b'{"id":"1","name":"a","weight":"1.5"}', b'{"id":2,"name":null,"weight":2.5,"more":1}'
UPDATE = b'{"data":[%s],"old":%s,"type":"UPDATE"}'


def _document(type: bytes, data: bytes, more: bytes = b"") -> bytes:
    return b'{"data":%s,"type":"%s"%s}' % (data, type, more)


def test_each_type_gives_its_changes_row_by_row(spark: SparkSession) -> None:
    """A field absent from `old` did not change, a null one was null, whatever the other rows have."""
    both = b"[%s,%s]" % (ONE, TWO)
    full = b'{"id":" 1","name":1.10,"weight":"1.5"}'
    a, b = (1, "a", 1.5), (2, None, 2.5)
    expected: dict[bytes | None, Any] = {
        _document(b"INSERT", both): [("+I", *a), ("+I", *b)],
        _document(b"DELETE", both, b',"old":null'): [("-D", *a), ("-D", *b)],
        _document(b"INSERT", b"[]"): [],
        UPDATE % (both[1:-1], b'[{"weight":"9","x":{}},{"name":"b"}]'): [
            *[("-U", 1, "a", 9.0), ("+U", *a)],
            *[("-U", 2, "b", 2.5), ("+U", *b)],
        ],
        UPDATE % (ONE, b'[{"name":null}]'): [("-U", 1, None, 1.5), ("+U", *a)],
        UPDATE % (ONE, b"[{}]"): [("-U", *a), ("+U", *a)],
        UPDATE % (ONE, b'[{"id":"7"}]'): [("-U", 7, "a", 1.5), ("+U", *a)],
        UPDATE % (full, b'[{"name":null}]'): [("-U", 1, None, 1.5), ("+U", 1, "1.1", 1.5)],
        UPDATE % (ONE + b"," + full, b'[{"name":null},{"id":3}]'): [
            *[("-U", 1, None, 1.5), ("+U", *a)],
            *[("-U", 3, "1.1", 1.5), ("+U", 1, "1.1", 1.5)],
        ],
        UPDATE % (ONE, b'[{"id":5,"id":7}]'): [("-U", 7, "a", 1.5), ("+U", *a)],
        _document(b"CREATE", b"null", b',"isDdl":true,"sql":"secret"'): [],
        _document(b"TRUNCATE", b"null", b',"isDdl":true,"sql":"secret"'): TRUNCATES,
        None: [],
        b"": [],
        _document(b"ALTER", b"null", b',"isDdl":true,"sql":"secret"'): (
            "field 'type' is 'ALTER', which is no change of a row; known are INSERT, UPDATE, DELETE, CREATE"
        ),
        _document(b"secret", b"null"): "field 'type' has an unknown value",
        b'{"data":[%s]}' % ONE: "field 'type' is null or missing",
        _document(b"INSERT", b"null"): "field 'data' is null or missing",
        _document(b"DELETE", b"[null]"): "field 'data' is null or missing",
        _document(b"INSERT", ONE): "field 'data' cannot be read as ARRAY",
        _document(b"INSERT", b'["secret"]'): "field 'data[]' cannot be read as ROW",
        _document(b"INSERT", b'[{"id":"secret"}]'): "field 'data[].id' cannot be read as INT",
        _document(b"INSERT", b'[{"id":"2147483648"}]'): "field 'data[].id' cannot be read as INT",
        _document(b"INSERT", b'[{"id":1e99}]'): "field 'data[].id' cannot be read as INT",
        UPDATE % (ONE, b'[{"id":"secret"}]'): "field 'old[].id' cannot be read as INT",
        UPDATE % (ONE, b'{"id":1}'): "field 'old' cannot be read as ARRAY",
        UPDATE % (ONE, b"null"): "field 'old' of an update lacks the before image of a row",
        UPDATE % (both[1:-1], b"[{}]"): "field 'old' of an update lacks the before image of a row",
        **UNREADABLE,
    }
    check_changes(spark, decoder_of(NAME), expected)


def test_with_a_key_an_update_needs_no_before_image(spark: SparkSession) -> None:
    documents = [UPDATE % (ONE, b"null"), UPDATE % (ONE + b"," + TWO, b'[{"weight":3}]')]
    assert changes(spark, decoder_of(NAME, key=("id",)), documents) == [
        [("+U", 1, "a", 1.5)],
        [("-U", 1, None, None), ("+U", 1, "a", 1.5), ("+U", 2, None, 2.5)],
    ]


def test_texts_and_values_are_read_as_json_reads_them(spark: SparkSession) -> None:
    """On the fast path, and next to a value that needs a full decode."""
    row = row_type(
        tiny=scalar("TINYINT"),
        flag=scalar("BOOLEAN"),
        price=scalar("DECIMAL", 38, 18),
        day=scalar("DATE"),
        moment=scalar("TIMESTAMP", 3),
        bytes=scalar("BYTES"),
        double=scalar("DOUBLE"),
        text=scalar("STRING"),
    )
    texts = (
        b'[{"tiny":"-5","flag":"1","price":"12345678901234567890.123456789012345678","day":"2020-01-02",'
        b'"moment":"2020-01-02 03:04:05.6789","bytes":"AAE=","double":"1e3","text":%s}]'
    )
    values = (
        b'[{"tiny":-5,"flag":true,"price":1234567890123.25,"day":null,"bytes":"","double":1.0E3,"text":%s}]'
    )
    day, moment = datetime(2020, 1, 2).date(), datetime(2020, 1, 2, 3, 4, 5, 678_000)
    price = Decimal("12345678901234567890.123456789012345678")
    rows = [
        (-5, False, price, day, moment, b"\x00\x01", 1000.0),
        (-5, True, Decimal("1234567890123.25"), None, None, b"", 1000.0),
    ]
    documents = [_document(b"INSERT", data % text) for data in (texts, values) for text in (b'"x"', b"-0.10")]
    actual = changes(spark, decoder_of(NAME, row), documents)
    assert actual == [[("+I", *row, text)] for row in rows for text in ("x", "-0.1")]
    bad = {"tiny": b'"128"', "price": b'"1x"', "day": b'"2020-13-01"', "bytes": b"1234", "double": b'"x"'}
    documents = [_document(b"INSERT", b'[{"%s":%s}]' % (name.encode(), text)) for name, text in bad.items()]
    for name, error in zip(bad, changes(spark, decoder_of(NAME, row), documents), strict=True):
        assert error.startswith(f"field 'data[].{name}' cannot be read as")


def test_filters_match_whole_names_before_anything_else_is_read(spark: SparkSession) -> None:
    """A document of another table is skipped, even if it would be bad for this one."""
    good, bad = b'[{"id":1}]', b'[{"id":"x"}]'
    expected: dict[bytes, Any] = {
        _document(b"INSERT", good, b',"database":"mydb","table":"product"'): [("+I", 1, None, None)],
        _document(b"INSERT", bad, b',"database":"mydb2","table":"product"'): [],
        _document(b"INSERT", bad, b',"database":"mydb","table":"a product"'): [],
        _document(b"INSERT", b'{"id":1}', b',"database":"other"'): [],
        _document(b"ALTER", b"null", b',"database":"other"'): [],
        _document(b"INSERT", bad, b',"database":"mydb","table":"product"'): "field 'data[].id' cannot be",
        _document(
            b"INSERT", good
        ): "field 'database' is null or missing, and 'database.include' is a pattern for it",
        _document(b"INSERT", good, b',"database":"mydb"'): "field 'table' is null or missing",
        b'{"database":"other",': "malformed",
    }
    options = {"database.include": "your.*|mydb", "table.include": "^prod.*"}
    check_changes(spark, decoder_of(NAME, options=options), expected)
    with pytest.raises(OptionError, match=r"'canal-json\.table.include' is not a regular expression"):
        decoder_of(NAME, options={"table.include": "(["})


def test_metadata_is_read_from_the_document(spark: SparkSession) -> None:
    more = b',"database":"d","table":"t","sqlType":{"id":4},"pkNames":["id"],"ts":1589373515477,"es":1589373515000'
    documents = [
        _document(b"INSERT", b'[{"id":1},{"id":"2"}]', more),
        _document(b"INSERT", b'[{"id":1.5}]', more),
        _document(b"INSERT", b'[{"id":1}]'),
        _document(b"INSERT", b'[{"id":1}]', b',"ts":9223372036854775807'),
        _document(b"INSERT", b'[{"id":1}]', b',"es":"secret"'),
    ]
    values = {
        "database": "d",
        "table": "t",
        "sql-type": {"id": 4},
        "pk-names": ["id"],
        "ingestion-timestamp": datetime(2020, 5, 13, 12, 38, 35, 477_000),
        "event-timestamp": datetime(2020, 5, 13, 12, 38, 35),
    }
    assert details(spark, decoder_of(NAME, metadata=metadata_of(NAME)), documents, "metadata") == [
        [values, values],
        [values],
        [dict.fromkeys(values)],
        "field 'ts' cannot be read as TIMESTAMP_LTZ",
        "field 'es' cannot be read as BIGINT",
    ]


def test_an_insert_and_a_delete_are_flinks_bytes_an_update_is_one_message(spark: SparkSession) -> None:
    """The before image has all fields, nulls included: an absent field would be one that did not change."""
    old, new = (1, None, 1.5), (1, "b", None)
    some = [(None, old), (old, None), (old, new), (None, None)]
    assert encode_changes(spark, catalog.get(NAME).encoder(GOODS, {}), GOODS, some) == [
        b'{"data":[{"id":1,"name":null,"weight":1.5}],"type":"INSERT"}',
        b'{"data":[{"id":1,"name":null,"weight":1.5}],"type":"DELETE"}',
        b'{"old":[{"id":1,"name":null,"weight":1.5}],"data":[{"id":1,"name":"b","weight":null}],"type":"UPDATE"}',
        None,
    ]
    sparing = catalog.get(NAME).encoder(GOODS, {"encode.ignore-null-fields": True})
    written = encode_changes(spark, sparing, GOODS, some[:3])
    assert (
        written[2]
        == b'{"old":[{"id":1,"name":null,"weight":1.5}],"data":[{"id":1,"name":"b"}],"type":"UPDATE"}'
    )
    assert changes(spark, decoder_of(NAME), written) == [
        [("+I", *old)],
        [("-D", *old)],
        [("-U", *old), ("+U", *new)],
    ]
