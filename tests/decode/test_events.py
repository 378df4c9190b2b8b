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


def test_every_document_is_its_rows_in_order_and_no_record_goes_unseen(spark: SparkSession) -> None:
    records = _records(
        spark,
        (None, '{"a":1}'),
        (None, None),
        (None, '[{"a":2},{"a":3}]'),
        (None, "[]"),
        (None, '{"a":"x"}'),
        (None, '{"a":5}'),
    )
    found = decode_events(records, _topic("a INT"))
    assert found.columns == ["a", KIND, BAD, POSITION, UNAVAILABLE]
    assert [(o, n, k, b and b[:6], a) for o, n, k, b, a in _changes(found, "a")] == [
        (0, 0, "+I", None, 1),
        (1, 0, "skip", None, None),
        (2, 0, "+I", None, 2),
        (2, 1, "+I", None, 3),
        (3, 0, "skip", None, None),
        (4, 0, None, "value:", None),
        (5, 0, "+I", None, 5),
    ]


def test_what_ignore_parse_errors_leaves_out_is_told_apart(spark: SparkSession) -> None:
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
    found = _changes(decode_events(_records(spark, *documents), apart), "k", "a")
    assert [row[4:] for row in found] == [(1, 1), (2, 2), (None, 3), (None, None)]
    both = _topic("k INT, a INT", key__format="json", key__fields="k")
    found = _changes(decode_events(_records(spark, *documents), both), "k", "a")
    assert [row[4:] for row in found] == [(9, 1), (None, 2), (3, 3), (None, None)]


def test_a_bad_key_document_is_named(spark: SparkSession) -> None:
    topic = _topic("k INT, a INT", key__format="json", key__fields="k", value__fields_include="EXCEPT_KEY")
    found = _changes(
        decode_events(_records(spark, ("{", '{"a":1}'), ('[{"k":1},{"k":2}]', "{}")), topic), "k"
    )
    assert [row[2] for row in found] == [None, None]
    assert found[0][3].startswith("key: malformed JSON")
    assert found[1][3] == "key: the document must hold exactly one row"


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
        found = decode_events(records, topic, fast=fast)
        rows = (
            [(None,), ("v",), (None,), ("",)] if both else [("k", None), ("k", "v"), (None, None), (None, "")]
        )
        wanted = [(n, 0, "+I", None, *row) for n, row in enumerate(rows)]
        assert _changes(found, *(["v"] if both else ["k", "v"])) == wanted


def test_a_null_value_may_be_not_null_to_nobody(spark: SparkSession) -> None:
    [row] = _changes(decode_events(_records(spark, (None, None)), _topic("v STRING NOT NULL", "raw")), "v")
    assert row[2:] == (None, "column 'v' is NOT NULL, and the record has no value for it", None)


@pytest.mark.parametrize("format", ["json", "csv", "avro", "debezium-json"])
def test_a_null_value_is_no_row_where_the_key_is_raw(spark: SparkSession, format: str) -> None:
    topic = _topic(
        "k STRING, v STRING", format, key__format="raw", key__fields="k", value__fields_include="EXCEPT_KEY"
    )
    found = decode_events(_records(spark, ("k", None), (None, None)), topic)
    assert [row[2:] for row in _changes(found, "k", "v")] == [("skip", None, None, None)] * 2


def test_changes_of_a_keyed_table(spark: SparkSession) -> None:
    """An update of the key gives both keys; what is deleted keeps its key alone; a null value says nothing."""
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
    found = decode_events(records, topic)
    assert [(o, n, k, *row) for o, n, k, _, *row in _changes(found, "id", "v", "w", UNAVAILABLE)] == [
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
    """Else all of them would be one row, that of the key null: a column in capitals is enough to get there."""
    columns = "id INT, part INT, v STRING, PRIMARY KEY (id, part) NOT ENFORCED"
    records = _records(
        spark, _event("c", after={"ID": 1, "v": "a"}), _event("c", after={"id": 1}), _event("d", {"v": "a"})
    )
    found = _changes(decode_events(records, _topic(columns, "debezium-json")), "id")
    assert [row[2] for row in found] == [None, "+I", None]
    assert found[0][3].startswith("value: no column of the PRIMARY KEY is in the document")
    assert found[2][3] == found[0][3]


def test_a_former_state_without_the_key_is_as_good_as_none(spark: SparkSession) -> None:
    records = _records(spark, _event("u", {"v": "a"}, {"id": 1, "v": "b", "w": None}))
    topic = _topic(f"{_CDC}, PRIMARY KEY (id) NOT ENFORCED", "debezium-json")
    found = _changes(decode_events(records, topic), "id", "v")
    assert [row[2:] for row in found] == [("skip", None, None, None), ("+U", None, 1, "b")]


def test_a_kept_column_may_be_not_null(spark: SparkSession) -> None:
    columns = "id INT, v STRING NOT NULL, w STRING NOT NULL, PRIMARY KEY (id) NOT ENFORCED"
    records = _records(
        spark,
        _event("u", None, {"id": 2, "v": "c", "w": _PLACEHOLDER}),
        _event("u", None, {"id": 2, "v": None, "w": "x"}),
    )
    found = _changes(decode_events(records, _topic(columns, "debezium-json")), "w")
    assert found[0][2:4] == ("+U", None)
    assert found[1][3] == "column 'v' is NOT NULL, and the record has no value for it"


_HISTORY = (
    _event("c", after={"id": 1, "v": "a", "w": "x"}),
    _event("u", {"id": 1, "v": "a", "w": "x"}, {"id": 1, "v": "b", "w": "x"}),
    _event("d", {"id": 1, "v": "b", "w": "x"}),
)


def test_without_a_key_changes_are_rows_where_a_column_says_what_they_are(spark: SparkSession) -> None:
    topic = _topic(f"{_CDC}, k STRING METADATA FROM 'row-kind' VIRTUAL", "debezium-json")
    found = _changes(decode_events(_records(spark, *_HISTORY), topic), "id", "v", "k")
    assert [row[2:] for row in found] == [
        ("+I", None, 1, "a", "+I"),
        ("-U", None, 1, "a", "-U"),
        ("+U", None, 1, "b", "+U"),
        ("-D", None, 1, "b", "-D"),
    ]


def test_without_a_key_and_such_a_column_only_inserts_are_good(spark: SparkSession) -> None:
    found = _changes(decode_events(_records(spark, *_HISTORY), _topic(_CDC, "debezium-json")), "v")
    assert found[0][2:] == ("+I", None, "a")
    for row in found[1:]:
        assert "in a table without a PRIMARY KEY: no row can be found to change" in row[3]
        assert "METADATA FROM 'row-kind'" in row[3]


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        ("m ARRAY<ROW<k STRING, v STRING>> METADATA FROM 'header-list'", [("a", "1"), ("a", "2")]),
        ("m MAP<STRING, STRING> METADATA FROM 'headers'", {"a": "2"}),
        ("m INT METADATA FROM 'leader-epoch' VIRTUAL", 7),
        ("m STRING METADATA FROM 'topic' VIRTUAL", "t"),
    ],
)
def test_metadata(spark: SparkSession, declared: str, wanted: Any) -> None:
    from pyspark.sql import functions as F

    headers = [{"key": "a", "value": b"1"}, {"key": "a", "value": b"2"}]
    records = _records(spark, (None, '{"a":1}'), headers=headers).withColumn("leaderEpoch", F.lit(7))
    [row] = decode_events(records, _topic(f"a INT, {declared}")).collect()
    found = [tuple(x) for x in row["m"]] if isinstance(row["m"], list) else row["m"]
    assert (row["a"], found) == (1, wanted)


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
