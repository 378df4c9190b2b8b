"""Records of a `kafka` table to changes: every row of every document, in order."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from bridge.columns import BAD, KIND, POSITION
from bridge.config import resolve_topic
from bridge.ddl import parse
from bridge.decode import UNAVAILABLE, decode_events
from bridge.definition import Topic
from tests.decode.records import AT, RECORD

_CDC = "id INT, v STRING, w STRING"
_PLACEHOLDER = "__debezium_unavailable_value"


def _records(spark: SparkSession, *documents: tuple[str | None, str | None], **more: Any) -> DataFrame:
    rest = {"topic": "t", "partition": 0, "timestamp": AT, "timestampType": 0} | more
    rows = [
        {"key": k and k.encode(), "value": None if v is None else v.encode(), "offset": n} | rest
        for n, (k, v) in enumerate(documents)
    ]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=RECORD))


def _topic(columns: str, format: str = "json", **options: str) -> Topic:
    given = {
        "connector": "kafka",
        "topic": "t",
        "properties.bootstrap.servers": "x:1",
        "value.format": format,
    } | {k.replace("__", ".").replace("_", "-"): v for k, v in options.items()}
    shown = ", ".join(f"'{k}' = '{v}'" for k, v in given.items())
    return resolve_topic(parse(f"CREATE TABLE t ({columns}) WITH ({shown})"))


def _changes(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """(offset, row in its document, kind, bad, columns...) in order."""
    rows = frame.select(f"{POSITION}.offset", f"{POSITION}.row", KIND, BAD, *columns).collect()
    return sorted(tuple(row) for row in rows)


def _event(op: str, before: Any = None, after: Any = None) -> tuple[None, str]:
    return None, json.dumps({"op": op, "before": before, "after": after})


def test_every_row_of_every_document_is_a_change_and_every_record_has_one(spark: SparkSession) -> None:
    records = _records(
        spark,
        (None, '{"a":1}'),
        (None, None),
        (None, '[{"a":2},{"a":3}]'),
        (None, "[]"),
        (None, '{"a":"x"}'),
        (None, '{"a":5}'),
    )
    actual = decode_events(records, _topic("a INT"))
    assert actual.columns == ["a", KIND, BAD, POSITION, UNAVAILABLE]
    assert [(o, n, k, b and b[:6], a) for o, n, k, b, a in _changes(actual, "a")] == [
        (0, 0, "+I", None, 1),
        (1, 0, "skip", None, None),
        (2, 0, "+I", None, 2),
        (2, 1, "+I", None, 3),
        (3, 0, "skip", None, None),
        (4, 0, None, "value:", None),
        (5, 0, "+I", None, 5),
    ]


def test_what_ignore_parse_errors_drops_differs_from_what_is_skipped(spark: SparkSession) -> None:
    topic = _topic(
        "k INT, a INT",
        key__format="json",
        key__fields="k",
        value__json__ignore_parse_errors="true",
        key__json__ignore_parse_errors="true",
        value__fields_include="EXCEPT_KEY",
    )
    records = _records(spark, ('{"k":1}', "nonsense"), ("nonsense", '{"a":1}'), ('{"k":2}', '{"a":2}'))
    assert [row[2:] for row in _changes(decode_events(records, topic), "k", "a")] == [
        ("dropped", None, None, None),
        ("dropped", None, None, None),
        ("+I", None, 2, 2),
    ]


def test_key_columns_come_from_the_key_and_where_both_have_one_the_value_wins(spark: SparkSession) -> None:
    documents = [('{"k":1}', '{"k":9,"a":1}'), ('{"k":2}', '{"a":2}'), (None, '{"k":3,"a":3}'), ("[]", "{}")]
    apart = _topic("k INT, a INT", key__format="json", key__fields="k", value__fields_include="EXCEPT_KEY")
    actual = _changes(decode_events(_records(spark, *documents), apart), "k", "a")
    assert [row[4:] for row in actual] == [(1, 1), (2, 2), (None, 3), (None, None)]
    both = _topic("k INT, a INT", key__format="json", key__fields="k")
    actual = _changes(decode_events(_records(spark, *documents), both), "k", "a")
    assert [row[4:] for row in actual] == [(9, 1), (None, 2), (3, 3), (None, None)]


def test_a_key_document_must_have_a_column_that_the_value_has_not(spark: SparkSession) -> None:
    records = _records(spark, ('{"K":1}', '{"k":2,"a":1}'))
    apart = _topic("k INT, a INT", key__format="json", key__fields="k", value__fields_include="EXCEPT_KEY")
    [row] = _changes(decode_events(records, apart), "k")
    assert row[2] is None and row[3].startswith("key: the document has none of the key's fields 'k'")
    both = _topic("k INT, a INT", key__format="json", key__fields="k")
    assert [row[2:] for row in _changes(decode_events(records, both), "k")] == [("+I", None, 2)]


def test_a_bad_key_document_is_named(spark: SparkSession) -> None:
    topic = _topic("k INT, a INT", key__format="json", key__fields="k", value__fields_include="EXCEPT_KEY")
    actual = _changes(
        decode_events(_records(spark, ("{", '{"a":1}'), ('[{"k":1},{"k":2}]', "{}")), topic), "k"
    )
    assert [row[2] for row in actual] == [None, None]
    assert actual[0][3].startswith("key: malformed JSON")
    assert actual[1][3] == "key: the document must hold exactly one row"


@pytest.mark.parametrize("include", ["ALL", "EXCEPT_KEY"])
def test_a_null_value_is_a_row_to_raw_and_none_to_other_formats(spark: SparkSession, include: str) -> None:
    """As in Flink, with the key's columns; a null key is a row of a null to raw, too."""
    records = _records(spark, ("k", None), ("k", "v"), (None, None), (None, ""))
    both = include == "ALL"
    columns = "v STRING" if both else "k STRING, v STRING"
    topic = _topic(
        columns, "raw", key__format="raw", key__fields="v" if both else "k", value__fields_include=include
    )
    for fast in (False, True):
        actual = decode_events(records, topic, fast=fast)
        rows = (
            [(None,), ("v",), (None,), ("",)] if both else [("k", None), ("k", "v"), (None, None), (None, "")]
        )
        expected = [(n, 0, "+I", None, *row) for n, row in enumerate(rows)]
        assert _changes(actual, *(["v"] if both else ["k", "v"])) == expected


