"""Proposes a first suite: Delta -profile-> suite (`bridge check --init`).

The profiled data meets the proposal with a margin: limits are at least doubled, to round numbers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import col
from bridge.config.storage_locations import default_suite
from bridge.definition import Definition
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.pipelines.quality.check import refuse_existing, write_suite_file
from bridge.pipelines.runtime.preflight import open_whole_table

_CLOCK_SKEW_SECONDS = 300.0
"""The event time in the future that expect_table_to_be_fresh accepts."""

_LARGEST = 10**15
"""Readers of JSON lose digits of larger numbers."""


@dataclass(frozen=True)
class Proposal:
    """The file that was written, and the table that it was derived from."""

    suite: str
    expectations: int
    rows: int
    version: int


def propose(spark: SparkSession, definition: Definition, *, overwrite: bool = False) -> Proposal:
    """Write a suite that the newest version of the pipeline's table meets.

    The file is that of `quality.suite`, else `expectations/NAME.json` beside the pipeline file. Runs one aggregate over
    the table, and a second one if columns have few values; only aggregates and these values reach the driver. Raises
    DefinitionError if the file exists and `overwrite` is not set, TableError without a table.
    """
    file = definition.quality.suite if definition.quality else default_suite(definition)
    # Before the table is read, so that a refusal does not take minutes.
    refuse_existing(spark, file, overwrite=overwrite)
    table = open_whole_table(spark, definition)
    version = change_feed.latest_version(table)
    with feed_errors(table, version, version):
        found = table.live(table.read({"versionAsOf": str(version)}))
        frame = found.select(*(col(name) for name in table.columns))
        rows, columns = _profile(frame)
    event_time, history = _event_time(definition, columns), definition.delta.history
    suite = propose_suite(
        definition.name, columns, rows=rows, key=definition.row_key, event_time_column=event_time
    )
    if history is not None:
        named = {name: column for name, column in asdict(history).items() if name != "system_from" and column}
        given = {"column_list": list(definition.primary_key), **named}
        suite["expectations"].insert(1, _expect("history_to_be_whole", **given))
    refuse_existing(spark, file, overwrite=overwrite)
    write_suite_file(spark, suite_text(suite), file)
    return Proposal(file, len(suite["expectations"]), rows, version)


def _profile(frame: DataFrame) -> tuple[int, list[ColumnFacts]]:
    fields = frame.schema.fields
    # By number, since an alias with a dot cannot be selected by its name.
    measures = [m.alias(f"{n}_{what}") for n, f in enumerate(fields) for what, m in _measures(f).items()]
    row = frame.agg(F.count(F.lit(1)).alias("rows"), *measures).collect()[0]
    facts = [_facts(f, n, row) for n, f in enumerate(fields)]
    few = [n for n, f in enumerate(fields) if 0 < row.asDict().get(f"{n}_distinct", 0) <= 2 * _MAX_SET_VALUES]
    if few:
        sets = frame.agg(*[F.array_sort(F.collect_set(col(fields[n].name))).alias(str(n)) for n in few])
        values = sets.collect()[0]
        for n in few:
            facts[n] = replace(facts[n], values=tuple(values[str(n)]))
    return row["rows"], facts


def _measures(field: T.StructField) -> dict[str, Column]:
    column, type = col(field.name), field.dataType
    measures = {"present": F.count(column)}
    if isinstance(type, T.StringType):
        measures["distinct"] = F.approx_count_distinct(column)
    elif isinstance(type, T.NumericType):
        measures |= {"low": F.min(column), "high": F.max(column)}
        if isinstance(type, T.FloatType | T.DoubleType):
            measures["odd"] = F.count_if(F.isnan(column) | (F.abs(column) == float("inf")))
    elif isinstance(type, T.TimestampType | T.TimestampNTZType):
        measures["newest"] = F.unix_micros(F.max(column).cast("timestamp"))
    return measures


def _facts(field: T.StructField, number: int, row: Row) -> ColumnFacts:
    measured = {
        what: row[f"{number}_{what}"] for what in _measures(field) if row[f"{number}_{what}"] is not None
    }
    facts = ColumnFacts(field.name, type(field.dataType).__name__, measured["present"])
    if "low" in measured and not measured.get("odd"):
        low, high = _decimal(measured["low"]), _decimal(measured["high"])
        if max(abs(low), abs(high)) < _LARGEST:
            facts = replace(facts, low=low, high=high)
    if "newest" in measured:
        facts = replace(facts, newest_age_seconds=time.time() - measured["newest"] / 1_000_000)
    return facts


def _decimal(value: Any) -> Decimal:
    return Decimal(str(value))


def _event_time(definition: Definition, columns: list[ColumnFacts]) -> str | None:
    """The column of the WATERMARK, else the time column with the newest value that is not in the future."""
    ages = {c.name: c.newest_age_seconds for c in columns if c.newest_age_seconds is not None}
    past = {name: age for name, age in ages.items() if age > -_CLOCK_SKEW_SECONDS}
    watermark = definition.topic.schema.watermark
    if watermark is not None and watermark.column in past:
        return watermark.column
    return min(past, key=lambda name: past[name], default=None)


_MAX_SET_VALUES = 12
"""The maximum size of a value set, whose values must occur ten times each on average."""

_MIN_ROWS_PER_VALUE = 10
_MAX_VALUE_LENGTH = 60
_DAY = 86_400
_STEPS = (1, 2, 5, 10)


@dataclass(frozen=True)
class ColumnFacts:
    """The profile of a column. Fields are None where unknown, or not computed for the column's type."""

    name: str
    spark_type: str
    """The class name of its Spark type, e.g. LongType."""
    present: int
    """Number of rows in which it is not null."""
    low: Decimal | None = None
    high: Decimal | None = None
    values: tuple[str, ...] | None = None
    """All distinct values, where they are few."""
    newest_age_seconds: float | None = None


