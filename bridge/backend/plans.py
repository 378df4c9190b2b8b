"""What Spark's plans tell, where Python reaches them."""

from __future__ import annotations

from functools import lru_cache

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.backend import is_connect
from bridge.spark_versions import or_public

UNKNOWN_BYTES = 1 << 60
"""A size that is larger than every limit: where none is known, the way for large frames is taken."""


def column(name: str) -> Column:
    """Return `F.col(name)`."""
    return or_public(lambda: _cached(name, SparkContext._gateway), lambda: F.col(name))


@lru_cache(maxsize=4096)
def _cached(name: str, gateway: object) -> Column:
    """Return a cached column. A column fits every frame; making one takes three calls into the JVM behind `gateway`,
    and a batch needs hundreds."""
    return F.col(name)


def estimated_bytes(frame: DataFrame) -> int:
    """Return Spark's estimate of a frame's size, which is exact for a persisted frame that has been computed.

    UNKNOWN_BYTES where this Spark does not tell, and where it assumes more, as it does of what it knows nothing of.
    """
    return or_public(
        lambda: min(
            UNKNOWN_BYTES, int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
        ),
        lambda: UNKNOWN_BYTES,
    )


def make_plan(frame: DataFrame) -> None:
    """Have Spark plan `frame` without running it. An action on the same frame executes this plan.

    Raises what planning raises. A client of Spark Connect cannot ask for a plan alone: it looks for a first row, which
    raises for missing files, too.
    """
    or_public(lambda: frame._jdf.queryExecution().executedPlan(), lambda: _public_plan(frame))


def plan_tasks(frame: DataFrame) -> None:
    """Do as `make_plan` down to the tasks, under the settings of the session now."""
    or_public(lambda: frame._jdf.queryExecution().toRdd().getNumPartitions(), lambda: _public_plan(frame))


def _public_plan(frame: DataFrame) -> object:
    return frame.isEmpty() if is_connect(frame) else frame.rdd.getNumPartitions()


def analyzed(frame: DataFrame) -> DataFrame:
    """Return `frame`. Raises what its analysis raises, which a client of Spark Connect puts off until it is asked."""
    if is_connect(frame):
        frame.schema  # noqa: B018
    return frame
