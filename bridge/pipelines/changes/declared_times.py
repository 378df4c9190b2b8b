"""Rows of a table whose times have more digits than the types of the topic: TIMESTAMP(3), and Delta keeps six.

A publish cuts them, as Flink does when it writes. In a PRIMARY KEY several rows would be one key of the topic, and a
delete of one would remove all, so such rows are refused there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from bridge.columns import KIND, col, retracts
from bridge.delta.table import Table
from bridge.errors import AmbiguousKeyError
from bridge.expressions.precision import cut, loses_digits
from bridge.schema import DataType, MetadataColumn, PhysicalColumn, ScalarType, TableSchema

_MICROS = 6


def cut_times(rows: DataFrame, schema: TableSchema) -> DataFrame:
    """The same rows as a topic of this schema has them, also within ARRAY, MAP and ROW."""
    cuts = {name: _cut(name, type) for name, type in _shorter(schema).items() if name in rows.columns}
    return rows.withColumns(cuts) if cuts else rows


def checked_keys(rows: DataFrame, table: Table, schema: TableSchema, *, compacts: bool) -> DataFrame:
    """Changes of a table with the keys that they have in the topic; they are `compacts` by these keys afterwards.

    Raises AmbiguousKeyError for a row whose key is longer; where nothing is compacted, also for one that is deleted, as
    its tombstone could follow the record of a row that stays. Runs a job only for keys with TIMESTAMP(5) and shorter.
    """
    types = _shorter(schema)
    cuts = {name: _cut(name, types[name]) for name in schema.primary_key if name in types}
    if not cuts:
        return rows
    longer = reduce(or_, (col(name) != made for name, made in cuts.items()))
    refused = rows.where(longer & ~retracts() if compacts and KIND in rows.columns else longer)
    found = refused.select(*(col(n).cast("string").alias(n) for n in schema.primary_key)).head()
    if found is not None:
        name = next(n for n in cuts if found[n])
        shown = ", ".join(f"{n}: {found[n]}" for n in schema.primary_key)
        raise AmbiguousKeyError(
            f"table {table}: the key of a row ({shown}) has more digits than {types[name].flink()} of column "
            f"{name}, so several rows would be one key of the topic, and a delete of one would remove all. Declare "
            f"{name} with the digits that it has, such as {_longest(types[name])}, or cut it in the table"
        )
    return rows.withColumns(cuts) if compacts else rows


def has_longer_keys(rows: pa.Table, schema: TableSchema) -> bool:
    """Whether a row has such a key, or might: whatever its change is."""
    for name in schema.primary_key:
        type = _shorter(schema).get(name)
        if type is not None and name in rows.column_names:
            if not isinstance(type, ScalarType):
                return True
            micros = rows[name].cast(pa.timestamp("us", tz=rows[name].type.tz), safe=False).cast(pa.int64())
            step = 10 ** (_MICROS - type.parameters[0])
            whole = pc.multiply(pc.divide(micros, step), step)
            if pc.any(pc.not_equal(micros, whole)).as_py():
                return True
    return False


def _shorter(schema: TableSchema) -> Mapping[str, DataType]:
    """The columns with times that have fewer digits than Spark's."""
    columns = [c for c in schema if isinstance(c, PhysicalColumn | MetadataColumn)]
    return {c.name: c.type for c in columns if loses_digits(None, c.type)}


def _cut(name: str, type: DataType) -> Column:
    made = cut(exp.column(name, quoted=True), type, down=True)
    return F.expr(made.sql("spark", identify=True))


def _longest(type: DataType) -> str:
    return f"{type.name}(6)" if isinstance(type, ScalarType) else "TIMESTAMP(6) in it"