def test_a_null_value_is_bad_where_the_column_is_not_null(spark: SparkSession) -> None:
    [row] = _changes(decode_events(_records(spark, (None, None)), _topic("v STRING NOT NULL", "raw")), "v")
    assert row[2:] == (None, "column 'v' is NOT NULL, and the record has no value for it", None)


@pytest.mark.parametrize("format", ["json", "csv", "avro", "debezium-json"])
def test_a_null_value_is_no_row_where_the_key_is_raw(spark: SparkSession, format: str) -> None:
    topic = _topic(
        "k STRING, v STRING", format, key__format="raw", key__fields="k", value__fields_include="EXCEPT_KEY"
    )
    actual = decode_events(_records(spark, ("k", None), (None, None)), topic)
    assert [row[2:] for row in _changes(actual, "k", "v")] == [("skip", None, None, None)] * 2


def test_changes_of_a_keyed_table(spark: SparkSession) -> None:
    """An update of the key gives both keys; a delete has the key's columns only; a null value is skipped."""
    topic = _topic(f"{_CDC}, PRIMARY KEY (id) NOT ENFORCED", "debezium-json")
    records = _records(
        spark,
        _event("c", after={"id": 1, "v": "a", "w": "x"}),
        _event("u", {"id": 1, "v": "a", "w": "x"}, {"id": 2, "v": "b", "w": "x"}),
        _event("u", None, {"id": 2, "v": "c", "w": _PLACEHOLDER}),
        _event("d", {"id": 2, "v": "c", "w": "x"}),
        (None, None),
        (None, ""),
        _event("?", after={"id": 1}),
    )
    actual = decode_events(records, topic)
    assert [(o, n, k, *row) for o, n, k, _, *row in _changes(actual, "id", "v", "w", UNAVAILABLE)] == [
        (0, 0, "+I", 1, "a", "x", None),
        (1, 0, "-U", 1, None, None, None),
        (1, 1, "+U", 2, "b", "x", None),
        (2, 0, "+U", 2, "c", None, ["w"]),
        (3, 0, "-D", 2, None, None, None),
        (4, 0, "skip", None, None, None, None),
        (5, 0, "skip", None, None, None, None),
        (6, 0, None, None, None, None, None),
    ]


