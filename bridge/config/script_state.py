"""Where the state of a script in Flink SQL is, and of a job of Flink CDC, which is a script in part."""

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
