"""Pipeline files for the tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bridge import config
from bridge.definition import Definition

DDL = """\
    CREATE TABLE orders (
      id BIGINT, note STRING,
      PRIMARY KEY (id) NOT ENFORCED
    ) WITH (
      'connector' = 'upsert-kafka', 'topic' = 'orders',
      'properties.bootstrap.servers' = '${env:KAFKA:localhost:9092}',
      'key.format' = 'json', 'value.format' = 'json'
    )
"""
HEAD = "version: 1\nname: orders\n"
REST = "delta: {path: lake/orders}\nrun: {checkpoint: work/orders}\n"
WHOLE = f"{HEAD}topic:\n  ddl: |\n{DDL}{REST}"


def pipeline_text(
    columns: str = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED",
    options: Mapping[str, str | None] | None = None,
    *,
    name: str = "orders",
    delta: str = "path: table",
    run: str = "checkpoint: checkpoint",
    sections: str = "",
) -> str:
    """A pipeline file of a table `t`; `options` are added to those of an upsert topic of JSON, and None removes one."""
    upsert = {"connector": "upsert-kafka", "topic": "t", "properties.bootstrap.servers": "h:1"}
    given = {**upsert, "key.format": "json", "value.format": "json", **(options or {})}
    shown = ", ".join(f"'{k}' = '{v}'" for k, v in given.items() if v is not None)
    return (
        f"version: 1\nname: {name}\ntopic:\n  ddl: |\n    CREATE TABLE t ({columns}) WITH ({shown})\n"
        f"delta: {{{delta}}}\nrun: {{{run}}}\n{sections}"
    )


def loaded(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> Definition:
    """Write `text` as orders.yaml and load it, with an environment of its own."""
    file = folder / "orders.yaml"
    file.write_text(text, encoding="utf-8")
    return config.load(file, environ=environ or {})


def upsert_file(columns: str, format: str) -> str:
    """A pipeline file of an upsert topic whose keys and values have this format."""
    option = ", '{0}.format' = '{1}'"
    if "confluent" in format:
        option += ", '{0}.avro-confluent.url' = 'http://r:1'"
    ddl = f"""\
    CREATE TABLE orders ({columns}) WITH (
      'connector' = 'upsert-kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'localhost:9092'
      {option.format("key", format)}{option.format("value", format)}
    )
"""
    return f"{HEAD}topic:\n  ddl: |\n{ddl}{REST}"
