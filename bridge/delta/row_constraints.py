"""Knows what a Delta table asks of each row: constraints of Delta, and values that its partition columns can hold.

Delta checks NOT NULL, CHECK, the length of CHAR and VARCHAR, and generated columns when rows are written, but its error
names no record, and quotes the row. Conditions on fields inside columns, and of unknown features, are left to it.

The log has the value of a partition column as a text, of which an empty one means null ("Partition Value Serialization"
in PROTOCOL.md): an empty STRING or BINARY would come back as NULL. So does Spark's name of a folder for NULL, and a
BINARY that is no UTF-8 comes back as another one; a zero byte is in no folder's name. Delta writes such rows without an
error (docs/adr/052).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pyspark.sql import types as T

from bridge.schema import RowConstraint, quote

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""Spark takes this text for NULL, too."""

_CHECK = "delta.constraints."
GENERATED = "delta.generationExpression"
_IDENTITY = "delta.identity.allowExplicitInsert"
_TEXT = "__CHAR_VARCHAR_TYPE_STRING"
_LENGTH = re.compile(r"(?:var)?char\((\d+)\)", re.IGNORECASE)


def row_constraints(
    schema: T.StructType, properties: Mapping[str, str], partitioned_by: Collection[str] = ()
) -> tuple[RowConstraint, ...]:
    """The constraints of a table whose columns are as its log describes them, in the order of the columns; then the
    CHECK constraints by their names."""
    columns = [constraint for f in schema.fields for constraint in _of_column(f, f.metadata or {})]
    partitions = {name.lower() for name in partitioned_by}
    columns += [c for f in schema.fields if f.name.lower() in partitions for c in _of_partition(f)]
    checks = sorted((n.removeprefix(_CHECK), sql) for n, sql in properties.items() if n.startswith(_CHECK))
    named = [
        RowConstraint(sql, f"the row breaks the constraint {name!r} of the table: CHECK ({sql})")
        for name, sql in checks
    ]
    return (*columns, *named)


def identity_columns(schema: T.StructType) -> dict[str, bool]:
    """The identity columns of a table as its log describes it, and whether a writer may give their values."""
    marks = {f.name: f.metadata or {} for f in schema.fields}
    return {name: bool(about[_IDENTITY]) for name, about in marks.items() if _IDENTITY in about}


def _of_column(column: T.StructField, marks: Mapping[str, Any]) -> Iterator[RowConstraint]:
    name, value = column.name, quote(column.name)
    if not column.nullable:
        reason = f"column {name!r} is NOT NULL in the table, and the row has no value for it"
        yield RowConstraint(f"{value} IS NOT NULL", reason, not_null=name)
    length = _LENGTH.fullmatch(str(marks.get(_TEXT, "")))
    if length is not None and length[0].lower().startswith("var"):
        longest = f"{value} IS NULL OR length({value}) <= {length[1]}"
        yield RowConstraint(
            longest, f"column {name!r} is {length[0].upper()} in the table, and the value is longer"
        )
    elif (
        length is not None
    ):  # a shorter one would be stored with spaces: another value, and in a key another row
        exact = f"{value} IS NULL OR length({value}) = {length[1]}"
        reason = (
            f"column {name!r} is {length[0].upper()} in the table, and the value has another length; Delta would add "
            f"spaces to a shorter one (VARCHAR({length[1]}) keeps every value)"
        )
        yield RowConstraint(exact, reason, padded=name)
    if GENERATED in marks:
        expression = str(marks[GENERATED])
        reason = f"column {name!r} is GENERATED ALWAYS AS ({expression}) in the table, and the row has another value"
        yield RowConstraint(f"{value} <=> ({expression})", reason)


def _of_partition(column: T.StructField) -> Iterator[RowConstraint]:
    name, text = column.name, f"CAST({quote(column.name)} AS STRING)"
    if not isinstance(column.dataType, T.StringType | T.BinaryType):
        return
    type = column.dataType.typeName().upper()

    def holds(condition: str, otherwise: str) -> RowConstraint:
        reason = (
            f"column {name!r} is a partition column of the table, {otherwise}; send another value, or let the table "
            "have no partitions (CLUSTER BY keeps every value)"
        )
        return RowConstraint(f"{quote(name)} IS NULL OR {condition}", reason, partition=name)

    yield holds(f"length({quote(name)}) > 0", f"where Delta takes an empty {type} for NULL")
    yield holds(f"{text} <> '{NULL_FOLDER}'", f"where {NULL_FOLDER} is NULL")
    yield holds(f"NOT contains({text}, chr(0))", f"where a {type} with a zero byte has no folder")
    if isinstance(column.dataType, T.BinaryType):
        yield holds(f"is_valid_utf8({text})", "where Delta keeps only a BINARY that is UTF-8")