def test_a_change_of_no_row_is_bad(spark: SparkSession) -> None:
    """Otherwise all of them would be the row of the key null, as soon as a column is written in capitals."""
    columns = "id INT, part INT, v STRING, PRIMARY KEY (id, part) NOT ENFORCED"
    records = _records(
        spark, _event("c", after={"ID": 1, "v": "a"}), _event("c", after={"id": 1}), _event("d", {"v": "a"})
    )
    actual = _changes(decode_events(records, _topic(columns, "debezium-json")), "id")
    assert [row[2] for row in actual] == [None, "+I", None]
    assert actual[0][3].startswith("value: no column of the PRIMARY KEY is in the document")
    assert actual[2][3] == actual[0][3]


def test_a_before_image_without_the_key_is_skipped(spark: SparkSession) -> None:
    records = _records(spark, _event("u", {"v": "a"}, {"id": 1, "v": "b", "w": None}))
    topic = _topic(f"{_CDC}, PRIMARY KEY (id) NOT ENFORCED", "debezium-json")
    actual = _changes(decode_events(records, topic), "id", "v")
    assert [row[2:] for row in actual] == [("skip", None, None, None), ("+U", None, 1, "b")]


def test_an_unavailable_column_may_be_not_null(spark: SparkSession) -> None:
    columns = "id INT, v STRING NOT NULL, w STRING NOT NULL, PRIMARY KEY (id) NOT ENFORCED"
    records = _records(
        spark,
        _event("u", None, {"id": 2, "v": "c", "w": _PLACEHOLDER}),
        _event("u", None, {"id": 2, "v": None, "w": "x"}),
    )
    actual = _changes(decode_events(records, _topic(columns, "debezium-json")), "w")
    assert actual[0][2:4] == ("+U", None)
    assert actual[1][3] == "column 'v' is NOT NULL, and the record has no value for it"


_HISTORY = (
    _event("c", after={"id": 1, "v": "a", "w": "x"}),
    _event("u", {"id": 1, "v": "a", "w": "x"}, {"id": 1, "v": "b", "w": "x"}),
    _event("d", {"id": 1, "v": "b", "w": "x"}),
)


def test_without_a_key_changes_are_rows_where_a_column_has_the_row_kind(spark: SparkSession) -> None:
    topic = _topic(f"{_CDC}, k STRING METADATA FROM 'row-kind' VIRTUAL", "debezium-json")
    actual = _changes(decode_events(_records(spark, *_HISTORY), topic), "id", "v", "k")
    assert [row[2:] for row in actual] == [
        ("+I", None, 1, "a", "+I"),
        ("-U", None, 1, "a", "-U"),
        ("+U", None, 1, "b", "+U"),
        ("-D", None, 1, "b", "-D"),
    ]


