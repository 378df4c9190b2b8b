"""Tables for the tests: DDL texts made from columns and options, parsed by the bridge."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.ddl import Ddl, parse

UPSERT = {
    "connector": "upsert-kafka",
    "topic": "t",
    "properties.bootstrap.servers": "localhost:9092",
    "key.format": "json",
    "value.format": "json",
}
KAFKA = {"connector": "kafka", "topic": "t", "properties.bootstrap.servers": "localhost:9092"}
COLUMNS = "region STRING, view_count BIGINT"
KEYED = f"{COLUMNS}, PRIMARY KEY (region) NOT ENFORCED"


def text(columns: str, options: Mapping[str, str]) -> str:
    """A CREATE TABLE statement."""
    pairs = ",\n".join(f"  '{k}' = '{v}'" for k, v in options.items())
    return f"CREATE TABLE clicks (\n  {columns}\n) WITH (\n{pairs}\n)"


def upsert(columns: str = KEYED, **more: str) -> Ddl:
    """An upsert-kafka table; `sink__parallelism` is the option `sink.parallelism`."""
    return parse(text(columns, {**UPSERT, **_keys(more)}))


def kafka(columns: str = COLUMNS, **more: str) -> Ddl:
    """A kafka table without a format."""
    return parse(text(columns, {**KAFKA, **_keys(more)}))


def _keys(more: Mapping[str, str]) -> dict[str, str]:
    return {key.replace("__", ".").replace("_", "-"): value for key, value in more.items()}
