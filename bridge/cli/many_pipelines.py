"""Runs `bridge ingest` and `bridge publish` for several pipeline files, in one process and one Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bridge import config
from bridge.cli import process
from bridge.cli.process import metrics_shown
from bridge.config.storage_locations import storage_locations
from bridge.console import Screen
from bridge.definition import Definition
from bridge.errors import BridgeError, DefinitionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bridge.metrics import Listener, Summary
    from bridge.pipelines.runtime.rounds import RoundsSummary


Pipeline = Callable[["SparkSession", Definition, "Listener", threading.Event], "Summary"]
_SHOWN = 10


def load_all(files: Sequence[str]) -> list[Definition]:
    """Loads pipeline files that are to run beside each other. Raises DefinitionError with the messages of all files
    that are refused; for two of the same name, and for one with an interval as its trigger, which would not end."""
    found: dict[str, str] = {}
    definitions, refused = [], []
    for file in files:
        try:
            definition = config.load(file)
        except BridgeError as error:
            refused.append(str(error))
            continue
        if definition.name in found:
            refused.append(
                f"{file}: its name is {definition.name!r}, as that of {found[definition.name]}; progress is stored "
                "under the name, so each pipeline needs its own"
            )
        if definition.run.trigger_seconds is not None:
            refused.append(
                f"{file}: run.trigger is an interval, so its run would not end; of several files each must have "
                "`trigger: available-now`. Repeat all of them with --every, or run this file alone"
            )
        found[definition.name] = file
        definitions.append(definition)
    if refused:
        more = f"\nand {len(refused) - _SHOWN} more files" if len(refused) > _SHOWN else ""
        raise DefinitionError("\n".join(refused[:_SHOWN]) + more)
    return definitions


def run_all(
    verb: str,
    definitions: Sequence[Definition],
    pipeline: Pipeline,
    *,
    parallel: int,
    every_seconds: float | None,
    quiet: bool,
    metrics: str | None,
    master: str | None,
    conf: list[str] | None,
) -> None:
    """Runs the pipelines in rounds. Prints the error of each that fails, and raises BridgeError at the end if one
    failed in the last round."""
    from bridge.pipelines.runtime.rounds import run_rounds

    definitions = [definition.with_metrics(metrics) for definition in definitions]
    screen = Screen(quiet=quiet)
    said: dict[str, str] = {}

    def failed(definition: Definition, failure: Exception) -> None:
        if said.get(definition.name) != str(failure):
            said[definition.name] = str(failure)
            process.show_failure(screen, failure, definition.name)

    paths = [place.path for definition in definitions for place in storage_locations(definition)]
    warnings = [f"{d.name}: {warning}" for d in definitions for warning in d.warnings]
    name = f"{verb} of {len(definitions)} pipelines"
    with (
        process.spark_session(screen, name, warnings, paths, master, conf) as spark,
        process.stop_signals(screen) as stop,
        metrics_shown(screen, [definition.run.monitoring for definition in definitions]),
        screen.busy(f"running {name}"),
    ):
        total = run_rounds(
            spark,
            definitions,
            lambda session, definition: pipeline(session, definition, screen.batch, stop),
            parallel=parallel,
            every_seconds=every_seconds,
            stop=stop,
            failed=failed,
        )
    screen.table(f"{name}: {'stopped' if stop.is_set() else 'done'}", _rows(total, len(definitions)))
    if total.failed:
        names = sorted(total.failed)
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise BridgeError(
            f"{len(names)} of {len(definitions)} pipelines failed: {', '.join(names[:_SHOWN])}{more}"
        )


def _rows(total: RoundsSummary, pipelines: int) -> dict[str, str]:
    rows = {"rounds": f"{total.rounds:,}", "batches": f"{total.batches:,}"}
    if total.records_in:
        rows["records in"] = f"{total.records_in:,}"
    if total.records_out:
        rows["records out"] = f"{total.records_out:,}"
    return {**rows, "failed": f"{len(total.failed):,} of {pipelines:,}"}
