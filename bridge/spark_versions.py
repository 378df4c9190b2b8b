"""Which versions of Spark and Delta the bridge runs on, and what differs between them (ADR 030).

Nothing here needs Spark. Functions about packages take their versions. Where Spark belongs to somebody else
(spark-submit, Databricks) its number says little: those functions take the JVM and see what it has.

These modules use what is no public API of Spark or Delta. tests/test_spark_versions.py finds each of them, and checks
that it has a test which runs on every version.

    module                           what it uses                           where it is missing
    backend.error_causes             what py4j raises                       nothing: every Spark has it
    backend.classic                  the SparkContext, RDD jobs             `backend.connect`
    backend.hadoop                   Hadoop's FileSystem and settings       files of the client's machine
    backend.java_names               py4j's view of the JVM                 each name is looked up each time
    backend.plans                    the plan of a frame; py4j's gateway    DataFrame.rdd plans; sizes count as large;
                                                                            columns are made anew
    delta.change_feed                Delta's relation and CDCReader         Delta's own reader, through row objects
    delta.data_files                 the files of a plan                    rows are sorted instead of sent by file
    delta.file_removal               a transaction of Delta, its actions    an error: rows of closed windows stay
    delta.file_statistics            a transaction of Delta, its actions    an error that names `bridge maintain`
    delta.newest_snapshot            Delta's snapshot of a table            the history and columns of the table
    demo.rehearsal                   the gateway's process                  no class archive: slower starts
    formats.avro.decode              SystemLimitException.resetLimits       limits hold where Avro has read none yet
    kafka.admin_transactions         Kafka's AdminClient in the JVM         an error that names kafka-transactions.sh
    pipelines.changes.batch_stats    the metrics of an Observation          a second count of the rows
    pipelines.runtime.callbacks      py4j's client of callbacks             connections stay open
    pipelines.operations.surroundings the JVM's heap                         a doctor without a look at memory
    pipelines.runtime.query_state    a class of Spark, its offset log (v1)  Spark's own class; an error for another log
    pipelines.runtime.storage_checks the session's catalog                  the table's own error when it is opened
    quality.scan_cost                Spark's metrics of queries             a check without its cost
    session                          the JVM's class loader                 an error that names --packages
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

from bridge.errors import BridgeError

SCALA = "2.13"

_T = TypeVar("_T")

TESTED = (("4.1.1", "4.3.1"), ("4.2.0", "4.4.0"))
"""The pairs of Spark and Delta that the tests run on; the last one is what `make setup` installs."""

_FITTING = {
    (4, 0): ((4, 0), (4, 0)),
    (4, 1): ((4, 1), (4, 3)),
    (4, 2): ((4, 4), (4, 4)),
}
"""The oldest and the newest Delta for each Spark. Some runtimes of Databricks have Spark 4.0, which no test runs."""

MERGE_OF_CACHED_SOURCE = {
    "spark.databricks.delta.merge.materializeSource": "none",
    # Since 4.1 Delta refuses this, as a cached frame that is computed again may show another version of a Delta table.
    # What the bridge caches comes from the records between fixed offsets.
    "spark.databricks.delta.merge.failSourceCachedAfterMaterialization": "false",
}
"""Settings under which a MERGE makes no copy of a persisted source. Older versions of Delta ignore what they lack."""

RETENTION_TOO_SHORT = frozenset({"DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", "IllegalArgumentException"})
"""What Delta raises for a VACUUM that keeps too little: an error condition since 4.1, and before that a class."""

_CHECKPOINT_FILE_MANAGERS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",  # since 4.1
    "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",
)


@contextmanager
def spark_needed() -> Iterator[None]:
    """Raise BridgeError, which names the way out, for what the block imports of Spark or Delta and does not find."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in ("pyspark", "py4j", "delta", "delta-spark"):
            raise
        raise BridgeError(
            f"{package} is not installed: pip install 'changelog-bridge[spark]'; on Databricks the compute has "
            "it, and `databricks-connect` brings it to other machines: install one of them, never both"
        ) from missing


def installed() -> tuple[str, str]:
    """Return the versions of the installed packages pyspark and delta-spark. Raises BridgeError without one."""
    with spark_needed():
        return version("pyspark"), version("delta-spark")


def is_databricks_connect() -> bool:
    """Whether pyspark is that of Databricks Connect: a client alone, which starts no Spark."""
    try:
        version("databricks-connect")
    except PackageNotFoundError:
        return False
    try:
        version("pyspark")  # Databricks' own compute may have both
    except PackageNotFoundError:
        return True
    return False


def check_pair(spark: str, delta: str) -> None:
    """Raise BridgeError unless this Delta was built for this Spark. Patch versions do not matter."""
    ways_out = " or ".join(f"'pyspark=={s}' 'delta-spark=={d}'" for s, d in reversed(TESTED))
    if _minor(spark) not in _FITTING:
        *others, newest_spark = map(_text, _FITTING)
        known = f"{', '.join(others)} or {newest_spark}"
        raise BridgeError(
            f"pyspark {spark} is installed, and the bridge needs Spark {known}: pip install {ways_out}"
        )
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


def or_public(private: Callable[[], _T], public: Callable[[], _T]) -> _T:
    """Return `private()`, which uses something that is no public API; `public()` where this Spark or Delta lacks it.

    What Spark and Delta themselves raise passes.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        return private()
    except Py4JJavaError:
        raise
    except (AttributeError, Py4JError, TypeError):  # TypeError: a class that does not exist cannot be called
        return public()


def has_class(jvm: Any, name: str) -> bool:
    """Return whether the JVM has a class of this name, without initializing it."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName(name, False, loader)
    except Exception:  # ClassNotFoundException as py4j wraps it, or a JVM that is closed to Python
        return False
    return True


def running_versions(jvm: Any) -> tuple[str, str, str | None]:
    """Return the versions of the Spark, the Scala (as `2.13`) and the Delta of a JVM; None without Delta.

    A distributor's suffix is left out: what it appends to 4.0.1 has no jars of its own in public repositories.
    """
    scala = _text(_minor(str(jvm.scala.util.Properties.versionNumberString())))
    spark = str(jvm.org.apache.spark.package.SPARK_VERSION())
    delta = None
    if has_class(jvm, "io.delta.package"):
        delta = _plain(str(jvm.io.delta.package.VERSION()))
    return _plain(spark), scala, delta


def _plain(text: str) -> str:
    found = re.match(r"\d+\.\d+(\.\d+)?", text)
    return found[0] if found else text


def checkpoint_file_manager(jvm: Any) -> str | None:
    """Return the class that writes a query's state by Hadoop's FileSystem; None for a Spark that has it elsewhere."""
    return next((name for name in _CHECKPOINT_FILE_MANAGERS if has_class(jvm, name)), None)


def feed_arguments(relation: Any, session: Any, option: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of Delta's CDCReader.changesToBatchDF for the frame behind `relation`, newest Delta first.

    `session` is the JVM's, `option` Scala's Option.
    """
    snapshot = relation.snapshotWithSchemaMode().snapshot()
    first, last = relation.startingVersion().get(), relation.endingVersion().get()
    versions = (snapshot.deltaLog(), first, last, session)
    # False: files are compared only where the table has no feed, which its reader refuses before.
    rest = (option.apply(snapshot), False, option.empty())
    yield (*versions, relation.catalogTableOpt(), *rest)  # since 4.1
    yield (*versions, *rest)


def _minor(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def _text(minor: tuple[int, int]) -> str:
    return ".".join(map(str, minor))
