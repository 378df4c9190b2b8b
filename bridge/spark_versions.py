"""Which versions of Spark and Delta the bridge runs on, and what differs between them (ADR 029).

Nothing here needs Spark. Where a version can be asked for, its functions take it; where Spark belongs to somebody else
(spark-submit, Databricks) and its number says little, they take the JVM and see what it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from bridge.errors import BridgeError

__all__ = [
    "MERGE_OF_CACHED_SOURCE",
    "SCALA",
    "TESTED",
    "check_pair",
    "checkpoint_file_manager",
    "delta_coordinate",
    "feed_arguments",
    "has_class",
    "installed",
]

SCALA = "2.13"

TESTED = (("4.0.0", "4.0.1"), ("4.1.1", "4.3.1"))
"""The pairs of Spark and Delta that the tests run on; the last one is what `make setup` installs."""

_FITTING = {
    (4, 0): ((4, 0), (4, 0)),
    (4, 1): ((4, 1), (4, 3)),
}
"""The oldest and the newest Delta for each Spark."""

MERGE_OF_CACHED_SOURCE = {
    "spark.databricks.delta.merge.materializeSource": "none",
    # Since 4.1 Delta refuses this, as a cached frame may show another version of a Delta table when it is computed
    # again. What the bridge caches are the records between fixed offsets.
    "spark.databricks.delta.merge.failSourceCachedAfterMaterialization": "false",
}
"""Settings under which a MERGE makes no copy of a persisted source. Older versions of Delta ignore what they lack."""

_CHECKPOINT_FILE_MANAGERS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",  # since 4.1
    "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",
)


def installed() -> tuple[str, str]:
    """Return the versions of the installed packages pyspark and delta-spark."""
    return version("pyspark"), version("delta-spark")


def check_pair(spark: str, delta: str) -> None:
    """Raise BridgeError unless this Delta was built for this Spark. Patch versions do not matter."""
    ways_out = " or ".join(f"'pyspark=={s}' 'delta-spark=={d}'" for s, d in reversed(TESTED))
    if _minor(spark) not in _FITTING:
        known = " or ".join(_text(s) for s in _FITTING)
        raise BridgeError(f"pyspark {spark} is installed, and the bridge needs Spark {known}: pip install {ways_out}")
    oldest, newest = _FITTING[_minor(spark)]
    if not oldest <= _minor(delta) <= newest:
        needed = _text(oldest) if oldest == newest else f"{_text(oldest)} to {_text(newest)}"
        raise BridgeError(
            f"delta-spark {delta} does not fit pyspark {spark}, which needs Delta {needed}: pip install {ways_out}"
        )


def delta_coordinate(spark: str, delta: str) -> str:
    """Return Delta's Maven coordinate. Since 4.1 Delta has a jar for each Spark, with its version in the name."""
    built_for = "" if _minor(delta) == (4, 0) else f"_{_text(_minor(spark))}"
    return f"io.delta:delta-spark{built_for}_{SCALA}:{delta}"


def has_class(jvm: Any, name: str) -> bool:
    """Return whether the JVM has a class of this name, without initializing it."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName(name, False, loader)
    except Exception:  # py4j wraps ClassNotFoundException, and a JVM that is closed to Python refuses the call
        return False
    return True


def checkpoint_file_manager(jvm: Any) -> str | None:
    """Return the class that writes a query's state by Hadoop's FileSystem; None for a Spark that has it elsewhere."""
    return next((name for name in _CHECKPOINT_FILE_MANAGERS if has_class(jvm, name)), None)


def feed_arguments(relation: Any, session: Any, option: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of Delta's CDCReader.changesToBatchDF for the frame behind `relation`, newest Delta first.

    `session` is the JVM's, `option` Scala's Option.
    """
    snapshot = relation.snapshotWithSchemaMode().snapshot()
    versions = (snapshot.deltaLog(), relation.startingVersion().get(), relation.endingVersion().get(), session)
    # False: files are compared only where the table has no feed, which its reader refuses before.
    rest = (option.apply(snapshot), False, option.empty())
    yield (*versions, relation.catalogTableOpt(), *rest)  # since 4.1
    yield (*versions, *rest)


def _minor(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def _text(minor: tuple[int, int]) -> str:
    return ".".join(map(str, minor))
