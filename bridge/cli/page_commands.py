"""Defines the verbs that show pages about pipelines, without Spark: top and report."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import yaml

from bridge import config
from bridge.cdc_jobs import is_job, load_job
from bridge.cli.arguments import Conf, Env, FileOrScript, Json, seconds
from bridge.cli.script_pipelines import InsertName, TableName, is_script, load_pipeline
from bridge.console import Screen
from bridge.errors import BridgeError, DefinitionError
from bridge.metrics import now_ms
from bridge.metrics.monitoring import Monitoring
from bridge.pages.pipeline_line import Watched
from bridge.pages.watch import File
from bridge.sql import Script, load_script

if TYPE_CHECKING:
    from rich.console import Console

    from bridge.pages.watch import Watch

SCHEMA = "changelog-bridge/top/1"
"""Of the JSON: fields are added; one that goes or changes its meaning makes a new version."""
_ONCE_SECONDS = 30.0
_LEAST_SECONDS = 0.1
_KEYS = {"\x1b[A": -1, "k": -1, "\x1b[B": 1, "j": 1}


def top(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Pipeline files, scripts in Flink SQL or jobs of Flink CDC; default: those of the working folder."
        ),
    ] = None,
    every: Annotated[
        str, typer.Option(metavar="INTERVAL", help="How often each pipeline is looked at.")
    ] = "2s",
    once: Annotated[bool, typer.Option("--once", help="Print what is seen once, and end.")] = False,
    json: Json = False,
    env: Env = None,
    conf: Conf = None,
) -> None:
    """Watch pipelines: rate, lag, freshness, the way taken, the last error. Changes nothing.

    It reads tables' logs, topics and checkpoints from outside of the runs, without Spark, so it
    shows stopped pipelines, too. A pipeline that cannot be read is a line with the reason.
    """
    from bridge.pages.watch import Watch

    pause = seconds("--every", every)
    if json and not once:
        raise DefinitionError("--json prints what is seen once: give --once, too")
    found, console = watched_files(files or []), Screen().out
    if not (once or (console.is_terminal and sys.stdin.isatty())):
        once = True  # a pipe has no pages
    with closing(Watch(found, None if once else max(_LEAST_SECONDS, pause or 0))) as watch:
        if not once:
            _show(watch, console)
            return
        watch.wait(_ONCE_SECONDS)
        _print(watch, console, json)


def report(
    file: FileOrScript,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="OUT", help="The page to write; default: NAME-history.html."),
    ] = None,
    commits: Annotated[
        int, typer.Option(min=1, help="How many commits of the table are read at most, the newest ones.")
    ] = 10_000,
    insert: InsertName = None,
    table: TableName = None,
    env: Env = None,
    conf: Conf = None,
) -> None:
    """Write the history of a pipeline's table, from its own commits, as one HTML page. Changes nothing.

    The page shows throughput, changes, freshness, ways taken, maintenance, other writers, gaps and
    results of checks. It needs no network; neither Spark nor Kafka is asked.
    """
    from bridge.history.commits import CommitLog
    from bridge.lake.reached_store import reached_store
    from bridge.pages.history_page import history_page, known_quality
    from bridge.quality.report import write
    from bridge.quality.wording import counted
    from bridge.ways import NotThisWay

    screen, definition = Screen(), load_pipeline(file, insert, table)
    if definition.delta.path is None:
        raise DefinitionError(
            f"{definition.delta} is a name in a catalog, which only Spark finds; give delta.path"
        )
    try:
        log = CommitLog(reached_store(definition.delta.path), commits, with_files=True)
        with screen.busy(f"reading the log of {definition.delta}"):
            log.follow()
    except (NotThisWay, OSError) as failed:
        raise BridgeError(f"{definition.delta}: its log cannot be read: {failed}") from failed
    runs, quality = known_quality(definition, log)
    out = html or Path(f"{definition.name}-history.html")
    written = write(history_page(definition, log, runs, quality, commits), out, "the history")
    screen.info(f"{counted(len(log.commits), 'commit')}: {written}")


def _print(watch: Watch, console: Console, json: bool) -> None:
    from bridge.pages.top_frame import details, overview

    lines = watch.lines()
    if json:
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        Screen().json({"schema": SCHEMA, "at": at, "pipelines": [asdict(line) for line in lines]})
        return
    lagging = [line for line in lines if any(line.lag_by_partition.values())]
    for text in (
        *overview(lines, console.width),
        *(t for line in lagging for t in details(line, console.width)),
    ):
        console.print(text)


def _show(watch: Watch, console: Console) -> None:
    """The page of a terminal, until q or Ctrl-C."""
    from rich.live import Live

    from bridge.pages.top_frame import frame

    selected = 0
    with _keys(), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            lines = watch.lines()
            selected = max(0, min(selected, len(lines) - 1))
            live.update(frame(lines, now_ms(), console.width, console.height, selected), refresh=True)
            pressed = _pressed(0.5)
            if pressed in ("q", "Q", "\x03"):
                return
            selected += _KEYS.get(pressed, 0)


@contextmanager
def _keys() -> Iterator[None]:
    """Within the block keys come at once and are not shown; Ctrl-C and SIGTERM end it without an error."""
    before = termios.tcgetattr(sys.stdin)
    handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        tty.setcbreak(sys.stdin)
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, handler)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _pressed(seconds: float) -> str:
    """The key that is pressed within that time; "" for none."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return os.read(sys.stdin.fileno(), 8).decode(errors="replace") if ready else ""


_PIPELINE_KEYS = {"topic", "delta", "source", "sink"}


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
    return isinstance(root, yaml.MappingNode) and bool(
        _PIPELINE_KEYS & {str(key.value) for key, _ in root.value}
    )


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
