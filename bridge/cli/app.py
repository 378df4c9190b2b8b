"""Defines the command line: one verb per operation on a pipeline. The scripts in jobs/ call the same `main`.

Exit codes: 0 success, 1 failure at run time, 2 invalid pipeline file or option, 3 quality check failed, 4 verify found
a difference, 5 no progress.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridge import cdc_jobs, config, sql
from bridge.cli import check_command, kafka_commands, ops_commands, page_commands, process, run_command
from bridge.cli.arguments import (
    Conf,
    Env,
    Every,
    FileOrScript,
    Files,
    Json,
    LogFormat,
    Master,
    Metrics,
    Parallel,
    Quiet,
    seconds,
)
from bridge.cli.many_pipelines import Pipeline, load_all, run_all
from bridge.cli.process import metrics_shown, use_submitted
from bridge.cli.script_pipelines import is_script
from bridge.console import Screen, explanation_rows, range_rows, summary_rows
from bridge.definition import Definition
from bridge.errors import DefinitionError
from bridge.version import own_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bridge.metrics import Listener, Summary


# Verbs import their pipeline after they have read the pipeline file: an invalid file is reported without Spark.

app = typer.Typer(
    name="bridge",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(kafka_commands.app, name="txn")


@app.command()
def ingest(
    files: Files,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Print which files the next batch would rewrite, and why, without applying it."
        ),
    ] = False,
    once: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Apply what this has now, instead of the topic, ordered by delta.sequence-by: topic:NAME, table:PATH, "
            "table:NAME, parquet:PATH, json:PATH or csv:PATH.",
        ),
    ] = None,
    every: Every = None,
    parallel: Parallel = 1,
    quiet: Quiet = False,
    metrics: Metrics = None,
    log_format: LogFormat = "text",
    master: Master = None,
    env: Env = None,
    conf: Conf = None,
) -> None:
    """Apply the records of a topic to its Delta table with MERGE.

    Continues at the offsets that the last run committed to the table. With `trigger: available-now`
    it ends at the topic's end offsets; with an interval it runs until Ctrl-C, which lets the
    current batch commit first.
    """
    pause = seconds("--every", every)
    if once is not None:
        if explain or len(files) > 1 or pause is not None:
            raise DefinitionError(
                "--once is about one file, and what it applies is not explained: give one, without --every and "
                "--explain"
            )

        def backfill(spark: SparkSession, of: Definition, listen: Listener, stop: threading.Event) -> Summary:
            from bridge.pipelines.ingest.once import ingest_once

            return ingest_once(spark, of, once, listener=listen)

        _run("ingest", files, pause, parallel, quiet, metrics, master, conf, backfill)
        return
    if explain:
        from bridge.pipelines.ingest.explain import explain as next_batch

        _explain("batch", files, pause, next_batch, explanation_rows, master, conf)
        return

    def pipeline(spark: SparkSession, of: Definition, listen: Listener, stop: threading.Event) -> Summary:
        from bridge.pipelines.ingest.run import ingest as run

        return run(spark, of, listener=listen, stop=stop)

    _run("ingest", files, pause, parallel, quiet, metrics, master, conf, pipeline)


@app.command()
def publish(
    files: Files,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the next range and what would send it, without sending.")
    ] = False,
    every: Every = None,
    parallel: Parallel = 1,
    quiet: Quiet = False,
    metrics: Metrics = None,
    log_format: LogFormat = "text",
    master: Master = None,
    env: Env = None,
    conf: Conf = None,
) -> None:
    """Send a Delta table's change data feed to a topic, with tombstones for deletes.

    The first run starts at `publish.start` (by default a snapshot of the table); later runs
    continue from there.
    """
    pause = seconds("--every", every)
    if explain:
        from bridge.pipelines.publish.explain import explain as next_range

        _explain("range", files, pause, next_range, range_rows, master, conf)
        return

    def pipeline(spark: SparkSession, of: Definition, listen: Listener, stop: threading.Event) -> Summary:
        from bridge.pipelines.publish.run import publish as run

        return run(spark, of, listener=listen, stop=stop)

    _run("publish", files, pause, parallel, quiet, metrics, master, conf, pipeline)


for _verb in (
    run_command.run,
    check_command.check,
    ops_commands.verify,
    ops_commands.resync,
    ops_commands.replay,
    ops_commands.status,
    ops_commands.doctor,
    ops_commands.peek,
    ops_commands.maintain,
    kafka_commands.topics,
    page_commands.top,
    page_commands.report,
):
    app.command()(_verb)


@app.command()
def validate(file: FileOrScript, json: Json = False, env: Env = None) -> None:
    """Validate a pipeline file, a script in Flink SQL (FILE ends in .sql) or a job of Flink CDC, and print what it
    resolves to.

    Needs neither Kafka nor Spark; a table only for a job that reads Delta tables.
    """
    if is_script(file):
        _validate_script(file, json)
        return
    if cdc_jobs.is_job(file):
        job = cdc_jobs.load_job(file)
        Screen().result(f"{job.name}: accepted", cdc_jobs.as_json(job), json=json, rows=cdc_jobs.as_rows(job))
        return
    screen, definition = Screen(), config.load(file)
    if json:
        screen.json(config.resolved(definition))
        return
    topic = definition.topic
    screen.table(
        f"{definition.name}: accepted",
        {
            "topic": f"{topic.title} at {topic.bootstrap_servers} ({topic.connector})",
            "key": f"{topic.key.name} {topic.key.row.flink()}" if topic.key else "none",
            "value": f"{topic.value.name} {topic.value.row.flink()}",
            "table": str(definition.delta),
            "ingest": config.semantics_text(definition),
            **{f"warning {n}": text for n, text in enumerate(definition.warnings, 1)},
        },
    )


def _validate_script(file: str, json: bool) -> None:
    script = sql.load_script(file)
    title = f"{script.name}: accepted"
    Screen().result(title, sql.as_json(script), json=json, rows=sql.as_rows(script))


@app.command()
def schema() -> None:
    """Print the JSON Schema of pipeline files, for completion and validation in editors."""
    Screen().json(config.json_schema())


@app.command()
def broker(
    folder: Annotated[
        Path, typer.Option(help="Folder for the broker's data, which later runs reuse.")
    ] = Path(".work/broker"),
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.")] = 9092,
    registry: Annotated[bool, typer.Option("--registry", help="Also run a schema registry.")] = False,
    registry_port: Annotated[int, typer.Option(help="Port of the registry on 127.0.0.1.")] = 8081,
) -> None:
    """Run a Kafka broker (KRaft, a single process) on this machine until Ctrl-C.

    It creates a topic when a client first writes to it, as Kafka does by default, with one
    partition and not compacted; `bridge topics FILE --create` creates those of a file.
    """
    from bridge.embedded.broker import Broker
    from bridge.embedded.schema_registry import SchemaRegistryServer

    screen = Screen()
    with ExitStack() as servers:
        with screen.busy("starting Kafka"):
            running = servers.enter_context(
                Broker(folder, port=port, settings={"auto.create.topics.enable": "true"})
            )
        if registry:
            with screen.busy("starting the schema registry"):
                schemas = servers.enter_context(SchemaRegistryServer(folder / "registry", port=registry_port))
            screen.info(f"schema registry: {schemas.url}; its schemas are lost when it stops")
        with process.stop_signals(screen) as stop:
            screen.info(f"Kafka: {running.bootstrap}; its data is in {folder}; press Ctrl-C to stop")
            stop.wait()


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Working folder; its contents are deleted first.")] = Path(
        ".work/demo"
    ),
    script: Annotated[
        bool, typer.Option("--sql", help="Run a script: conf/pageviews.sql, counts of regions in a topic.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run the whole bridge once on this machine: broker, changelog, ingest, publish, check, verify."""
    from bridge.demo import pageviews
    from bridge.demo.run import run
    from bridge.session import build_session

    screen = Screen(quiet=quiet)
    with screen.busy("starting Spark"):
        spark = build_session("bridge demo")
    with process.stop_signals(screen) as stop:
        (pageviews.run if script else run)(spark, folder, screen, stop)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"bridge {own_version()}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Move changelogs between Kafka topics and Delta Lake tables, in both directions, and verify the result.

    \b
    Exit codes: 0 success, 1 failure at run time, 2 invalid pipeline file or option,
    3 quality check failed, 4 verify found a difference, 5 no progress.
    """
    use_submitted(context)


def _explain(
    what: str,
    files: Sequence[str],
    pause: float | None,
    preview: Callable[[SparkSession, Definition], Any],
    rows_of: Callable[[Mapping[str, Any]], Mapping[str, str]],
    master: str | None,
    conf: list[str] | None,
) -> None:
    if len(files) > 1 or pause is not None:
        raise DefinitionError(
            f"--explain is about one file, whose next {what} is not run: give one, without --every"
        )
    screen, definition = Screen(), config.load(files[0])
    with process.session(screen, definition, master, conf) as spark:
        found = preview(spark, definition)
    screen.table(f"next {what} of {definition.name}", rows_of(asdict(found)))


def _run(
    verb: str,
    files: Sequence[str],
    every: float | None,
    parallel: int,
    quiet: bool,
    metrics: str | None,
    master: str | None,
    conf: list[str] | None,
    pipeline: Pipeline,
) -> None:
    """Runs one pipeline, whose errors are those of the command, or several in rounds."""
    if len(files) > 1 or every is not None:
        definitions = load_all(files)
        run_all(
            verb,
            definitions,
            pipeline,
            parallel=parallel,
            every_seconds=every,
            quiet=quiet,
            metrics=metrics,
            master=master,
            conf=conf,
        )
        return
    if parallel > 1:
        raise DefinitionError(
            f"--parallel {parallel} has no effect on one file; give several, or leave it out"
        )
    definition = config.load(files[0]).with_metrics(metrics)
    screen = Screen(quiet=quiet)
    with (
        process.session(screen, definition, master, conf) as spark,
        process.stop_signals(screen) as stop,
        metrics_shown(screen, [definition.run.monitoring]),
        screen.busy(f"running {definition.name}"),
    ):
        summary = pipeline(spark, definition, screen.batch, stop)
    screen.table(
        f"{summary.verb} {definition.name}: {'stopped' if stop.is_set() else 'done'}", summary_rows(summary)
    )


def main(argv: list[str] | None = None) -> int:
    """Runs the command line and returns its exit code; errors are printed as messages, never as tracebacks."""
    return process.run_guarded(lambda: app(args=argv, standalone_mode=False))


if __name__ == "__main__":
    sys.exit(main())