def test_without_a_key_and_such_a_column_only_inserts_are_good(spark: SparkSession) -> None:
    actual = _changes(decode_events(_records(spark, *_HISTORY), _topic(_CDC, "debezium-json")), "v")
    assert actual[0][2:] == ("+I", None, "a")
    for row in actual[1:]:
        assert "in a table without a PRIMARY KEY: the row to change cannot be identified" in row[3]
        assert "METADATA FROM 'row-kind'" in row[3]


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("m ARRAY<ROW<k STRING, v STRING>> METADATA FROM 'header-list'", [("a", "1"), ("a", "2")]),
        ("m MAP<STRING, STRING> METADATA FROM 'headers'", {"a": "2"}),
        ("m INT METADATA FROM 'leader-epoch' VIRTUAL", 7),
        ("m STRING METADATA FROM 'topic' VIRTUAL", "t"),
    ],
)
def test_metadata(spark: SparkSession, declared: str, expected: Any) -> None:
    from pyspark.sql import functions as F

    headers = [{"key": "a", "value": b"1"}, {"key": "a", "value": b"2"}]
    records = _records(spark, (None, '{"a":1}'), headers=headers).withColumn("leaderEpoch", F.lit(7))
    [row] = decode_events(records, _topic(f"a INT, {declared}")).collect()
    actual = [tuple(x) for x in row["m"]] if isinstance(row["m"], list) else row["m"]
    assert (row["a"], actual) == (1, expected)


def test_metadata_of_the_format_is_cast_to_what_is_declared(spark: SparkSession) -> None:
    columns = (
        "id INT, ts TIMESTAMP(3) METADATA FROM 'value.source.timestamp' VIRTUAL, "
        "o STRING METADATA FROM 'value.source.table' VIRTUAL, "
        "o2 STRING NOT NULL METADATA FROM 'value.source.table' VIRTUAL, PRIMARY KEY (id) NOT ENFORCED"
    )
    value = {"op": "c", "after": {"id": 1}, "source": {"ts_ms": 1596684883000, "table": "orders"}}
    records = _records(spark, (None, json.dumps(value)))
    [row] = decode_events(records, _topic(columns, "debezium-json")).collect()
    assert (row["id"], row["o"], row["o2"]) == (1, "orders", "orders")
    assert row["ts"].isoformat() == "2020-08-06T03:34:43"


@pytest.mark.slow
@pytest.mark.parametrize("format", ["debezium-json", "canal-json", "maxwell-json"])
@pytest.mark.parametrize("fast", [True, False])
def test_the_sequence_of_retractions(format: str, fast: bool, spark: SparkSession) -> None:
    """An update of the key deletes the old one, with the sequence of the row before; any other update deletes nothing.

    Of `old` in Canal's and Maxwell's documents a column that has not changed is that of the row."""

    def row(id: int, v: str, at: int | None) -> dict[str, Any]:
        return {"id": id, "v": v, "at": at}

    same = (row(1, "a", 5), row(1, "b", 3))
    moved = (row(1, "b", None), row(2, "b", 7))
    if format == "debezium-json":
        documents = [_event("u", *same), _event("u", *moved), _event("d", row(2, "b", 9))]
    elif format == "canal-json":
        canal: list[dict[str, Any]] = [
            {"data": [same[1]], "old": [{"v": "a", "at": 5}], "type": "UPDATE"},
            {"data": [moved[1]], "old": [{"id": 1, "at": None}], "type": "UPDATE"},
            {"data": [row(2, "b", 9)], "old": None, "type": "DELETE"},
        ]
        documents = [(None, json.dumps(document)) for document in canal]
    else:
        maxwell: list[dict[str, Any]] = [
            {"data": same[1], "old": {"v": "a", "at": 5}, "type": "update"},
            {"data": moved[1], "old": {"id": 1, "at": None}, "type": "update"},
            {"data": row(2, "b", 9), "type": "delete"},
        ]
        documents = [(None, json.dumps(document)) for document in maxwell]
    topic = _topic("id INT, v STRING, at INT, PRIMARY KEY (id) NOT ENFORCED", format)
    actual = decode_events(_records(spark, *documents), topic, sequence=("at",), unpaired=True, fast=fast)
    assert _changes(actual, "id", "v", "at") == [
        (0, 0, "skip", None, 1, None, 5),
        (0, 1, "+U", None, 1, "b", 3),
        (1, 0, "-U", None, 1, None, None),
        (1, 1, "+U", None, 2, "b", 7),
        (2, 0, "-D", None, 2, None, 9),
    ]
