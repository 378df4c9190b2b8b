"""Defines `bridge run`, which runs a script in Flink SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bridge import sql
from bridge.cli import process
from bridge.cli.arguments import Conf, Master, Quiet, ScriptFile
from bridge.cli.script_pipelines import is_script
from bridge.console import Screen, duration
from bridge.errors import DefinitionError, OptionError
from bridge.options.kinds import duration_ms
from bridge.sql import Script

if TYPE_CHECKING:
    from bridge.pipelines.scripts.run import ScriptSummary

__all__ = ["run"]


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
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Run the INSERTs of a script in Flink SQL: from topics to topics through Delta tables.

    Ends when the sources have nothing new; with --every it runs until Ctrl-C, which lets the
    current batch commit first. A run that was killed continues where it was.
    """
    if not is_script(file):
        raise DefinitionError(
            f"{file} is not a script: its name must end in .sql; run a pipeline file with its verb"
        )
    pause = None if every is None else _seconds(every)
    script = sql.load_script(file)
    screen = Screen(quiet=quiet)
    from bridge.pipelines.scripts.explain import explain_script

    if explain:
        screen.table(f"{script.name}: plan", explain_script(script))
        return
    if not script.inserts:
        raise DefinitionError(f"{file}: the script has no INSERT, so there is nothing to run")
    _run(screen, script, pause, rebuild, master, conf)


def _run(
    screen: Screen,
    script: Script,
    pause: float | None,
    rebuild: bool,
    master: str | None,
    conf: list[str] | None,
) -> None:
    from bridge.pipelines.scripts.explain import used_paths
    from bridge.pipelines.scripts.run import run_script

    with (
        process.spark_session(
            screen, script.name, script.warnings, used_paths(script), master, conf
        ) as spark,
        process.stop_signals(screen) as stop,
        screen.busy(f"running {script.name}"),
    ):
        summary = run_script(
            spark,
            script,
            every_seconds=pause,
            rebuild=rebuild,
            listener=screen.batch,
            stop=stop,
        )
    screen.table(f"run {script.name}: {'stopped' if stop.is_set() else 'done'}", _rows(summary))


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


def _seconds(text: str) -> float:
    try:
        return duration_ms(text) / 1000
    except (OptionError, ValueError) as error:
        raise DefinitionError(f"--every {text}: {error}; write an interval like 10s or 1 min") from None
