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
