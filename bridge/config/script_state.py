"""Where the state of a script or job is, and tables beside that of a pipeline: its name or path and a suffix."""

from __future__ import annotations

from dataclasses import replace

from bridge.bridge_folders import SCRIPT_STATE, safe_name
from bridge.config.paths import resolved_path
from bridge.config.storage_locations import default_suite
from bridge.definition import Definition, DeltaTarget, Quality
from bridge.metrics.monitoring import Monitoring


def state_of(base: str, state: str | None, name: str) -> str:
    """Returns the folder of all state of the script `name`; `state` is `bridge.state` as it is written."""
    return f"{resolved_path(base, state or SCRIPT_STATE).rstrip('/')}/{safe_name(name)}"


def for_commands(definition: Definition, folder: str, monitoring: Monitoring) -> Definition:
    """Returns a pipeline of a script as commands such as `check` take it: with its suite, expectations/NAME.json beside
    the script, its results in the folder of the script's state, and what the script says of monitoring."""
    quality = Quality(default_suite(definition), DeltaTarget(path=f"{folder}/quality"))
    return replace(definition, quality=quality, run=replace(definition.run, monitoring=monitoring))


def side_table(target: DeltaTarget, suffix: str) -> DeltaTarget:
    """Returns the table whose name or path is that of `target` with `suffix` appended."""
    if target.table is not None:
        return DeltaTarget(table=f"{target.table}{suffix}")
    return DeltaTarget(str(target.path).rstrip("/") + suffix)
