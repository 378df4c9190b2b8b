"""What Spark's decoders and those of consumers know of change documents: operations, before images, placeholders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

    @property
    def known(self) -> tuple[str, ...]:
        return (*self.insert, self.update, self.delete, *self.skipped)


DEBEZIUM = Operations("op", ("c", "r"), "u", "d", others=("t", "m"))
OGG = Operations("op_type", ("I",), "U", "D", others=("T",))
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
        "TRUNCATE",
        "XACOMMIT",
        "XAROLLBACK",
    ),
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
