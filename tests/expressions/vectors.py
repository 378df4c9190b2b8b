"""What Flink itself gave for expressions, and the same expressions on Spark.

`vectors.jsonl` is written by `make flink-vectors`. Doubles may differ in the last digit, as Java's mathematical
functions do; maps have no order.
"""

from __future__ import annotations

import base64
import decimal
import json
import math
import os
import random
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sqlglot import exp

from benchmarks.flink_vectors.corpus import ARRAYS, COLUMNS, ROWS, columns, documents
from bridge.ddl import parse
from bridge.ddl.elements import spark_text as text_of
from bridge.ddl.elements import translate
from bridge.ddl.tokens import Cursor, Source
from bridge.errors import DdlError
from bridge.expressions.failures import failure, without_failures
from bridge.schema import DataType


def columns_of(columns: str) -> Mapping[str, DataType]:
    """The types of columns by their names."""
    ddl = parse(f"CREATE TABLE t ({columns}) WITH ('connector' = 'kafka')", "t.sql")
    return {c.name: c.type for c in ddl.schema.physical}


TYPES: Mapping[str, DataType] = columns_of(columns())
_FILE = Path(__file__).with_name("vectors.jsonl")
_AT_ONCE = 60
_TIMES = (T.DateType, T.TimestampType, T.TimestampNTZType)


@dataclass(frozen=True)
class Vector:
    """An expression with what Flink says: why it is refused, or its type and a value for each row."""

    expression: str
    refused: str | None
    type: str
    values: Sequence[Any]

    def is_judged(self, row: int) -> bool:
        """Whether Flink has a value or an error for the row: its generated code may not compile, or be at fault."""
        value = self.values[row]
        return not (isinstance(value, dict) and _BUG.match(str(value.get("error", ""))))


_BUG = re.compile(
    "CompileException|CodeGenException|ValidationException|NullPointerException|AssertionError|ClassCast|"
    "StringIndexOutOfBounds"
)


def drawn_seed() -> int:
    """A drawn seed, which is printed; a fixed one in CI, so that a landing is no matter of luck."""
    seed = 7 if os.environ.get("CI") else random.randrange(2**32)
    print(f"seed {seed}")
    return seed


def vectors(file: Path = _FILE, rows: int = ROWS) -> Iterator[Vector]:
    """All vectors, in the order of the file; each has a value for so many rows."""
    lines = file.read_text().splitlines()
    for line in map(json.loads, lines[1:]):
        same = line["value"] if "value" in line else {"error": line.get("error", "")}
        values = line.get("values") or [same] * rows
        yield Vector(line["expression"], line.get("refused"), line.get("type", ""), values)


def spark_text(expression: str) -> str:
    """The expression in Spark SQL. Raises DdlError where the bridge refuses it."""
    return text_of(translated(expression))


