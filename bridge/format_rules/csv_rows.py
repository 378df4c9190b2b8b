"""The rows that a line of CSV can represent."""

from __future__ import annotations

from bridge.errors import DefinitionError, UnsupportedError
from bridge.schema import ArrayType, DataType, RowType, ScalarType, unsupported


def check(row: RowType) -> None:
    """Raise DefinitionError where a line of CSV, or Spark, cannot represent `row` (CsvRowSchemaConverter)."""
    reason = unsupported(row)
    if reason:
        raise UnsupportedError(f"format 'csv': {reason}", what="column type")
    for field in row.fields:
        if not isinstance(field.type, (ScalarType, ArrayType, RowType)):
            raise DefinitionError(f"Unsupported type '{field.type.flink()}' for field '{field.name}'.")
        for part in _parts(field.type):
            if not isinstance(part, ScalarType):
                raise DefinitionError(
                    "Only simple types are supported in the second level nesting of fields "
                    f"'{field.name}' but was: {part.flink()}"
                )
    _check_names(row)


def _parts(type: DataType) -> list[DataType]:
    if isinstance(type, ArrayType):
        return [type.element]
    return [f.type for f in type.fields] if isinstance(type, RowType) else []


def _check_names(row: RowType) -> None:
    for of in (row, *(f.type for f in row.fields if isinstance(f.type, RowType))):
        seen: dict[str, str] = {}
        for name in of.names:
            other = seen.setdefault(name.lower(), name)
            if other is not name:
                raise DefinitionError(
                    f"fields {other!r} and {name!r} differ by case at most, which Delta cannot store side by "
                    "side; rename one of them"
                )
