"""Finds pipeline files, scripts and jobs, and the pipelines in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from bridge import config
from bridge.cdc_jobs import is_job, load_job
from bridge.cli.script_pipelines import is_script
from bridge.errors import DefinitionError
from bridge.metrics.monitoring import Monitoring
from bridge.pages.pipeline_line import Watched
from bridge.pages.watch import File
from bridge.sql import Script, load_script

_KEYS = {"topic", "delta", "source", "sink"}


def watched_files(names: Sequence[str]) -> list[File]:
    """The files of these names; without names those of the working folder that are, or are meant to be, pipeline files,
    scripts or jobs. Raises DefinitionError where that has none."""
    if not names:
        names = [
            p.name for p in sorted(Path().iterdir()) if p.suffix in (".yaml", ".yml", ".sql") and _is_meant(p)
        ]
    if not names:
        raise DefinitionError(
            f"no pipeline file, script or job in {Path.cwd()}; name some: bridge top FILE..."
        )
    return [File(name, lambda name=name: _pipelines(name)) for name in dict.fromkeys(names)]  # type: ignore[misc]


def _is_meant(path: Path) -> bool:
    """Whether it is not some other YAML. One that cannot be read is shown with the reason."""
    if path.suffix == ".sql":
        return True
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader)
    except (OSError, ValueError, yaml.YAMLError):
        return True
    return isinstance(root, yaml.MappingNode) and bool(_KEYS & {str(key.value) for key, _ in root.value})


def _pipelines(name: str) -> list[Watched]:
    if is_script(name):
        script = load_script(name)
        return _of_script(script, script.name, None)
    if not is_job(name):
        return [Watched(config.load(name))]
    job = load_job(name)
    lease, run = (job.folder, "job"), (job.name, "run")
    found = [Watched(sent, ("publish",), job.monitoring, lease, run) for sent in job.publishes]
    return [
        *found,
        *(_of_script(job.script, job.name, (job.folder, "job"), job.monitoring) if job.script else []),
    ]


def _of_script(
    script: Script, run: str, lease: tuple[str, str] | None, monitoring: Monitoring | None = None
) -> list[Watched]:
    """The ingests of its topics and the publishes of its results: one run has all of them, and one lease."""
    from bridge.pipelines.scripts.state import ScriptState

    state = ScriptState(script)
    lease, monitoring = lease or (state.folder, "script"), monitoring or script.monitoring
    ingests = [state.ingest(state.tables[source.name]) for source in script.sources]
    return [
        *(Watched(d, ("ingest",), monitoring, lease, (run, "run")) for d in ingests if d is not None),
        *(Watched(d, ("publish",), monitoring, lease, (run, "run")) for d in state.publishes.values()),
    ]
