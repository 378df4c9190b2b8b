"""Pipeline files for a topic, without a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bridge import config
from bridge.definition import Definition, FormatSpec

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
    made: dict[str, str | None] = {
        "connector": "upsert-kafka",
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "key.format": "json",
        "value.format": "json",
    }
    made |= {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    shown = ", ".join(f"'{name}' = '{value}'" for name, value in made.items() if value is not None)
    file = folder / "peek.yaml"
    file.write_text(
        f"version: 1\nname: peeked\ntopic:\n  ddl: |\n    CREATE TABLE t ({columns}) WITH ({shown})\n"
        f"delta: {{path: table}}\nrun: {{checkpoint: checkpoint}}\n{sections}"
    )
    return file


def definition(folder: Path, topic: str = "orders", **more: Any) -> Definition:
    """The same, loaded."""
    return config.load(write(folder, topic, **more))


def value_spec(folder: Path, format: str, columns: str = "id BIGINT, name STRING", **more: str) -> FormatSpec:
    """The value format of a pipeline without a key."""
    options: dict[str, Any] = {"connector": "kafka", "key__format": None, "value__format": None}
    return definition(folder, columns=columns, **{**options, "format": format, **more}).topic.value
