"""The values of `vectors.jsonl`, as Arrow has them and as they are compared."""

from __future__ import annotations

import base64
import struct
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa

from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType


def is_same(flink: Any, bridge: Any, *, skips_errors: bool = False) -> bool:
    """Whether the bridge reads what Flink reads: the same changes, or an error where Flink has one. What is skipped
    is an error in the bridge, which counts it, and no row in Flink."""
    if skips_errors and is_error(bridge):
        return bool(flink == [])
    if is_error(flink) or is_error(bridge):
        return is_error(flink) and is_error(bridge)
    return _equal(flink, bridge)


def is_error(outcome: Any) -> bool:
    """Whether there is an error in place of rows."""
    return isinstance(outcome, dict)


def _equal(flink: Any, bridge: Any) -> bool:
    if isinstance(flink, list) and isinstance(bridge, list):
        return len(flink) == len(bridge) and all(map(_equal, flink, bridge))
    if not isinstance(flink, dict) or not isinstance(bridge, dict):
        return type(flink) is type(bridge) and bool(flink == bridge)
    if "double" in flink and "double" in bridge:
        return _bits(float(flink["double"]), bridge) == _bits(bridge["double"], bridge)
    if "decimal" in flink and "decimal" in bridge:
        return bool(Decimal(flink["decimal"]) == bridge["decimal"])
    if "ns" in flink and "us" in bridge:
        return bool(flink["ns"] // 1000 == bridge["us"])
    if "map" in flink and "map" in bridge:
        return _equal(*(sorted(of["map"], key=str) for of in (flink, bridge)))
    return flink.keys() == bridge.keys() and all(_equal(value, bridge[key]) for key, value in flink.items())


def _bits(value: float, bridge: Any) -> bytes:
    """The bits of a number, of which all that are none are one."""
    if value != value:
        return b"NaN"
    return struct.pack(">f" if bridge.get("single") else ">d", value)


def structs(column: pa.ChunkedArray) -> list[Any]:
    return cast(list[Any], pa.chunked_array([_numbered(chunk) for chunk in column.chunks]).to_pylist())


def _numbered(values: pa.Array) -> pa.Array:
    """The same values, with days and times as numbers, as Python lacks years that Spark has."""
    return values.cast(_as_numbers(values.type))


def _as_numbers(type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type):
        return pa.int64()
    if pa.types.is_date32(type):
        return pa.int32()
    if pa.types.is_struct(type):
        return pa.struct([(f.name, _as_numbers(f.type)) for f in type.fields])
    if pa.types.is_list(type):
        return pa.list_(pa.field(type.value_field.name, _as_numbers(type.value_type)))
    if pa.types.is_map(type):
        return pa.map_(_as_numbers(type.key_type), _as_numbers(type.item_type))
    return type


def tagged(value: Any, type: DataType) -> Any:
    """A value as the file has it."""
    if value is None:
        return None
    if isinstance(type, RowType):
        parts = {f.name: tagged(value[f.name], f.type) for f in type.fields}
        return {"row": {name: part for name, part in parts.items() if part is not None}}
    if isinstance(type, ArrayType):
        return {"array": [tagged(item, type.element) for item in value]}
    if isinstance(type, MapType):
        return {"map": [[tagged(k, type.key), tagged(v, type.value)] for k, v in value]}
    assert isinstance(type, ScalarType)
    if type.is_binary:
        return {"bytes": base64.b64encode(value).decode()}
    if type.name == "FLOAT":
        return {"double": value, "single": True}
    kinds = {"DECIMAL": "decimal", "DOUBLE": "double", "TIMESTAMP": "us", "TIMESTAMP_LTZ": "us"}
    return {kinds[type.name]: value} if type.name in kinds else value


def arrow_value(value: Any, type: DataType) -> Any:
    """A value of the file as pyarrow takes it."""
    if value is None:
        return None
    if isinstance(type, RowType):
        return {f.name: arrow_value(value["row"].get(f.name), f.type) for f in type.fields}
    if isinstance(type, ArrayType):
        return [arrow_value(item, type.element) for item in value["array"]]
    if isinstance(type, MapType):
        return [(arrow_value(k, type.key), arrow_value(v, type.value)) for k, v in value["map"]]
    assert isinstance(type, ScalarType)
    if type.is_binary:
        return base64.b64decode(value["bytes"])
    if type.name == "DECIMAL":
        return Decimal(value["decimal"])
    if type.name in ("FLOAT", "DOUBLE"):
        return float(value["double"])
    return value["ns"] // 1000 if type.name in ("TIMESTAMP", "TIMESTAMP_LTZ") else value
