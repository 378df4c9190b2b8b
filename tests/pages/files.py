"""Pipeline files whose topics and tables tests choose."""

from __future__ import annotations

from pathlib import Path

from bridge import config
from bridge.definition import Definition

NOBODY = "127.0.0.1:1"
"""An address at which no broker answers."""


def pipeline(
    folder: Path,
    name: str = "orders",
    *,
    servers: str = NOBODY,
    topic: str = "orders",
    delta: str = "path: table",
    run: str = "",
    sections: str = "",
) -> Definition:
    """Write a pipeline file and load it."""
    file = folder / f"{name}.yaml"
    file.write_text(
        f"version: 1\nname: {name}\ntopic:\n  ddl: |\n"
        "    CREATE TABLE t (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (\n"
        f"      'connector' = 'upsert-kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}',\n"
        "      'key.format' = 'json', 'value.format' = 'json')\n"
        f"delta: {{{delta}}}\nrun: {{checkpoint: checkpoint-{name}{run}}}\n{sections}"
    )
    return config.load(file)
