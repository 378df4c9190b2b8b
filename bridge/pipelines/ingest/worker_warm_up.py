"""Starts Spark's Python workers while the driver opens the table, so that the first batch finds them ready."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession

__all__ = ["warm_up"]

_warm: set[str] = set()
"""The applications whose workers were started."""


def warm_up(spark: SparkSession) -> threading.Thread:
    """Start the workers of this application and import what reads a batch, in a thread of its own; once.

    A failure is none: the first batch starts what is missing, and reports what cannot be imported.
    """
    context = spark.sparkContext
    application = str(context.applicationId)
    tasks = 0 if application in _warm else context.defaultParallelism
    _warm.add(application)

    def start() -> None:
        try:
            if tasks:
                context.parallelize(range(tasks), tasks).mapPartitions(_import).collect()
        except Exception:  # the first batch will say so
            _warm.discard(application)

    # Shared by threads: the SparkContext alone (py4j opens a connection for each thread).
    thread = threading.Thread(target=start, name="warm-up", daemon=True)
    thread.start()
    return thread


def _import(_: Iterable[int]) -> Iterator[int]:
    import pyarrow.compute
    import pyarrow.json  # noqa: F401

    import bridge.kafka.latest_rows
    import bridge.pipelines.ingest.append_task  # noqa: F401

    return iter(())
