"""The command line: one verb per pipeline. jobs/ call the same `main`.

Exit codes: 0 done, 1 failed while running, 2 definition refused, 3 quality failed, 4 verify found a
difference.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bridge import config, process, txn
from bridge.arguments import Conf, File, Json, Master, Quiet
from bridge.console import Screen, summary_rows
from bridge.definition import Definition, OnFailure
from bridge.errors import DefinitionError, DifferenceError, QualityError

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
app.add_typer(txn.app, name="txn")


@app.command()
def ingest(file: File, quiet: Quiet = False, master: Master = None, conf: Conf = None) -> None:
    """Apply an upsert topic to its Delta table by MERGE.

    Goes on where the table says the last run ended. With `trigger: available-now` it ends when the topic has no
    more; with an interval it goes on until Ctrl-C, which lets the running batch commit first.
    """
    definition = config.load(file)
    from bridge.pipelines.ingest import ingest as run

    _run(definition, quiet, master, conf, lambda s, d, listen, stop: run(s, d, listener=listen, stop=stop))


@app.command()
def publish(file: File, quiet: Quiet = False, master: Master = None, conf: Conf = None) -> None:
    """Send a Delta table's change feed to an upsert topic, tombstones for deletes.

    The first run starts where `publish.start` says (snapshot by default); later runs go on from there.
    """
    definition = config.load(file)
    from bridge.pipelines.publish import publish as run

    _run(definition, quiet, master, conf, lambda s, d, listen, stop: run(s, d, listener=listen, stop=stop))


@app.command()
def check(
    file: File, quiet: Quiet = False, json: Json = False, master: Master = None, conf: Conf = None
) -> None:
    """Run the quality suite on the table and write the HTML report. Exits 3 when an expectation failed."""
    screen, definition = Screen(quiet=quiet or json), config.load(file)
    from bridge.pipelines.check import check as run
    from bridge.quality.report import to_json

    with process.session(screen, definition, master, conf) as spark:
        checked = run(spark, definition)
    verdict = checked.verdict
    if json:
        screen.json(to_json(verdict))
    else:
        rows = {o.title: ("ok" if o.success else f"FAILED: {o.observed}") for o in verdict.expectations}
        screen.table(f"quality of {definition.delta}, version {checked.version}", rows)
        screen.out.print(f"report: {checked.report}", markup=False)
    failed = [o.title for o in verdict.expectations if not o.success]
    if failed and definition.quality and definition.quality.on_failure is OnFailure.FAIL:
        raise QualityError(
            f"{len(failed)} of {len(verdict.expectations)} expectations failed; see {checked.report}"
        )


@app.command()
def verify(
    file: File,
    direction: Annotated[
        str | None, typer.Option(help="ingest or publish; default: the one with progress.")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Prove that topic and table hold the same rows. Exits 4 when they do not."""
    if direction not in (None, "ingest", "publish"):
        raise DefinitionError(f"--direction {direction}: legal values are ingest, publish")
    screen, definition = Screen(quiet=quiet or json), config.load(file)
    from bridge.pipelines.verify import verify as run

    with process.session(screen, definition, master, conf) as spark:
        proof = run(spark, definition, direction=direction)
    found = proof.comparison
    if json:
        screen.json({**asdict(proof), "offsets": proof.offsets.to_json(), "equal": proof.equal})
    else:
        rows = {
            "topic": f"{found.topic_rows:,} rows  checksum {found.topic_checksum}",
            "table": f"{found.table_rows:,} rows  checksum {found.table_checksum}  version {proof.version}",
            "result": "equal" if proof.equal else "DIFFERENT",
        }
        screen.table(f"{proof.direction} {definition.name}: fold(topic) == table?", rows)
    if not proof.equal:
        raise DifferenceError(
            f"{found.missing_in_table:,} keys missing in the table, {found.missing_in_topic:,} missing in the topic, "
            f"{found.different:,} with different rows, {found.duplicate_keys:,} more than once; "
            f"for example {', '.join(found.examples)}"
        )


@app.command()
def replay(
    file: File,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Also records older than delete.retention.ms: deletes may be forgotten."
        ),
    ] = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Apply records that `bad-records: quarantine` kept aside and that can be read now.

    Correct their key and value in the quarantine table, or the DDL, then run this. A record never overtakes a newer one
    of its key. What still cannot be read stays aside.
    """
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.pipelines.replay import replay as run

    with process.session(screen, definition, master, conf) as spark:
        found = run(spark, definition, force=force).as_dict()
    if json:
        screen.json(found)
    else:
        rows = {name.replace("_", " "): str(value) for name, value in found.items() if value is not None}
        screen.table(f"replay of {definition.name}", rows)


@app.command()
def status(file: File, json: Json = False, master: Master = None, conf: Conf = None) -> None:
    """Show how far a pipeline has got and how much is left. Moves nothing."""
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.pipelines.status import status as run

    with process.session(screen, definition, master, conf) as spark:
        found = run(spark, definition).as_dict()
    if json:
        screen.json(found)
    else:
        rows = {name.replace("_", " "): str(value) for name, value in found.items() if value is not None}
        screen.table(f"status of {definition.name}", rows)


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
    from bridge.kafka.broker import Broker
    from bridge.kafka.schema_registry import SchemaRegistry

    screen = Screen()
    with ExitStack() as servers:
        with screen.busy("starting Kafka"):
            running = servers.enter_context(Broker(folder, port=port))
        if registry:
            with screen.busy("starting the schema registry"):
                schemas = servers.enter_context(SchemaRegistry(folder / "registry", port=registry_port))
            screen.say(f"the schema registry answers at {schemas.url}; it forgets its schemas when it stops")
        with process.stopping(screen) as stop:
            screen.say(f"Kafka answers at {running.bootstrap}; its data is in {folder}; Ctrl-C stops it")
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
    with process.stopping(screen) as stop:
        run(spark, folder, screen, stop)


def _version(asked: bool) -> None:
    if asked:
        try:
            number = version("changelog-bridge")
        except PackageNotFoundError:  # run from a zip by --py-files: the code is here, its metadata is not
            number = "(not installed)"
        typer.echo(f"bridge {number}")
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


_Pipeline = Callable[["SparkSession", Definition, "Listener", threading.Event], "Summary"]


def _run(
    definition: Definition, quiet: bool, master: str | None, conf: list[str] | None, pipeline: _Pipeline
) -> None:
    screen = Screen(quiet=quiet)
    with (
        process.session(screen, definition, master, conf) as spark,
        process.stopping(screen) as stop,
        screen.busy(f"running {definition.name}"),
    ):
        summary = pipeline(spark, definition, screen.batch, stop)
    screen.table(
        f"{summary.verb} {definition.name}: {'stopped' if stop.is_set() else 'done'}", summary_rows(summary)
    )


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code; errors are printed on one screen, never as a trace."""
    return process.guarded(lambda: app(args=argv, standalone_mode=False))


if __name__ == "__main__":
    sys.exit(main())
