"""Computed columns that fail for the row of a record: the record is bad."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from bridge.columns import BAD, KIND, POSITION
from bridge.config import resolve_topic
from bridge.ddl import parse
from bridge.decode import decode_events, decode_keys, decode_values
from bridge.definition import Topic
from tests.decode.records import AT, RECORD

_COLUMNS = "id INT, n INT, t STRING, q AS 10 / n, i AS CASE WHEN t <> '' THEN CAST(t AS INT) END"
_QUOTIENT = "computed column 'q': division by zero in 10 / n"
_TEXT = "computed column 'i': a value that is no INT in CAST(t AS INT)"


def _topic(connector: str, **options: str) -> Topic:
    given = {"connector": connector, "topic": "t", "properties.bootstrap.servers": "x:1"} | options
    shown = ", ".join(f"'{k}' = '{v}'" for k, v in given.items())
    key = "" if connector == "kafka" else ", PRIMARY KEY (id) NOT ENFORCED"
    return resolve_topic(parse(f"CREATE TABLE t ({_COLUMNS}{key}) WITH ({shown})"))


def _records(spark: SparkSession, *documents: tuple[str | None, str | None]) -> DataFrame:
    rest = {"topic": "t", "partition": 0, "timestamp": AT, "timestampType": 0}
    rows = [
        {"key": k and k.encode(), "value": v and v.encode(), "offset": n} | rest
        for n, (k, v) in enumerate(documents)
    ]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=RECORD))


def _shown(changes: DataFrame) -> list[tuple[Any, ...]]:
    rows = changes.select(f"{POSITION}.offset", KIND, BAD, "id", "q", "i").collect()
    return [tuple(row)[1:] for row in sorted(rows)]


_GOOD = '{"id":1,"n":5,"t":"7"}'
_EMPTY = '{"id":2,"n":2,"t":""}'
_ZERO = '{"id":3,"n":0,"t":"b"}'
_NO_NUMBER = '{"id":4,"n":1,"t":"b"}'


def test_a_record_of_an_upsert_topic(spark: SparkSession) -> None:
    topic = _topic("upsert-kafka", **{"key.format": "json", "value.format": "json"})
    documents = [(f'{{"id":{n}}}', v) for n, v in enumerate((_GOOD, _EMPTY, _ZERO, _NO_NUMBER, None), 1)]
    records = _records(spark, *documents)
    assert _shown(decode_values(decode_keys(records, topic), topic)) == [
        ("+U", None, 1, 2, 7),
        ("+U", None, 2, 5, None),
        (None, _QUOTIENT, 3, None, None),
        (None, _TEXT, 4, None, None),
        ("-D", None, 5, None, None),
    ]


@pytest.mark.parametrize("fast", [True, False])
def test_a_record_of_events(spark: SparkSession, fast: bool) -> None:
    records = _records(spark, *((None, v) for v in (_GOOD, _EMPTY, _ZERO, _NO_NUMBER, None)))
    assert _shown(decode_events(records, _topic("kafka", format="json"), fast=fast)) == [
        ("+I", None, 1, 2, 7),
        ("+I", None, 2, 5, None),
        (None, _QUOTIENT, None, None, None),
        (None, _TEXT, None, None, None),
        ("skip", None, None, None, None),
    ]
