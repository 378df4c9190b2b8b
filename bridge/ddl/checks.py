"""Checks of the primary key and the watermark, which require all columns of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bridge.ddl.cursor import Cursor, nearest
from bridge.ddl.tokens import Token
from bridge.schema import DataType, MetadataColumn, PhysicalColumn, ScalarType

__all__ = ["check_key", "check_watermark"]


def check_key(c: Cursor, key: Iterable[Token], columns: Mapping[str, object]) -> None:
    """Raises DdlError unless the primary key consists of different physical columns."""
    seen = set()
    for token in key:
        column = columns.get(token.text)
        if column is None:
            c.fail(f"the primary key names {_unknown(token, columns)}", token)
        if not isinstance(column, PhysicalColumn):
            kind = "a metadata column" if isinstance(column, MetadataColumn) else "a computed column"
            c.fail(f"a primary key consists of physical columns; `{token.text}` is {kind}", token)
        if token.text in seen:
            c.fail(f"the primary key names `{token.text}` twice", token)
        seen.add(token.text)


def check_watermark(
    c: Cursor, token: Token, columns: Mapping[str, object], types: Mapping[str, DataType]
) -> None:
    """Raises DdlError if the watermark's column does not exist or is not a timestamp.

    All precisions are accepted, since Flink's manuals declare plain TIMESTAMP. Spark derives the types of computed
    columns, so they are not checked.
    """
    if token.text not in columns:
        c.fail(f"the watermark names {_unknown(token, columns)}", token)
    type = types.get(token.text)
    is_time = isinstance(type, ScalarType) and type.name in ("TIMESTAMP", "TIMESTAMP_LTZ")
    if type is not None and not is_time:
        c.fail(
            f"a watermark requires a column TIMESTAMP or TIMESTAMP_LTZ; `{token.text}` is {type.flink()}",
            token,
        )


def _unknown(token: Token, columns: Iterable[str]) -> str:
    return f"`{token.text}`, which is not a column; {nearest(token.text, columns)}"
