"""Arrow types of the table's types: those that `DataFrame.toArrow` gives for them."""

from __future__ import annotations

import pyarrow as pa

from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType

_SCALARS: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us", tz="UTC"),
}


def arrow_schema(row: RowType) -> pa.Schema:
    """Return the schema of a table of such rows. All fields are nullable, on every level."""
    return pa.schema([(f.name, arrow_type(f.type)) for f in row.fields])


def arrow_type(type: DataType) -> pa.DataType:
    """Return the Arrow type of `type`, which has a counterpart in Spark (see schema.unsupported)."""
    if isinstance(type, RowType):
        return pa.struct([(f.name, arrow_type(f.type)) for f in type.fields])
    if isinstance(type, ArrayType):
        return pa.list_(pa.field("element", arrow_type(type.element)))
    if isinstance(type, MapType):
        return pa.map_(arrow_type(type.key), arrow_type(type.value))
    assert isinstance(type, ScalarType)
    if type.name == "DECIMAL":
        return pa.decimal128(*type.parameters)
    if type.is_string:
        return pa.string()
    return pa.binary() if type.is_binary else _SCALARS[type.name]
