"""How Python reaches Spark: beside its JVM (`ClassicBackend`), or through Spark Connect (`ConnectBackend`).

Everything that needs the JVM, the SparkContext or RDDs is here or in a module that `spark_versions` lists. What a
backend cannot do is a reason, which names the compute that can; see `Backend.can`.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bridge.backend.contract import Backend, Feature, Files, HandleOfTable
from bridge.backend.error_causes import ENGINE_ERRORS, causes
from bridge.errors import UnsupportedError

__all__ = [
    "ENGINE_ERRORS",
    "Backend",
    "Feature",
    "Files",
    "HandleOfTable",
    "backend_of",
    "causes",
    "is_connect",
    "persist",
    "require",
    "unpersist",
]


def is_connect(made: SparkSession | DataFrame) -> bool:
    """Whether a session or a frame is one of Spark Connect."""
    return "connect" in type(made).__module__.split(".")


def require(spark: SparkSession, feature: Feature, command: str) -> None:
    """Raise UnsupportedError where the compute of the session lacks the feature: `command` needs it."""
    if (reason := backend_of(spark).can(feature)) is not None:
        raise UnsupportedError(f"{command} is not possible through Spark Connect: {reason}", command)


def persist(frame: DataFrame) -> DataFrame:
    """Return `frame`, persisted where the compute keeps frames: elsewhere each use computes it again."""
    return frame.persist() if backend_of(frame.sparkSession).can(Feature.PERSIST) is None else frame


def unpersist(frame: DataFrame) -> None:
    """End what `persist` has begun."""
    if backend_of(frame.sparkSession).can(Feature.PERSIST) is None:
        frame.unpersist()


def backend_of(spark: SparkSession) -> Backend:
    """The backend of a session, made once for it."""
    made: Any = vars(spark).get("_bridge_backend")
    if made is None:
        if is_connect(spark):
            from bridge.backend.connect import ConnectBackend

            made = ConnectBackend(spark)
        else:
            from bridge.backend.classic import ClassicBackend

            made = ClassicBackend(spark)
        vars(spark)["_bridge_backend"] = made
    return made  # type: ignore[no-any-return]
