"""Defines `bridge run`, which runs a script in Flink SQL, or a job of Flink CDC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bridge import cdc_jobs, sql
from bridge.cdc_jobs import Job
from bridge.cli import process
from bridge.cli.arguments import Conf, Env, LogFormat, Master, Metrics, Quiet, ScriptFile, seconds
from bridge.cli.process import metrics_shown
from bridge.cli.script_pipelines import is_script
from bridge.console import Screen, duration
from bridge.errors import DefinitionError
from bridge.sql import Script

if TYPE_CHECKING:
    from bridge.pipelines.scripts.run import ScriptSummary


_What = TypeVar("_What", Script, Job)


def run(
    file: ScriptFile,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="INTERVAL", help="Continue until Ctrl-C, with this pause when nothing is new: 10s."
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Print what each INSERT reads, keeps and sends, without running it."),
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Compute all results again, after a query changed; only differences are sent."
        ),
    ] = False,
    quiet: Quiet = False,
    metrics: Metrics = None,
    log_format: LogFormat = "text",
    master: Master = None,
    env: Env = None,
    conf: Conf = None,
) -> None:
    """Run the INSERTs of a script in Flink SQL, from topics to topics through Delta tables; or a job of Flink CDC.

    Ends when the sources have nothing new; with --every it runs until Ctrl-C, which lets the
    current batch commit first. A run that was killed continues where it was.
    """
    job = cdc_jobs.is_job(file)
    if not job and not is_script(file):
        raise DefinitionError(
            f"{file} is neither a script, whose name ends in .sql, nor a job of Flink CDC, which has source and sink; "
            "run a pipeline file with its verb"
        )
    pause = seconds("--every", every)
    screen = Screen(quiet=quiet)
    if job:
        _run_job(
            screen, _with_metrics(cdc_jobs.load_job(file), metrics), explain, pause, rebuild, master, conf
        )
        return
    script = _with_metrics(sql.load_script(file), metrics)
    from bridge.pipelines.scripts.explain import explain_script

    if explain:
        screen.table(f"{script.name}: plan", explain_script(script))
        return
    if not script.inserts:
        raise DefinitionError(f"{file}: the script has no INSERT, so there is nothing to run")
    _run_script(screen, script, pause, rebuild, master, conf)


def _run_job(
    screen: Screen,
    job: Job,
    explain: bool,
    pause: float | None,
    rebuild: bool,
    master: str | None,
    conf: list[str] | None,
) -> None:
    from bridge.pipelines.scripts.explain import explain_script

    if explain:
        planned = {} if job.script is None else explain_script(job.script)
        screen.table(f"{job.name}: plan", {**cdc_jobs.as_rows(job), **planned})
        return
    from bridge.pipelines.cdc_jobs.run import run_job

    _run(
        screen, job, job.paths, partial(run_job, job=job, every_seconds=pause, rebuild=rebuild), master, conf
    )


def _run_script(
    screen: Screen,
    script: Script,
    pause: float | None,
    rebuild: bool,
    master: str | None,
    conf: list[str] | None,
) -> None:
    from bridge.pipelines.scripts.explain import used_paths
    from bridge.pipelines.scripts.run import run_script

    run = partial(run_script, script=script, every_seconds=pause, rebuild=rebuild)
    _run(screen, script, used_paths(script), run, master, conf)


def _run(
    screen: Screen,
    what: Script | Job,
    paths: Sequence[str | None],
    run: Callable[..., ScriptSummary],
    master: str | None,
    conf: list[str] | None,
) -> None:
    with (
        process.spark_session(screen, what.name, what.warnings, paths, master, conf) as spark,
        process.stop_signals(screen) as stop,
        metrics_shown(screen, [what.monitoring]),
        screen.busy(f"running {what.name}"),
    ):
        summary = run(spark, listener=screen.batch, stop=stop)
    screen.table(f"run {what.name}: {'stopped' if stop.is_set() else 'done'}", _rows(summary))


def _with_metrics(what: _What, target: str | None) -> _What:
    return replace(what, monitoring=what.monitoring.with_metrics(target))


def _rows(summary: ScriptSummary) -> dict[str, str]:
    rows = {"rounds": f"{summary.rounds:,}", "time": duration(summary.seconds)}
    for (verb, name), total in summary.pipelines.items():
        counts = f"+I {total.inserted:,}  +U {total.updated:,}  -D {total.deleted:,}"
        if verb == "ingest":
            counts = f"{total.records_in:,} records  {counts}"
        elif verb == "publish":
            counts = f"{total.records_out:,} records, {total.tombstones:,} of them tombstones"
        rows[f"{verb} {name}"] = counts
    return rows
