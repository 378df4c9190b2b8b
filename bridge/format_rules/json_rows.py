"""The rows that a JSON document can represent."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.errors import DefinitionError, UnsupportedError
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType, unsupported

CONNECT_ENVELOPE = r'^\s*\{\s*"schema"\s*:'
"""A document of Kafka Connect's JsonConverter with `schemas.enable=true`, which writes the schema first."""


def types(type: DataType) -> Iterator[DataType]:
    """Yield `type` and all its parts."""
    yield type
    if isinstance(type, ArrayType):
        yield from types(type.element)
    elif isinstance(type, MapType):
        yield from types(type.key)
        yield from types(type.value)
    elif isinstance(type, RowType):
        for field in type.fields:
            yield from types(field.type)


def check(row: RowType) -> None:
    """Raise DefinitionError where a JSON document, or Spark, cannot represent `row`."""
    reason = unsupported(row)
    if reason:
        raise UnsupportedError(f"format 'json': {reason}", what="column type")
    for part in types(row):
        if isinstance(part, MapType) and not (isinstance(part.key, ScalarType) and part.key.is_string):
            raise DefinitionError(
                f"JSON format doesn't support non-string as key type of map. The type is: {part.flink()}"
            )
        if isinstance(part, RowType):
            _check_names(part)


def _check_names(row: RowType) -> None:
    seen: dict[str, str] = {}
    for name in row.names:
        other = seen.setdefault(name.lower(), name)
        if other is not name:
            raise DefinitionError(
                f"fields {other!r} and {name!r} differ by case at most, which Delta cannot store side by side; "
                "rename one of them"
            )
