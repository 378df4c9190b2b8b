"""Change documents, for Spark's decoders and those of consumers: operations, before images, placeholders, options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bridge.format_rules import json_options
from bridge.format_rules.json_options import JsonOptions, Numbers
from bridge.schema import RowType

PLACEHOLDER = "__debezium_unavailable_value"
"""What Debezium writes for a value that the database left out of a change (Postgres: TOASTed and unchanged)."""


@dataclass(frozen=True)
class Operations:
    """The field of a change document that names its operation, and its values.

    Documents of an operation in `skipped` have no rows and are no error.
    """

    field: str
    insert: tuple[str, ...]
    update: str
    delete: str
    skipped: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """What the tool also writes, and what is no change of a row: the error of such a document names it."""
    truncate: str = ""
    """The one that deletes all rows; empty where the tool has none."""

    @property
    def known(self) -> tuple[str, ...]:
        return (*self.insert, self.update, self.delete, *self.skipped)


DEBEZIUM = Operations("op", ("c", "r"), "u", "d", others=("m",), truncate="t")
OGG = Operations("op_type", ("I",), "U", "D", truncate="T")
CANAL = Operations(
    "type",
    ("INSERT",),
    "UPDATE",
    "DELETE",
    skipped=("CREATE",),
    others=(
        "ALTER",
        "CINDEX",
        "DINDEX",
        "ERASE",
        "GTID",
        "QUERY",
        "RENAME",
        "XACOMMIT",
        "XAROLLBACK",
    ),
    truncate="TRUNCATE",
)
MAXWELL = Operations(
    "type",
    ("insert",),
    "update",
    "delete",
    others=(
        *(
            "bootstrap-start",
            "bootstrap-insert",
            "bootstrap-complete",
            "table-create",
            "table-alter",
            "table-drop",
        ),
        *("database-create", "database-alter", "database-drop"),
    ),
)


def before_image_type(row: RowType, key: Sequence[str]) -> RowType:
    """Return the fields of `row` to read of a before image, in its order: those of `key`, or all without a key."""
    key_fields = tuple(f for f in row.fields if f.name in key)
    return RowType(key_fields) if key_fields else row


def null_is_not_absent(row: RowType, before: RowType) -> bool:
    """Return whether a null field of Canal's and Maxwell's `old` may mean something else than an absent one.

    A key of one column, and columns that are NOT NULL, were not null.
    """
    return before == row or (len(before.fields) > 1 and any(f.type.nullable for f in before.fields))


@dataclass(frozen=True)
class CdcOptions:
    """Flink's keys with `_` for `-` and `.`; `json` are the options by which fields are read and written."""

    json: JsonOptions
    schema_include: bool = False
    database_include: str | None = None
    table_include: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> CdcOptions:
        """Read `options`: keys without the format's prefix, typed as format_options.py declares them."""
        return cls(
            replace(JsonOptions.of(options), numbers=Numbers.TREES),
            schema_include=options.get("schema-include", False),
            database_include=options.get("database.include"),
            table_include=options.get("table.include"),
        )


def check_document(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    """Raise what a decoder or an encoder would for `row` and `options` (see DeclaredFormat.rules)."""
    json_options.check(format, row)
    CdcOptions.of(options)
