"""Finds what is wrong with a Databricks asset bundle whose tasks are commands of the bridge.

The legal keys are those of its schema that a bundle here uses; another one is a mistake in writing, or needs a check
here. `test_databricks` compares them with Databricks' own models where it can install them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from bridge import config
from bridge.backend.compute import COMPUTES, USES, Shown
from bridge.definition import Definition
from bridge.errors import BridgeError
from bridge.partitioners import TASK_FREE
from tests.docs.commands import COMMANDS

ROOT = Path(__file__).parents[1]
KEYS = {
    "bundle": {"bundle", "variables", "artifacts", "sync", "resources", "targets"},
    "variable": {"description", "default"},
    "job": {
        "name",
        "max_concurrent_runs",
        "email_notifications",
        "schedule",
        "job_clusters",
        "environments",
        "tasks",
    },
    "environment": {"environment_key", "spec"},
    "spec": {"environment_version", "dependencies"},
    "schedule": {"quartz_cron_expression", "timezone_id"},
    "cluster": {"job_cluster_key", "new_cluster"},
    "new_cluster": {
        "spark_version",
        "node_type_id",
        "num_workers",
        "data_security_mode",
        "spark_conf",
    },
    "task": {
        "task_key",
        "depends_on",
        "job_cluster_key",
        "environment_key",
        "disable_auto_optimization",
        "max_retries",
        "timeout_seconds",
        "spark_python_task",
        "libraries",
    },
    "script": {"python_file", "parameters"},
    "target": {"mode", "default", "variables", "workspace", "resources"},
}
SERVERLESS = next(compute for compute in COMPUTES if compute.title == "Databricks, serverless")
ON_THE_COMMAND_LINE = {"kafka"}
"""Variables whose value the user gives with `--var`."""
OTHERS = {
    "workspace.file_path": str(ROOT),
    "workspace.current_user.userName": "someone@example.com",
    "bundle.name": "changelog_bridge",
    "bundle.target": "dev",
}
_REFERENCE = re.compile(r"\$\{([^}]+)\}")


def problems(bundle: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """What is wrong with a bundle whose databricks.yml is in this folder, one text each."""
    yield from _unknown("bundle", bundle, "bundle")
    used = set(_REFERENCE.findall(str({**bundle, "variables": None})))
    variables = bundle["variables"]
    for name, variable in variables.items():
        yield from _unknown("variable", variable, name)
        if f"var.{name}" not in used:
            yield f"variable {name} is not used"
    for name in sorted(used - {f"var.{name}" for name in variables} - OTHERS.keys()):
        yield f"${{{name}}} is not declared"
    for target, found in bundle["targets"].items():
        yield from _unknown("target", found, target)
        yield from (f"{target} sets {n}, no variable" for n in found["variables"].keys() - variables.keys())
        values = values_of(bundle, target)
        missing = variables.keys() - values.keys()
        yield from (f"{target} has no value of {name}" for name in sorted(missing))
        if not missing:
            for key, job in jobs_of(bundle, target).items():
                yield from _of_job(key, job, values, bundle, folder)


def jobs_of(bundle: Mapping[str, Any], target: str) -> dict[str, dict[str, Any]]:
    """The jobs as a target deploys them: with its settings, and those of the tasks with the same keys."""
    found = dict(bundle["resources"]["jobs"])
    for key, more in bundle["targets"][target]["resources"]["jobs"].items():
        tasks = {task["task_key"]: task for task in found.get(key, {}).get("tasks", ())}
        for task in more["tasks"]:
            tasks[task["task_key"]] = {**tasks.get(task["task_key"], {}), **task}
        found[key] = {**found.get(key, {}), **more, "tasks": list(tasks.values())}
    return found


def values_of(bundle: Mapping[str, Any], target: str) -> dict[str, str]:
    """The values of the variables in a target."""
    defaults = {name: v["default"] for name, v in bundle["variables"].items() if "default" in v}
    given = dict.fromkeys(ON_THE_COMMAND_LINE, "broker:9093")
    return {**defaults, **given, **bundle["targets"][target]["variables"]}


def resolved(text: str, values: Mapping[str, str]) -> str:
    known = {**OTHERS, **{f"var.{name}": value for name, value in values.items()}}
    return _REFERENCE.sub(lambda match: known.get(match[1], match[0]), text)


def _of_job(
    key: str, job: Mapping[str, Any], values: Mapping[str, str], bundle: Mapping[str, Any], folder: Path
) -> Iterator[str]:
    yield from _unknown("job", job, key)
    yield from _unknown("schedule", job["schedule"], key)
    if job["max_concurrent_runs"] != 1:
        yield f"{key}: two runs at once"
    for cluster in job.get("job_clusters", ()):
        yield from _unknown("cluster", cluster, key)
        yield from _unknown("new_cluster", cluster["new_cluster"], key)
        if cluster["new_cluster"]["data_security_mode"] != "SINGLE_USER":
            yield f"{key}: compute without dedicated access mode"
    wheels = [str(folder / artifact["path"] / "dist" / "*.whl") for artifact in bundle["artifacts"].values()]
    installed = {c["job_cluster_key"]: None for c in job.get("job_clusters", ())}
    for environment in job.get("environments", ()):
        yield from _unknown("environment", environment, key)
        yield from _unknown("spec", environment["spec"], key)
        installed[environment["environment_key"]] = environment["spec"]["dependencies"]
    before: set[str] = set()
    for task in job["tasks"]:
        where = f"{key}.{task['task_key']}"
        yield from _unknown("task", task, where)
        yield from (
            f"{where} depends on {other['task_key']}, which no task before it is"
            for other in task.get("depends_on", ())
            if other["task_key"] not in before
        )
        before.add(task["task_key"])
        serverless = "environment_key" in task
        kind, place = ("environment", "environment_key") if serverless else ("cluster", "job_cluster_key")
        if task.get(place) not in installed:
            yield f"{where}: no {kind} {task.get(place)}"
            continue
        if serverless and (twice := task.keys() & {"job_cluster_key", "libraries"}):
            yield f"{where} is on serverless compute, which takes no {', '.join(sorted(twice))}"
        if serverless and not task.get("disable_auto_optimization"):
            yield f"{where}: serverless compute repeats it whatever its exit code"
        libraries = installed[task[place]] or [library["whl"] for library in task.get("libraries", ())]
        if [str(folder / library) for library in libraries] != wheels:
            yield f"{where} does not install the wheel that the bundle builds"
        run = task["spark_python_task"]
        yield from _of_script(where, run, values, bundle["sync"]["paths"], folder, serverless=serverless)


def _of_script(
    where: str,
    run: Mapping[str, Any],
    values: Mapping[str, str],
    synced: list[str],
    folder: Path,
    *,
    serverless: bool,
) -> Iterator[str]:
    yield from _unknown("script", run, where)
    script = (folder / run["python_file"]).resolve()
    if not script.is_file() or script.parent != ROOT / "jobs":
        yield f"{where}: no script {run['python_file']}"
        return
    words = [resolved(str(word), values) for word in run["parameters"]]
    verb = words.pop(0) if script.stem == "run" else script.stem
    if verb not in COMMANDS:
        yield f"{where}: bridge has no verb {verb}"
        return
    try:
        with COMMANDS[verb].make_context(verb, words) as context:
            taken = dict(context.params)
            file = Path((taken.get("files") or [taken["file"]])[0])
            places = [script, file]
            # As the command loads it; the environment of this process has none of the values.
            environ = dict(pair.split("=", 1) for pair in taken["env"])
            definition = config.load(file, environ=environ, secrets=_secret)
    except (typer.BadParameter, BridgeError, SystemExit) as refused:
        yield f"{where}: {refused}"
        return
    except Exception as refused:  # click's own, which typer does not export
        yield f"{where}: {getattr(refused, 'message', None) or refused}"
        return
    if definition.run.trigger_seconds is not None:
        yield f"{where}: `run.trigger` is not available-now: the task never ends"
    if serverless:
        yield from (
            f"{where} on serverless compute: {why}" for why in refused_on_serverless(verb, definition)
        )
    roots = [(folder / path).resolve() for path in synced]
    yield from (f"{where}: {p} is not synced" for p in places if not any(p.is_relative_to(r) for r in roots))


def refused_on_serverless(verb: str, definition: Definition) -> Iterator[str]:
    """What of a command is a `no` in the table of docs/databricks.md, or said below it."""
    uses = [use for use in USES if re.search(rf"`{verb}\b", use.verb)]
    refused = [use for use in uses if use.shown(SERVERLESS) is Shown.REFUSED]
    if uses == refused:
        yield f"`{verb}` is refused"
    if f"`reader: {definition.reader.value}`" in {use.options for use in refused if verb == "ingest"}:
        yield f"`reader: {definition.reader.value}` is refused"
    if definition.run.state is None:
        yield "`run.state` names no table"
    sink = definition.topic.sink
    if verb == "publish" and (sink.parallelism is not None or sink.partitioner not in TASK_FREE):
        yield "'sink.parallelism' and partitioners that count tasks are refused"


def _secret(scope: str, key: str) -> str:
    assert (scope, key) == ("kafka", "jaas")
    return "org.apache.kafka.common.security.plain.PlainLoginModule required username=u password=p;"


def _unknown(kind: str, found: Mapping[str, Any], where: str) -> Iterator[str]:
    yield from (f"{where}: no key {key}" for key in sorted(found.keys() - KEYS[kind]))
