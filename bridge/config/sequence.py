"""Resolves `delta.sequence-by`: the columns by which the changes of a key are ordered."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.definition import Topic
from bridge.errors import DefinitionError
from bridge.schema import MetadataColumn, PhysicalColumn, ScalarType

__all__ = ["POSITION", "sequence_columns"]

POSITION = "position"
"""The value of `delta.sequence-by` for the order of the records."""

_ORDERED = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
"""Types whose values every engine orders in the same way."""


def sequence_columns(
    given: str | Sequence[str], topic: Topic, key: str = "delta.sequence-by"
) -> tuple[str, ...]:
    """Returns the columns, the most significant first; none for `position`, the order of the records.

    Raises DefinitionError, which names `key`, for columns by which changes cannot be ordered.
    """
    if given == POSITION:
        return ()
    names = (given,) if isinstance(given, str) else tuple(given)
    schema = topic.schema
    if not schema.primary_key:
        raise DefinitionError(
            f"{key}: the DDL has no PRIMARY KEY, and rows without a key are added in the order of their records; "
            f"declare one, or remove {key}"
        )
    columns: tuple[PhysicalColumn | MetadataColumn, ...] = (*schema.physical, *schema.metadata)
    types = {column.name: column.type for column in columns}
    for name in names:
        if name in schema.primary_key:
            raise DefinitionError(
                f"{key}: {name!r} is in the PRIMARY KEY, so all changes of a row have the same value; name another "
                f"column, or remove {key}"
            )
        if name in schema.names and name not in types:
            raise DefinitionError(
                f"{key}: {name!r} is a computed column, which a deletion does not have; name a column of the record, "
                "for example one METADATA FROM 'timestamp'"
            )
        if name not in types:
            raise DefinitionError(
                f"{key}: {name!r} is not a column of the DDL; its columns are {', '.join(types)}"
            )
        type = types[name]
        if not (isinstance(type, ScalarType) and type.name in _ORDERED):
            raise DefinitionError(
                f"{key}: {name!r} has the type {type.flink()}; legal are {', '.join(_ORDERED)}"
            )
    return names
