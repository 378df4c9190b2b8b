"""Arrow types of the table's types: those that Spark gives for them."""

from __future__ import annotations

import pyarrow as pa

from bridge.schema import DataType, ScalarType

__all__ = ["arrow_type"]

_TYPES: dict[str, pa.DataType] = {
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


def arrow_type(type: DataType) -> pa.DataType | None:
    """Return the Arrow type of a scalar type; None for other types."""
    if not isinstance(type, ScalarType):
        return None
    if type.name == "DECIMAL":
        return pa.decimal128(*type.parameters)
    if type.is_string:
        return pa.string()
    return pa.binary() if type.is_binary else _TYPES.get(type.name)
