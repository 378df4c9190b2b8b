"""Documents of drawn columns carry the values that the judge computes; a Debezium change has the row before it."""

from __future__ import annotations

import csv
import io
import json
import struct
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks import oracle
from benchmarks.drawn_columns import DrawnColumns
from benchmarks.topics import Load, records, spark_types

LOAD = Load.random(400, 60, seed=5)
HEADER = struct.pack(">bI", 0, 7)


def of_csv(value: bytes, names: list[str]) -> dict[str, str | None]:
    (texts,) = csv.reader(io.StringIO(value.decode()))
    return {n: None if text == "-" else text for n, text in zip(names, texts, strict=True)}


def of_avro(schema: Any, value: bytes) -> dict[str, str | None]:
    assert value.startswith(HEADER)
    row = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, schema)
    assert isinstance(row, dict)
    return {n: None if v is None else str(v).removesuffix("+00:00") for n, v in row.items()}


def text(value: object) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("format", ["json", "csv", "avro-confluent", "debezium-json"])
def test_the_judge_computes_what_the_documents_carry(spark: SparkSession, format: str) -> None:
    shape = DrawnColumns(format, 40, seed=3)  # so many that every kind is among them
    names = list(shape.types)
    read: dict[str, Callable[[bytes], dict[str, str | None]]] = {
        "json": lambda value: json.loads(value, parse_float=Decimal),
        "debezium-json": lambda value: json.loads(value, parse_float=Decimal)["after"],
        "csv": lambda value: of_csv(value, names),
    }
    if format == "avro-confluent":
        of_columns = [
            {"name": f"c{n}", "type": ["null", column.avro]} for n, column in enumerate(shape.columns)
        ]
        fields = [{"name": "id", "type": "long"}, *of_columns, {"name": "number", "type": ["null", "long"]}]
        schema = fastavro.parse_schema({"type": "record", "name": "row", "fields": fields})
        shape.__dict__["_registered"] = (schema, HEADER)
        read[format] = lambda value: of_avro(schema, value)
    load = replace(LOAD, keys=LOAD.keys.copy(), rows=shape)
    rows: dict[bytes | None, dict[str, Any]] = {}
    for record in records(load, 0, len(load)):
        value = record["value"] and read[format](record["value"])
        rows[record["key"]] = value or {}
    texts = [[text(row[name]) for name in names] for row in rows.values() if row]
    frame = spark.createDataFrame(texts, ", ".join(f"{n} STRING" for n in names))
    typed = frame.select(*[F.col(n).cast(type).alias(n) for n, type in spark_types(shape.types).items()])
    assert oracle.wrong(typed, load) is None
    load.keys[-1] = 61
    assert oracle.wrong(typed, load) is not None


def test_a_change_of_debezium_has_the_row_before_it() -> None:
    load = Load(LOAD.keys[:5].copy(), LOAD.deletes[:5].copy(), rows=DrawnColumns("debezium-json", 2))
    load.keys[:] = (1, 1, 1, 2, 1)
    load.deletes[:] = (False, False, True, True, False)
    changes = [json.loads(record["value"] or b"") for record in records(load, 0, 5)]
    before = [change["before"] and change["before"]["number"] for change in changes]
    after = [change["after"] and change["after"]["number"] for change in changes]
    assert [change["op"] for change in changes] == ["c", "u", "d", "d", "c"]
    assert (before, after) == ([None, 1, 2, 0, None], [1, 2, None, None, 5])


def test_a_text_of_so_many_bytes() -> None:
    load = replace(LOAD, rows=DrawnColumns("json", 1, value_bytes=1_000))
    (record,) = [r for r in records(load, 0, 5) if r["value"]][:1]
    assert len(json.loads(record["value"] or b"")["c0"]) == 1_000
