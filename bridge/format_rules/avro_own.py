"""The Avro schema of the table itself: the one that is given, or the one that Flink derives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bridge.format_rules.avro_derive import check, derive
from bridge.format_rules.avro_given import given
from bridge.format_rules.avro_schema import Node, parse
from bridge.schema import RowField, RowType, ScalarType

__all__ = ["CONFLUENT", "DEBEZIUM", "bare", "envelope", "event", "framed"]

CONFLUENT = "avro-confluent"
DEBEZIUM = "debezium-avro-confluent"
_MISMATCH = (
    f"Schema provided for '{DEBEZIUM}' format must be a nullable record type with fields 'before', 'after', 'op' and "
    "schema of fields 'before' and 'after' must match the table schema"
)


def bare(row: RowType, options: Mapping[str, Any]) -> Node:
    """Of the format avro. All of these raise what `avro_derive.check` and `given` raise."""
    legacy = bool(options.get("timestamp_mapping.legacy", True))
    check("avro", row, strict_legacy=legacy)
    return parse(json.dumps(derive(row, legacy_timestamps=legacy)), "the table")


def framed(row: RowType, options: Mapping[str, Any]) -> tuple[Node, str]:
    """Of avro-confluent: the schema and its text."""
    check(CONFLUENT, row)
    text = options.get("schema")
    if text is not None:
        words = f"Schema provided for '{CONFLUENT}' format does not match the table schema"
        return given(str(text), row, f"{CONFLUENT}.schema", words), str(text)
    return _written(derive(row, legacy_timestamps=True))


def event(row: RowType, options: Mapping[str, Any]) -> tuple[Node, str]:
    """Of debezium-avro-confluent: the schema of the envelope and its text. The derived one is nullable."""
    check(DEBEZIUM, row)
    whole, text = envelope(row, row), options.get("schema")
    if text is not None:
        return given(str(text), whole, f"{DEBEZIUM}.schema", _MISMATCH), str(text)
    return _written(derive(whole, legacy_timestamps=True, nullable=True))


def envelope(row: RowType, before: RowType) -> RowType:
    """Debezium's event, as far as it is read and written."""
    return RowType((RowField("before", before), RowField("after", row), RowField("op", ScalarType("STRING"))))


def _written(derived: Any) -> tuple[Node, str]:
    made = json.dumps(derived, ensure_ascii=False, separators=(",", ":"))
    return parse(made, "the table"), made
