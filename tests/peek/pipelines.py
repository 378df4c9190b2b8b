"""Pipeline files for a topic, without a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bridge import config
from bridge.definition import Definition, FormatSpec
from tests.config.files import pipeline_text

COLUMNS = "id BIGINT, name STRING, amount DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED"


def write(
    folder: Path,
    topic: str,
    *,
    servers: str = "localhost:9",
    columns: str = COLUMNS,
    sections: str = "",
    **options: str | None,
) -> Path:
    """A pipeline file; `options` are those of WITH with `__` for `.` and `_` for `-`, None takes one away."""
    made: dict[str, str | None] = {"topic": topic, "properties.bootstrap.servers": servers}
    made |= {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    file = folder / "peek.yaml"
    file.write_text(pipeline_text(columns, made, name="peeked", sections=sections))
    return file


def definition(folder: Path, topic: str = "orders", **more: Any) -> Definition:
    """The same, loaded."""
    return config.load(write(folder, topic, **more))


def value_spec(folder: Path, format: str, columns: str = "id BIGINT, name STRING", **more: str) -> FormatSpec:
    """The value format of a pipeline without a key."""
    options: dict[str, Any] = {"connector": "kafka", "key__format": None, "value__format": None}
    return definition(folder, columns=columns, **{**options, "format": format, **more}).topic.value
