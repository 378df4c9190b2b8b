"""The command line: one verb per pipeline. jobs/ call the same `main`.

Exit codes: 0 done, 1 failed while running, 2 definition refused, 3 quality failed, 4 verify found a
difference.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bridge import config
from bridge.cli import check_command, ops_commands, process, txn_commands
from bridge.cli.arguments import Conf, File, Json, Master, Quiet
from bridge.console import Screen, explanation_rows, summary_rows
from bridge.definition import Definition
from bridge.version import own_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bridge.metrics import Listener, Summary

__all__ = ["app", "main"]

# Verbs import their pipeline after they have read the pipeline file: a refusal must not wait for Spark.

app = typer.Typer(
    name="bridge",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(txn_commands.app, name="txn")


@app.command()
def ingest(
    file: File,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Print which files the next batch would touch, and why; apply nothing."
        ),
    ] = False,
    quiet: Quiet = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Apply an upsert topic to its Delta table by MERGE.

    Goes on where the table says the last run ended. With `trigger: available-now` it ends when the topic has no
    more; with an interval it goes on until Ctrl-C, which lets the running batch commit first.
    """
    definition = config.load(file)
    if explain:
        _explain(definition, master, conf)
        return
    from bridge.pipelines.ingest.run import ingest as run

    _run(definition, quiet, master, conf, lambda s, d, listen, stop: run(s, d, listener=listen, stop=stop))


@app.command()
def publish(file: File, quiet: Quiet = False, master: Master = None, conf: Conf = None) -> None:
    """Send a Delta table's change feed to an upsert topic, tombstones for deletes.

    The first run starts where `publish.start` says (snapshot by default); later runs go on from there.
    """
    definition = config.load(file)
    from bridge.pipelines.publish.run import publish as run

    _run(definition, quiet, master, conf, lambda s, d, listen, stop: run(s, d, listener=listen, stop=stop))


for _verb in (
    check_command.check,
    ops_commands.verify,
    ops_commands.resync,
    ops_commands.replay,
    ops_commands.status,
    ops_commands.peek,
    ops_commands.maintain,
):
    app.command()(_verb)


@app.command()
def validate(file: File, json: Json = False) -> None:
    """Check a pipeline file and print what it means. Touches neither Kafka nor the table."""
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
            **{f"warning {n}": text for n, text in enumerate(definition.warnings, 1)},
        },
    )


@app.command()
def schema() -> None:
    """Print the JSON Schema of pipeline files, for editors."""
    Screen().json(config.json_schema())


@app.command()
def broker(
    folder: Annotated[Path, typer.Option(help="Where its data is kept between runs.")] = Path(".work/broker"),
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1.")] = 9092,
    registry: Annotated[bool, typer.Option("--registry", help="Run a schema registry beside it.")] = False,
    registry_port: Annotated[int, typer.Option(help="The registry's port on 127.0.0.1.")] = 8081,
) -> None:
    """Run the embedded Kafka broker (a real one, one process) until Ctrl-C."""
    from bridge.embedded.broker import Broker
    from bridge.embedded.schema_registry import SchemaRegistryServer

    screen = Screen()
    with ExitStack() as servers:
        with screen.busy("starting Kafka"):
            running = servers.enter_context(Broker(folder, port=port))
        if registry:
            with screen.busy("starting the schema registry"):
                schemas = servers.enter_context(SchemaRegistryServer(folder / "registry", port=registry_port))
            screen.info(f"the schema registry answers at {schemas.url}; it forgets its schemas when it stops")
        with process.stop_signals(screen) as stop:
            screen.info(f"Kafka answers at {running.bootstrap}; its data is in {folder}; Ctrl-C stops it")
            stop.wait()


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Work folder; emptied first.")] = Path(".work/demo"),
    quiet: Quiet = False,
) -> None:
    """Run everything once on this machine: broker, changelog, ingest, publish, check, verify."""
    from bridge.demo.run import run
    from bridge.session import build_session

    screen = Screen(quiet=quiet)
    with screen.busy("starting Spark"):
        spark = build_session("bridge demo")
    with process.stop_signals(screen) as stop:
        run(spark, folder, screen, stop)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"bridge {own_version()}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Move a changelog between Kafka upsert topics and Delta Lake tables, both ways, provably right.

    \b
    Exit codes: 0 done, 1 failed while running, 2 definition refused, 3 quality failed,
    4 verify found a difference.
    """


def _explain(definition: Definition, master: str | None, conf: list[str] | None) -> None:
    from bridge.pipelines.ingest.explain import explain as run

    screen = Screen()
    with process.session(screen, definition, master, conf) as spark:
        explanation = run(spark, definition)
    screen.table(f"the next batch of {definition.name}", explanation_rows(explanation.as_dict()))


_Pipeline = Callable[["SparkSession", Definition, "Listener", threading.Event], "Summary"]


def _run(
    definition: Definition, quiet: bool, master: str | None, conf: list[str] | None, pipeline: _Pipeline
) -> None:
    screen = Screen(quiet=quiet)
    with (
        process.session(screen, definition, master, conf) as spark,
        process.stop_signals(screen) as stop,
        screen.busy(f"running {definition.name}"),
    ):
        summary = pipeline(spark, definition, screen.batch, stop)
    screen.table(
        f"{summary.verb} {definition.name}: {'stopped' if stop.is_set() else 'done'}", summary_rows(summary)
    )


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code; errors are printed on one screen, never as a trace."""
    return process.run_guarded(lambda: app(args=argv, standalone_mode=False))


if __name__ == "__main__":
    sys.exit(main())
