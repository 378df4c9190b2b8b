"""Documents that have none of the fields they are read for: all their values would be NULL (docs/adr/060).

As a key, such documents would all be one row. As a value, they may be what Kafka Connect's JsonConverter writes with
`schemas.enable=true`: `{"schema": …, "payload": …}`, with the row in `payload`.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.format_rules.json_options import CONNECT_ENVELOPE
from bridge.formats.sql import literal, member, null
from bridge.schema import RowType

_EMPTY = r"^\s*\{\s*\}\s*$"
_IS_ENVELOPE = (
    'it looks like the envelope of Kafka Connect, {"schema": ..., "payload": ...}, whose row is in \'payload\': set '
    "'{converter}.schemas.enable' to false in the connector and write the topic anew"
)


def may_be_foreign(text: str, parsed: str, row: RowType, key: Sequence[str]) -> str:
    """Return SQL that is true where `foreign_or_null` may be an error: `parsed` is the struct that Spark reads."""
    names = tuple(key) or row.names
    if not names:
        return "FALSE"
    missing = " AND ".join(f"{member(parsed, name)} IS NULL" for name in names)
    return f"({missing})" if key else f"({missing} AND {text} RLIKE {literal(CONNECT_ENVELOPE)})"


def foreign_or_null(
    marked: str, plain: str, row: RowType, key: Sequence[str], *, nulls_left_out: bool
) -> str:
    """Return SQL of the error of an object that has none of the fields `key`, or none of `row`'s and is an envelope.

    `marked` are the object's fields (see full_decode), null where there is none; `plain` is its text. An explicit null
    is a value. Where nulls are left out of what is written, {} is the object of nulls.
    """
    names = tuple(key) or row.names
    if not names:
        return null("STRING")
    missing = " AND ".join(f"{member(marked, chr(1) + name)} IS NULL" for name in names)
    envelope = f"{plain} RLIKE {literal(CONNECT_ENVELOPE)}"
    listed = ", ".join(f"'{name}'" for name in names)
    converter = "key.converter" if key else "value.converter"
    hint = _IS_ENVELOPE.replace("{converter}", converter)
    as_envelope = f"WHEN {envelope} THEN {literal(f'the document has none of the fields {listed}: {hint}')}"
    if not key:
        return f"CASE WHEN {missing} THEN CASE {as_envelope} END END"
    reason = literal(
        f"the document has none of the key's fields {listed} (fields are matched by their exact names, as in Flink)"
    )
    left_out = f"WHEN {plain} RLIKE {literal(_EMPTY)} THEN NULL " if nulls_left_out else ""
    return f"CASE WHEN {missing} THEN CASE {left_out}{as_envelope} ELSE {reason} END END"
