"""Changes a table's schema to follow its definition: adds columns and widens types; removes no column and no value."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.delta.delta_errors import table_errors
from bridge.delta.table import handle
from bridge.delta.table_checks import refuse_unfit_properties, sql_name
from bridge.errors import TableError
from bridge.schema import quote

_WIDENING = "delta.enableTypeWidening"
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


def merge_schema(
    spark: SparkSession,
    target: DeltaTarget,
    fields: Sequence[T.StructField],
    *,
    pipeline: str,
    appends: bool = False,
    widen: bool = True,
) -> list[str]:
    """Add the columns of `fields` that the table lacks (null in existing rows), and with `widen` widen narrower types.

    Each change is a commit of its own. Returns a description of each. A type that Delta cannot widen is not changed;
    `open_table` refuses it. Raises TableError for a table that `pipeline` must not ingest into, and, with Delta's
    reason, for a column that Delta does not add.
    """
    with table_errors(target):
        opened = handle(spark, target)
        refuse_unfit_properties(
            target, opened.detail().select("properties").collect()[0][0], pipeline, appends=appends
        )
        present = {f.name: f.dataType for f in opened.toDF().schema}
    missing = [f for f in fields if f.name not in present]
    wider = [f for f in fields if widen and f.name in present and widens(present[f.name], f.dataType)]
    name = sql_name(target)
    statements = []
    if missing:
        added = ", ".join(f"{quote(f.name)} {f.dataType.simpleString()}" for f in missing)
        statements.append(f"ALTER TABLE {name} ADD COLUMNS ({added})")
    if wider:
        statements.append(f"ALTER TABLE {name} SET TBLPROPERTIES ({_WIDENING} = true)")
    statements += [
        f"ALTER TABLE {name} ALTER COLUMN {quote(f.name)} TYPE {f.dataType.simpleString()}" for f in wider
    ]
    with table_errors(target):
        for statement in statements:
            try:
                spark.sql(statement)
            except AnalysisException as error:
                reason = str(error).splitlines()[0][:300]  # names of columns, no data
                raise TableError(f"table {target} cannot follow the DDL: {reason}") from error
    return [f"column {f.name!r} added" for f in missing] + [
        f"column {f.name!r} widened from {present[f.name].simpleString()} to {f.dataType.simpleString()}"
        for f in wider
    ]


def unchanged_fields(
    present: T.StructType, fields: Sequence[T.StructField], *, widen: bool
) -> list[T.StructField]:
    """Return the `fields` that `merge_schema` would neither add to a table with the columns `present` nor widen."""
    types = {f.name: f.dataType for f in present.fields}
    there = [f for f in fields if f.name in types]
    return [f for f in there if not (widen and widens(types[f.name], f.dataType))]


def widens(old: T.DataType, new: T.DataType) -> bool:
    """True when Delta can change `old` to `new` without rewriting files, and every value of `old` is one of `new`."""
    before, after = old.simpleString(), new.simpleString()
    if before == after:
        return False
    if before in _INTEGERS and after in _INTEGERS:
        return _INTEGERS.index(before) < _INTEGERS.index(after)
    if isinstance(new, T.DecimalType):
        integer_digits = new.precision - new.scale
        if isinstance(old, T.DecimalType):
            return new.scale >= old.scale and integer_digits >= old.precision - old.scale
        return integer_digits >= _DIGITS.get(before, 99)
    if after == "double":
        return before in ("float", *_INTEGERS[:3])
    return (before, after) == ("date", "timestamp_ntz")
