"""What json's decoder and encoder agree on: which types exist, and how moments are written."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.errors import DefinitionError, UnsupportedError
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType, unsupported

__all__ = ["check", "is_temporal", "moment_pattern", "types", "usual_moment"]

# ISO_LOCAL_DATE: a year of more than four digits has a sign.
_DATE = "(?:-?[0-9]{4}|[+-][0-9]{5,6})-[0-9]{2}-[0-9]{2}"
_TIME = "[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]{0,9})?"
# ISO_LOCAL_TIME leaves the seconds out or gives at least one digit after the point.
_ISO_TIME = "[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,9})?)?"


def types(type: DataType) -> Iterator[DataType]:
    """`type` and all its parts."""
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
    """Raise DefinitionError when `row` holds what a JSON document, or Spark, cannot."""
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


def is_temporal(type: DataType) -> bool:
    return isinstance(type, ScalarType) and type.name in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")


def usual_moment(type: ScalarType) -> str:
    """The places in a moment of four digits of a year, as a regular expression. What it matches and Spark casts is as
    `moment_pattern` has it, without ISO-8601: digits are demanded by the cast, but for the end, where it takes more."""
    if type.name == "DATE":
        return r"\A....-..-.[0-9]\z"
    zone = "Z" if type.name == "TIMESTAMP_LTZ" else ""
    return rf"\A....-..-.. ..:..:.[0-9](?:[.][0-9]{{0,9}})?{zone}\z"


def moment_pattern(type: ScalarType, iso_8601: bool) -> str:
    """The texts that Flink reads as `type`, as a regular expression (flink-formats-common, TimeFormats)."""
    if type.name == "DATE":
        return f"^{_DATE}$"
    zone = "Z" if type.name == "TIMESTAMP_LTZ" else ""
    return f"^{_DATE}T{_ISO_TIME}{zone}$" if iso_8601 else f"^{_DATE} {_TIME}{zone}$"
