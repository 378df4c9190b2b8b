"""Pipeline files whose topics and tables tests choose."""

from __future__ import annotations

from pathlib import Path

from bridge import config
from bridge.definition import Definition
from tests.config.files import pipeline_text

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
    options = {"topic": topic, "properties.bootstrap.servers": servers}
    columns, checkpoint = "id BIGINT, PRIMARY KEY (id) NOT ENFORCED", f"checkpoint: checkpoint-{name}{run}"
    file.write_text(
        pipeline_text(columns, options, name=name, delta=delta, run=checkpoint, sections=sections)
    )
    return config.load(file)
