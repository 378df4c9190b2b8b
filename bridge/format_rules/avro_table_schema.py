"""The table's own Avro schema: the one that the option `schema` gives, or the one that Flink derives.

Each function takes the format's name and raises what `avro_derive.check` and `avro_given.given` raise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bridge.format_rules.avro_derive import check, derive
from bridge.format_rules.avro_given import given_schema
from bridge.format_rules.avro_schema import Node, parse
from bridge.schema import RowField, RowType, ScalarType


def derived_schema(format: str, row: RowType, options: Mapping[str, Any]) -> Node:
    """Return the schema of documents without framing, which Flink always derives."""
    legacy = bool(options.get("timestamp_mapping.legacy", True))
    check(format, row, strict_legacy=legacy)
    return parse(json.dumps(derive(row, legacy_timestamps=legacy)), "the table")


def framed_schema(format: str, row: RowType, options: Mapping[str, Any]) -> tuple[Node, str]:
    """Return the schema of documents in Confluent's framing, and its text."""
    check(format, row)
    text = options.get("schema")
    if text is not None:
        mismatch = f"Schema provided for '{format}' format does not match the table schema"
        return given_schema(str(text), row, f"{format}.schema", mismatch), str(text)
    return _with_text(derive(row, legacy_timestamps=True))


def event_schema(format: str, row: RowType, options: Mapping[str, Any]) -> tuple[Node, str]:
    """Return the schema of Debezium's event in Confluent's framing, and its text. A derived one is nullable."""
    check(format, row)
    whole, text = envelope(row, row), options.get("schema")
    if text is not None:
        mismatch = (
            f"Schema provided for '{format}' format must be a nullable record type with fields 'before', 'after', 'op' "
            "and schema of fields 'before' and 'after' must match the table schema"
        )
        return given_schema(str(text), whole, f"{format}.schema", mismatch), str(text)
    return _with_text(derive(whole, legacy_timestamps=True, nullable=True))


def envelope(row: RowType, before: RowType) -> RowType:
    """Return the fields of Debezium's event that are read and written."""
    return RowType((RowField("before", before), RowField("after", row), RowField("op", ScalarType("STRING"))))


def _with_text(derived: Any) -> tuple[Node, str]:
    text = json.dumps(derived, ensure_ascii=False, separators=(",", ":"))
    return parse(text, "the table"), text
