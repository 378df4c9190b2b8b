"""Reads columns of the files that `logged_files` names into the driver, with Arrow and without Spark.

Only where a file has the values that Spark reads from it: columns of simple types, each written as the table's type.
For all else the answer is None, and Spark is asked, which then raises what is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from bridge.delta.logged_files import NamedFiles
from bridge.lake.data_files import DataFile, arrow_schema, open_added
from bridge.lake.store import at_once
from bridge.ways import NotThisWay

_SIMPLE = (
    T.ByteType(),
    T.ShortType(),
    T.IntegerType(),
    T.LongType(),
    T.StringType(),
    T.BooleanType(),
    T.DateType(),
    T.TimestampType(),
    T.TimestampNTZType(),
)
"""Equal as objects, so a STRING with a collation, or a CHAR, is none of them."""
_OTHERS = (T.BinaryType(), T.FloatType(), T.DoubleType())
"""Are read as they are, but not compared: Spark has one NaN, and -0.0 equals 0.0 in groups."""
_INT96 = "INT96"


def is_simple(type: T.DataType) -> bool:
    """Whether values of this type are the same to Arrow and to Spark when they are compared, DECIMAL aside."""
    return type in _SIMPLE or isinstance(type, T.DecimalType)


def _is_read(type: T.DataType) -> bool:
    return is_simple(type) or type in _OTHERS


def read_columns(
    files: NamedFiles, columns: Sequence[str], *, most_rows: int, coded: Collection[str] = ()
) -> pa.Table:
    """The rows of these files without those that are deleted, in no order; `columns`, at least one, in the types of the
    table, null in files that are older than one. Of the columns `coded` texts come as dictionaries, each file with its
    own.

    Raises NotThisWay where Spark must be asked, and for more than `most_rows`, of which none is read.
    """
    types = {field.name: field.dataType for field in files.fields}
    if unread := next((name for name in columns if not _is_read(types[name])), None):
        raise NotThisWay(f"column {unread!r} is {types[unread].simpleString().upper()}")
    texts = [name for name in columns if name in coded and types[name] == T.StringType()]
    try:
        schema = _with_dictionaries(
            arrow_schema({"schemaString": T.StructType(list(files.fields)).json()}), texts
        )
        opened = at_once(lambda add: open_added(files.snapshot, add, schema, texts), files.adds)
        if sum(file.rows for file in opened) > most_rows:
            raise NotThisWay(f"its files have more than {most_rows:,} rows")
        for file in opened:
            _refuse_other_types(file, columns)
        empty = pa.schema([schema.field(name) for name in columns]).empty_table()
        return pa.concat_tables([empty, *at_once(lambda file: _live_rows(file, columns), opened)])
    except (pa.ArrowException, OSError, ValueError, LookupError) as error:
        raise NotThisWay("a file of the table is missing or cannot be read") from error


def _with_dictionaries(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    text = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([pa.field(f.name, text if f.name in names else f.type) for f in schema])


def _refuse_other_types(file: DataFile, columns: Sequence[str]) -> None:
    """Raise NotThisWay for a column that the file has in another type than the table, which Spark converts or
    refuses by its own rules. Texts have several types in Arrow, of which a file names the one of its writer."""
    written, leaves = file.parquet.schema_arrow, file.parquet.schema
    physical = {leaf.path: leaf.physical_type for leaf in map(leaves.column, range(len(leaves)))}
    for name in columns:
        if name not in written.names:
            continue
        found, expected = written.field(name).type, file.schema.field(name).type
        is_instant = pa.types.is_timestamp(expected) and expected.tz is not None
        if is_instant and physical.get(name) == _INT96:
            continue
        of_bytes = {
            pa.string(): (pa.large_string(), pa.string_view()),
            pa.binary(): (pa.large_binary(), pa.binary_view()),
        }
        if found != expected and found not in of_bytes.get(expected, ()):
            raise NotThisWay(f"a file has column `{name}` as {found}")


def _live_rows(file: DataFile, columns: Sequence[str]) -> pa.Table:
    rows = file.read(range(file.parquet.num_row_groups), columns)
    if not file.marked:
        return rows
    kept = np.ones(file.rows, np.bool_)
    kept[np.fromiter(file.marked, np.int64, len(file.marked))] = False
    return rows.filter(pa.array(kept))