def accepted(expressions: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Those that the bridge does not refuse, with their texts in Spark SQL. Whatever else is raised passes, and fails
    the test."""
    for expression in expressions:
        try:
            yield expression, spark_text(expression)
        except DdlError:
            continue


def failure_text(expression: str, columns: str | None = None) -> tuple[str, str | None]:
    """The expression without its failures, and why it fails for a row; None if it cannot. `columns` are
    those of another table."""
    root = translated(expression, TYPES if columns is None else columns_of(columns))
    fails = failure(root)
    return text_of(without_failures(root)), None if fails is None else text_of(fails)


def given(expression: str, row: int) -> str:
    """The values of the columns of an expression in a row."""
    every = COLUMNS | ARRAYS
    return ", ".join(repr(every[n][1][row]) for n in re.findall(r"\bc_(\w+)", expression) if n in every)


def translated(expression: str, types: Mapping[str, DataType] | None = None) -> exp.Expr:
    """The expression of a computed column, adapted. Raises DdlError where the bridge refuses it."""
    cursor = Cursor(Source(expression, "x.sql"))
    return translate(cursor, 0, len(cursor.tokens) - 1, "c", TYPES if types is None else types)


def inputs(spark: SparkSession, of: Iterable[str] | None = None) -> DataFrame:
    """The table of which the columns are, or one of other documents."""
    rows = [json.loads(document) for document in (documents() if of is None else of)]
    as_is = ("BOOLEAN", "INT", "TINYINT", "SMALLINT", "BIGINT")
    plain = {
        name: type.spark() if type.spark().startswith(("ARRAY", "MAP", *as_is)) else "STRING"
        for name, type in TYPES.items()
    }
    made = [
        f"{f'unbase64(`{name}`)' if type.spark() == 'BINARY' else f'CAST(`{name}` AS {type.spark()})'} AS `{name}`"
        for name, type in TYPES.items()
    ]
    schema = ", ".join(f"`{name}` {type}" for name, type in plain.items())
    frame = spark.createDataFrame([tuple(row[name] for name in plain) for row in rows], schema)
    return frame.selectExpr(*made)


def evaluate(table: DataFrame, texts: Sequence[str]) -> list[list[Any]]:
    """The values of each expression by row, {"error": …} for a row that fails."""
    found: list[list[Any]] = []
    for at in range(0, len(texts), _AT_ONCE):
        found += _evaluated(table, texts[at : at + _AT_ONCE])
    return found


def _evaluated(table: DataFrame, texts: Sequence[str]) -> list[list[Any]]:
    try:
        return _collected(table, texts)
    except PySparkException as error:
        if len(texts) > 1:
            middle = len(texts) // 2
            return _evaluated(table, texts[:middle]) + _evaluated(table, texts[middle:])
        if "c_" not in texts[0]:
            return [[{"error": str(error)}] * table.count()]
        return [[_one(table, texts[0], rid) for rid in range(table.count())]]


def _one(table: DataFrame, text: str, rid: int) -> Any:
    try:
        return _collected(table.where(F.col("rid") == rid), [text])[0][0]
    except PySparkException as error:
        return {"error": str(error)}


def _collected(table: DataFrame, texts: Sequence[str]) -> list[list[Any]]:
    return values_of(table.selectExpr("rid", *(f"({text}) AS v{n}" for n, text in enumerate(texts))))


def values_of(frame: DataFrame) -> list[list[Any]]:
    """The values of each column but the first, in the order of that one."""
    is_time = [isinstance(f.dataType, _TIMES) for f in frame.schema.fields]
    shown = [
        F.col(f.name).cast("string").alias(f.name) if time else F.col(f.name)
        for f, time in zip(frame.schema.fields, is_time, strict=True)
    ]
    rows = sorted(frame.select(*shown).collect(), key=lambda row: row[0])
    return [
        [{"time": row[n]} if is_time[n] and row[n] is not None else _plain(row[n]) for row in rows]
        for n in range(1, len(frame.columns))
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, decimal.Decimal):
        return {"decimal": format(value, "f")}
    if isinstance(value, float):
        return {"double": value}
    if isinstance(value, date):
        return {"time": _without_zeros(str(value))}
    if isinstance(value, list):
        return {"array": [_plain(item) for item in value]}
    if isinstance(value, dict):
        return {"map": [[_plain(k), _plain(v)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return {"row": [_plain(item) for item in value]}
    return value


def is_same(flink: Any, spark: Any, *, of_float: bool = False, ordered: bool = True) -> bool:
    """Whether Flink's value is Spark's. `ordered`: the order of an array counts, which is not that of a map's."""
    if not isinstance(flink, dict) or not isinstance(spark, dict) or set(flink) != set(spark):
        return bool(flink == spark)
    (kind,) = flink
    if kind == "error":
        return True
    if kind == "double":
        wanted, actual = float(flink[kind]), spark[kind]
        if of_float and math.isfinite(wanted):
            (wanted,) = struct.unpack("f", struct.pack("f", wanted))
        return bool(
            wanted == actual
            or (math.isnan(wanted) and math.isnan(actual))
            or abs(wanted - actual) <= 4e-16 * abs(wanted)
        )
    if kind == "decimal":
        return bool(decimal.Decimal(flink[kind]) == decimal.Decimal(spark[kind]))
    if kind == "time":
        return bool(_time(flink[kind]) == spark[kind].lstrip("+"))
    if kind in ("map", "array", "row"):
        pairs = [flink[kind], spark[kind]]
        if kind == "map" or (kind == "array" and not ordered):
            pairs = [sorted(items, key=_order) for items in pairs]
        if kind == "map":
            pairs = [[x for pair in items for x in pair] for items in pairs]
        return len(pairs[0]) == len(pairs[1]) and all(
            is_same(a, b, of_float=of_float) for a, b in zip(*pairs, strict=True)
        )
    return bool(flink == spark)


def _time(text: str) -> str:
    """A time as Spark shows it, from Java's way."""
    day, _, time = text.lstrip("+").rstrip("Z").partition("T")
    if not time:
        return day
    time = time + ":00" if time.count(":") == 1 else time
    return f"{day} {_without_zeros(time)}"


def _without_zeros(time: str) -> str:
    return time.rstrip("0").rstrip(".") if "." in time else time


def _order(value: Any) -> str:
    """The same text for equal values of Flink and Spark."""
    if isinstance(value, list):
        return " ".join(map(_order, value))
    if isinstance(value, dict) and "double" in value:
        return str(float(value["double"]))
    return str(value)
