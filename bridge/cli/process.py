"""Provides what every verb needs: a Spark session, signal handling and the exit code.

Settings of Spark are given to what reads files on object stores before Spark is there.
"""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer
from typer._click.exceptions import ClickException as UsageError  # typer exports no name for it

from bridge import watchdog
from bridge.config.storage_locations import storage_locations
from bridge.config.substitute import given_values
from bridge.console import Screen, log_as
from bridge.definition import Definition
from bridge.errors import BridgeError, DefinitionError
from bridge.jars import home
from bridge.metrics import ignore
from bridge.metrics.monitoring import Monitoring
from bridge.metrics.otlp import tracing
from bridge.metrics.prometheus import exporting, shown
from bridge.spark_versions import spark_needed
from bridge.store_jars import schemes_of
from bridge.store_options import given_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TITLES = {2: "refused", 3: "quality failed", 4: "different"}


@contextmanager
def session(
    screen: Screen, definition: Definition, master: str | None, conf: Sequence[str] | None
) -> Iterator[SparkSession]:
    """Creates the Spark session of one pipeline. `conf`: key=value pairs from the command line."""
    paths = [location.path for location in storage_locations(definition)]
    with spark_session(screen, definition.name, definition.warnings, paths, master, conf) as spark:
        yield spark


@contextmanager
def spark_session(
    screen: Screen,
    name: str,
    warnings: Sequence[str],
    paths: Sequence[str | None],
    master: str | None,
    conf: Sequence[str] | None,
) -> Iterator[SparkSession]:
    """Prints the warnings of a pipeline or script, and creates a Spark session that reaches the stores of `paths`."""
    from bridge.session import build_session

    for warning in warnings:
        screen.info(f"warning: {warning}")
    settings = conf_settings(conf)
    with screen.busy("starting Spark"):
        spark = build_session(f"bridge {name}", master=master, conf=settings, stores=schemes_of(paths))
    yield spark


@contextmanager
def stop_signals(screen: Screen) -> Iterator[threading.Event]:
    """Sets the event on the first SIGINT or SIGTERM; the second one raises KeyboardInterrupt.

    Enter it after the Spark session has started, because Spark then installs its own handler.
    """
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        screen.info("stopping after the current batch; press Ctrl-C again to abort it")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_guarded(verb: Callable[[], object]) -> int:
    """Runs a verb and returns its exit code. Prints one message for any exception; the traceback of an unexpected one
    goes to a log file. See `watchdog` for a verb that hangs or crashes."""
    log_as("text")
    screen = Screen()
    try:
        with watchdog.armed(), spark_needed():
            verb()
        return 0
    except UsageError as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        screen.error("aborted", "the current batch was not committed; the next run starts with it again")
        return 130
    except Exception as error:
        return show_failure(screen, error)


def show_failure(screen: Screen, error: Exception, pipeline: str = "") -> int:
    """Prints the message of an exception, with the pipeline that it is of among several; returns its exit code."""
    of = f" {pipeline}" if pipeline else ""
    if isinstance(error, BridgeError):
        screen.error(f"{_TITLES.get(error.exit_code, 'failed')}{of}", str(error))
        return error.exit_code
    if _is_jvm_loss(error):
        screen.error(
            f"failed{of}",
            "Spark's Java process has ended: it was killed or ran out of memory. All committed batches are "
            "complete, and the next run continues after them. Give it more memory "
            "(--conf spark.driver.memory=4g) or smaller batches (`run: {max-offsets-per-batch: 100000}`)",
        )
        return 1
    first = (str(error).splitlines() or [""])[0][:500]
    screen.error(
        f"unexpected error{of}", f"{type(error).__name__}: {first}\nThe traceback is in {_write_log(error)}"
    )
    return 1


def _is_jvm_loss(error: BaseException | None) -> bool:
    """Whether the exception, or one that it came from, means that the connection to the JVM was lost."""
    while error is not None:
        if type(error).__name__ in ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError"):
            return True
        error = error.__context__
    return False


def _write_log(error: BaseException) -> Path:
    log = home() / "logs" / "errors.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as out:
        traceback.print_exception(type(error), error, error.__traceback__, file=out)
    return log


def conf_settings(conf: Sequence[str] | None) -> dict[str, str]:
    """Returns the settings of --conf. Raises DefinitionError for one that is not key=value."""
    settings = {}
    for pair in conf or []:
        key, equals, value = pair.partition("=")
        if not equals:
            raise DefinitionError(f"--conf {pair}: expected key=value")
        settings[key] = value
    return settings


def use_submitted(context: typer.Context) -> None:
    """For the command that runs, reads files on object stores with the settings that spark-submit was given."""
    context.with_resource(given_settings(_submitted))


def use_conf(context: typer.Context, conf: list[str] | None) -> list[str] | None:
    """The same with the settings of --conf, which win."""
    context.with_resource(given_settings(lambda: {**_submitted(), **conf_settings(conf)}))
    return conf


def use_values(context: typer.Context, env: list[str] | None) -> list[str] | None:
    """For the command that runs, resolves references with the values of --env. Raises DefinitionError for one that is
    not NAME=VALUE, and never shows a value."""
    values: dict[str, str] = {}
    for pair in env or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise DefinitionError("--env: expected NAME=VALUE, as in --env KAFKA=broker:9092")
        if name in values:
            raise DefinitionError(f"--env {name}=... is given twice; give it once")
        values[name] = value
    context.with_resource(given_values(values))
    return env


def _submitted() -> dict[str, str]:
    from bridge.session import submitted_settings

    return submitted_settings()


@contextmanager
def metrics_shown(screen: Screen, watched: Iterable[Monitoring]) -> Iterator[None]:
    """Around all runs of a command: prints where the metrics are, and keeps their counters from run to run, those that
    a collector gets, too."""
    watched = tuple(watched)
    with ExitStack() as stack:
        for target in dict.fromkeys(of.metrics for of in watched if of.metrics):
            stack.enter_context(exporting(target, ignore))
            screen.info(f"metrics: {shown(target)}")
        for collector in dict.fromkeys(of.otlp for of in watched if of.otlp):
            stack.enter_context(tracing(collector, ignore))
        yield
