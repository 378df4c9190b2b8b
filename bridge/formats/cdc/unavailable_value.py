"""Debezium's placeholder for a value that the database left out of a change (Postgres: TOASTed and unchanged).

It is the value of strings, in UTF-8 that of bytes, the only item of lists and maps, and as bytes a list of numbers.
"""

from __future__ import annotations

from bridge.format_rules.change_documents import PLACEHOLDER
from bridge.formats.sql import literal, member, null
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType

__all__ = ["has_placeholder", "unavailable_fields", "without_placeholders"]

_TEXT, _BYTES = literal(PLACEHOLDER), f"encode({literal(PLACEHOLDER)}, 'UTF-8')"


def has_placeholder(row: RowType, value: str) -> str:
    """Return SQL that is true where a field of `value` holds the placeholder, else false or null; '' where none can."""
    return " OR ".join(test for f in row.fields if (test := _is_placeholder(member(value, f.name), f.type)))


def unavailable_fields(row: RowType, value: str) -> str:
    """Return the array of the names of the fields of `value` that hold the placeholder."""
    conditions = [(f.name, _is_placeholder(member(value, f.name), f.type)) for f in row.fields]
    tests = [f"IF({test}, {literal(name)}, NULL)" for name, test in conditions if test]
    return f"array_compact(array({', '.join(tests)}))" if tests else null("ARRAY<STRING>")


def without_placeholders(row: RowType, value: str) -> str:
    """Return `value` with null for every placeholder."""
    pairs = []
    for f in row.fields:
        plain, test = member(value, f.name), _is_placeholder(member(value, f.name), f.type)
        pairs.append(f"{literal(f.name)}, " + (f"IF({test}, NULL, {plain})" if test else plain))
    return f"named_struct({', '.join(pairs)})"


def _is_placeholder(value: str, type: DataType) -> str:
    """Return SQL that is true where `value` is the placeholder; '' for a type that cannot hold it."""
    if isinstance(type, ScalarType):
        form = _TEXT if type.is_string else _BYTES if type.is_binary else ""
        return f"{value} = {form}" if form else ""
    if isinstance(type, ArrayType) and isinstance(type.element, ScalarType):
        if type.element.name in ("INT", "BIGINT"):
            items = ", ".join(f"CAST({byte} AS {type.element.spark()})" for byte in PLACEHOLDER.encode())
            return f"{value} = array({items})"
        only = _is_placeholder(f"{value}[0]", type.element)
        return f"(size({value}) = 1 AND {only})" if only else ""
    if isinstance(type, MapType) and isinstance(type.value, ScalarType) and type.value.is_string:
        return f"(size({value}) = 1 AND {value}[{_TEXT}] = {_TEXT})"
    return ""
