"""Verifies again and again, and keeps each result: in a Delta table, as a metric, an event and an alert."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from functools import partial
from itertools import count
from typing import Any

from pyspark.sql import SparkSession

from bridge.definition import Definition, DeltaTarget
from bridge.delta.result_table import VERIFY_LEDGER
from bridge.errors import BridgeError, DefinitionError, DifferenceError, TableError
from bridge.metrics import BatchReport, RunName, ignore, now_ms
from bridge.metrics.monitoring import monitored
from bridge.pipelines.compare.verify import Proof, verify
from bridge.pipelines.runtime.lineage import verify_flow
from bridge.version import own_version

_COUNTS = (
    "topic_rows",
    "table_rows",
    "topic_checksum",
    "table_checksum",
    "missing_in_table",
    "missing_in_topic",
    "different",
    "duplicate_keys",
    "superseded",
)


def reconcile(
    spark: SparkSession,
    definition: Definition,
    *,
    direction: str | None = None,
    show_values: bool = False,
    ledger: DeltaTarget | None = None,
    metrics: str | None = None,
    every_seconds: float | None = None,
    stop: threading.Event | None = None,
    compared: Callable[[Proof], None],
    failed: Callable[[BridgeError], None],
) -> None:
    """Verify once, or with `every_seconds` until `stop` is set, with this pause, and pass each result to `compared`.

    Each comparison is a row of `ledger`, in a commit of its own; an event and, if rows differ or it fails, an alert, as
    the `run` section says; and metrics at `metrics`. Under `every_seconds` an error of a comparison is a row, too, is
    passed to `failed`, and does not end the run; nor does a ledger that cannot be written, of which events and alerts
    tell, too.

    Raises what `verify` raises; in the end DifferenceError if the last comparison found a difference, and its error if
    it failed.
    """
    stop = stop or threading.Event()
    name = definition.run_name("verify")
    monitoring = replace(definition.run.monitoring, metrics=metrics)
    flow = partial(verify_flow, spark, definition, ledger)
    with monitored(monitoring, ignore, name, flow=flow, stop=stop) as listen:
        for number in count():
            outcome = _compare(spark, definition, direction, show_values)
            if outcome.proof is not None:
                compared(outcome.proof)
            listen(_report(outcome, name, number))
            error = _note(spark, definition, direction, outcome, ledger) or outcome.error
            if every_seconds is None or stop.is_set():
                break
            if error is not None:
                failed(error)
                listen.failed(error)
            if stop.wait(every_seconds):
                break
        if error is not None:
            raise error
        if outcome.proof is not None and not outcome.proof.equal:
            raise DifferenceError(difference(outcome.proof))


@dataclass(frozen=True)
class _Outcome:
    started: float
    seconds: float
    proof: Proof | None
    error: BridgeError | None


def _compare(
    spark: SparkSession, definition: Definition, direction: str | None, show_values: bool
) -> _Outcome:
    started = time.time()
    proof, error = None, None
    try:
        proof = verify(spark, definition, direction=direction, show_values=show_values)
    except DefinitionError:  # the next comparison would raise it, too
        raise
    except BridgeError as failed:
        error = failed
    return _Outcome(started, time.time() - started, proof, error)


def _note(
    spark: SparkSession,
    definition: Definition,
    direction: str | None,
    outcome: _Outcome,
    ledger: DeltaTarget | None,
) -> BridgeError | None:
    """Add a row to the ledger; returns the error if it cannot be written."""
    if ledger is None:
        return None
    try:
        VERIFY_LEDGER.append(spark, ledger, [_row(definition, direction, outcome)])
    except TableError as unwritten:
        return unwritten
    return None


def difference(proof: Proof) -> str:
    """Return how many keys differ, and examples, as a sentence."""
    comparison = proof.comparison
    return (
        f"{comparison.missing_in_table:,} keys missing in the table, {comparison.missing_in_topic:,} missing in "
        f"the topic, {comparison.different:,} with different rows, {comparison.duplicate_keys:,} more than once; "
        f"for example {', '.join(e.key for e in comparison.examples)}"
    )


def _report(outcome: _Outcome, name: RunName, number: int) -> BatchReport:
    report = BatchReport(
        pipeline=name.pipeline,
        verb=name.verb,
        batch=number,
        topic=name.topic,
        committed_ms=now_ms(),
        seconds=outcome.seconds,
    )
    if outcome.proof is None:
        return replace(report, failed_comparisons=1)
    comparison = outcome.proof.comparison
    differing = comparison.missing_in_table + comparison.missing_in_topic
    differing += comparison.different + comparison.duplicate_keys
    return replace(report, version=outcome.proof.version, differing_keys=differing)


def _row(definition: Definition, direction: str | None, outcome: _Outcome) -> Mapping[str, Any]:
    proof, error = outcome.proof, outcome.error
    row: dict[str, Any] = {
        "pipeline": definition.name,
        "direction": direction,
        "started": datetime.fromtimestamp(outcome.started, timezone.utc),
        "seconds": outcome.seconds,
        "result": "failed",
        "error": None if error is None else f"{type(error).__name__}: {error}",
        "topic": definition.topic.title,
        "table": str(definition.delta),
        "bridge_version": own_version(),
    }
    if proof is None:
        return row
    counts = asdict(proof.comparison)
    return {
        **row,
        "direction": proof.direction,
        "result": "equal" if proof.equal else "different",
        "version": proof.version,
        "offsets": proof.offsets.to_json(),
        **{name: counts[name] for name in _COUNTS},
    }