def propose_suite(
    name: str, columns: Sequence[ColumnFacts], *, rows: int, key: Sequence[str], event_time_column: str | None
) -> dict[str, Any]:
    """Returns the suite `name` as the contents of a suite file. `event_time_column` gets a freshness expectation."""
    expectations = [_expect("key_to_be_unique", column_list=list(key))] if key else []
    # Great Expectations reads a dot in a name as access to a field, and fails on backquotes.
    for column in (c for c in columns if "." not in c.name and "`" not in c.name):
        expectations += _column_expectations(column, rows, column.name in key)
        if column.name == event_time_column and column.newest_age_seconds is not None:
            age = max(_DAY, int(_round_up(Decimal(column.newest_age_seconds))))
            expectations.append(_expect("table_to_be_fresh", column=event_time_column, max_age_seconds=age))
    return {"name": name, "expectations": expectations, "meta": {"proposed_from_rows": rows}}


def suite_text(suite: dict[str, Any]) -> str:
    """Returns the content of a suite file, with one expectation per line."""
    lines = ",\n".join("    " + json.dumps(e, ensure_ascii=False) for e in suite["expectations"])
    name, meta = (json.dumps(suite[part], ensure_ascii=False) for part in ("name", "meta"))
    return f'{{\n  "name": {name},\n  "expectations": [\n{lines}\n  ],\n  "meta": {meta}\n}}\n'


def _column_expectations(column: ColumnFacts, rows: int, is_key: bool) -> Iterator[dict[str, Any]]:
    name = column.name
    yield _expect("column_values_to_be_of_type", column=name, type_=column.spark_type)
    if rows and column.present == rows:
        yield _expect("column_values_to_not_be_null", column=name)
    if is_key:
        return
    if column.low is not None and column.high is not None:
        low = Decimal(0) if column.low >= 0 else -_round_up(-column.low)
        high = Decimal(0) if column.high <= 0 else _round_up(column.high)
        yield _expect(
            "column_values_to_be_between", column=name, min_value=_number(low), max_value=_number(high)
        )
    values = column.values
    if values and _is_value_set(values, column.present):
        yield _expect("column_values_to_be_in_set", column=name, value_set=sorted(values))


def _is_value_set(values: Sequence[str], present: int) -> bool:
    return (
        len(values) <= _MAX_SET_VALUES
        and present >= _MIN_ROWS_PER_VALUE * len(values)
        and max(map(len, values)) <= _MAX_VALUE_LENGTH
    )


def _expect(type: str, **kwargs: Any) -> dict[str, Any]:
    return {"type": f"expect_{type}", "kwargs": kwargs}


def _round_up(value: Decimal) -> Decimal:
    """Returns the next of 1, 2, 5, 10, 20, 50, ... at or above twice `value`; 0 for 0 and below."""
    if value <= 0:
        return Decimal(0)
    doubled = 2 * value
    unit = Decimal(10) ** doubled.adjusted()
    return next(step * unit for step in _STEPS if step * unit >= doubled.quantize(unit / 100, ROUND_CEILING))


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)
