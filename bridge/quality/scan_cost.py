"""Measures what a check reads, by Spark's own metrics: scans of Delta tables, their files, bytes and duration."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from bridge.backend import Feature, backend_of
from bridge.quality.verdict import Cost

_DESCRIPTION = "spark.job.description"
_FILES, _SIZE = "number of files read", "size of files read"
_BINARY = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "PiB": 50}
_LISTENER_TIMEOUT_MS = 10_000


class ScanMeter:
    """Counts the scans of queries that start while it is active."""

    def __init__(self, spark: SparkSession, mark: str) -> None:
        self._spark, self._mark = spark, mark

    def read(self) -> Cost | None:
        """Returns what was read so far; None where Spark's metrics are unavailable (e.g. Spark Connect)."""
        try:
            return self._read()
        except Exception:
            # It uses internals that a vendor's Spark may lack; a check is valid without its cost.
            return None

    def _read(self) -> Cost:
        state: Any = self._spark._jsparkSession.sharedState().statusStore()
        context: Any = self._spark.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty(_LISTENER_TIMEOUT_MS)
        scans = files = size = milliseconds = 0
        executions = state.executionsList()
        for query in (executions.apply(n) for n in range(executions.size())):
            if self._mark not in str(query.description()):
                continue
            read = list(_scans(state, query.executionId()))
            scans, files = scans + len(read), files + sum(n for n, _ in read)
            size += sum(n for _, n in read)
            if read and query.completionTime().isDefined():
                milliseconds += query.completionTime().get().getTime() - query.submissionTime()
        return Cost(scans, files, size, milliseconds / 1000)


@contextmanager
def metered(spark: SparkSession, description: str) -> Iterator[ScanMeter]:
    """Gives the queries of this thread a job description, which Spark's UI shows: `description` and a random suffix."""
    mark = f"{description} [{uuid.uuid4().hex[:8]}]"
    if backend_of(spark).can(Feature.METRICS) is not None:
        yield ScanMeter(spark, mark)
        return
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    _describe(context, mark)
    try:
        yield ScanMeter(spark, mark)
    finally:
        _describe(context, before)


def _describe(context: SparkContext, text: str | None) -> None:
    context.setLocalProperty(_DESCRIPTION, text)  # type: ignore[arg-type]


def _scans(state: Any, number: int) -> Iterator[tuple[int, int]]:
    """Yields (files, bytes) of each scan of a query, without scans of Delta logs."""
    values, nodes = state.executionMetrics(number), state.planGraph(number).allNodes()
    for node in (nodes.apply(n) for n in range(nodes.size())):
        if not node.name().startswith("Scan parquet") or "DeltaLogFileIndex" in node.desc():
            continue
        metrics = [node.metrics().apply(n) for n in range(node.metrics().size())]
        metric_values = {m.name(): values.get(m.accumulatorId()) for m in metrics}
        if _FILES in metric_values and metric_values[_FILES].isDefined():
            size = (
                metric_values[_SIZE].get()
                if _SIZE in metric_values and metric_values[_SIZE].isDefined()
                else "0 B"
            )
            yield int(metric_values[_FILES].get().replace(",", "")), _bytes(size)


def _bytes(text: str) -> int:
    number, unit = text.replace(",", "").splitlines()[-1].split()[:2]
    return round(float(number) * (1 << _BINARY[unit]))
