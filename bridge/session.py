"""The Spark session a pipeline runs in.

On a laptop or in a container the bridge starts Spark itself. Under spark-submit it completes the session that is
being built. On Databricks (or in any process with a session already) it uses that session and changes nothing in
it: pipelines always work in a child session with settings of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from bridge import appcds, jars
from bridge.errors import BridgeError

__all__ = ["build_session", "child_session", "log_file", "session_settings"]

_EVERYWHERE = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # On, each column that Python makes tells the JVM the line it comes from: seven calls more, thousands in a batch.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # A batch has some 160 generated classes. Of Spark's 100 none would be left when the next batch wants it, and each
    # would be compiled again, and be slow again, in every batch.
    "spark.sql.codegen.cache.maxEntries": "1000",
}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Fifty tasks to read the log of a small table cost more than the batch.
    "spark.databricks.delta.snapshotPartitions": "2",
}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def log_file() -> Path:
    """Where Spark's own log goes when the bridge starts Spark: BRIDGE_LOG, or bridge.log in BRIDGE_HOME."""
    return Path(os.environ.get("BRIDGE_LOG") or jars.home() / "logs" / "bridge.log").absolute()


def build_session(
    app_name: str, *, master: str | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A session with Delta and the Kafka source, in UTC; see the module's words for which one.

    `conf` wins over the bridge's own settings; neither changes a session that exists already. Spark's log
    goes to `log_file()` and not to the terminal. Raises BridgeError when the Java parts cannot be had, or Spark finds
    its heap too small.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return child_session(active)
    under_submit = "PYSPARK_GATEWAY_PORT" in os.environ
    builder = SparkSession.builder.appName(app_name)
    settings = dict(_EVERYWHERE)
    found = [str(p) for p in jars.fetch("spark", jars.spark_coordinates())]
    if under_submit:
        _extend_class_path(found)
    else:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings |= {**_LOCAL, "spark.master": master or os.environ.get("SPARK_MASTER") or "local[*]"}
        settings["spark.driver.memory"] = os.environ.get("SPARK_DRIVER_MEMORY", "2g")
        settings[_JAVA_OPTIONS] = _java_options(conf or {})
    settings["spark.jars"] = ",".join(found)
    for key, value in _merged(settings, conf or {}).items():
        builder = builder.config(key, value)
    with _quiet_start() if not under_submit else _as_it_is():
        try:
            session = builder.getOrCreate()
        except Py4JJavaError as failed:
            if "INVALID_DRIVER_MEMORY" not in str(failed.java_exception):
                raise
            raise BridgeError(
                "Spark does not start with so little memory: give spark.driver.memory 500m or more"
            ) from failed
    return child_session(session)


def _merged(ours: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str]:
    """`conf` wins, but Java options add up: ours say where the log goes."""
    merged = {**ours, **conf}
    if _JAVA_OPTIONS in ours and _JAVA_OPTIONS in conf:
        merged[_JAVA_OPTIONS] = f"{ours[_JAVA_OPTIONS]} {conf[_JAVA_OPTIONS]}"
    return merged


def child_session(spark: SparkSession) -> SparkSession:
    """A new session on the same Spark with its own settings: time zone UTC, and for local Spark few partitions.

    Temporary settings of a pipeline (Delta's txnAppId among them) never leak into the parent.
    """
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "UTC")
    # A format's expressions are deep (variables in variables); the deepest need more rounds than Spark's 100.
    own.conf.set("spark.sql.analyzer.maxIterations", "1000")
    # What Spark writes by itself (INT96) delta-rs misreads before 1678 and after 2261 (`delta/moments.py`).
    own.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    # Longer methods are never compiled by the JVM: from there on Spark is faster with several short ones.
    own.conf.set("spark.sql.codegen.hugeMethodLimit", "8000")
    if str(spark.sparkContext.master).startswith("local"):
        own.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    return own


@contextmanager
def session_settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session for one statement; afterwards they are what they were."""
    before = [(key, spark.conf.get(key, None)) for key in wanted]
    try:
        for key, value in wanted.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before:
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _extend_class_path(found: list[str]) -> None:
    """Let a JVM that spark-submit started without --packages see the jars."""
    SparkContext._ensure_initialized()
    jvm = SparkContext._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName("io.delta.sql.DeltaSparkSessionExtension", True, loader)
        return
    except Exception:  # py4j wraps ClassNotFoundException; absence is what is asked here
        pass
    if not hasattr(loader, "addURL"):
        raise BridgeError(
            "Delta is not on the class path: add --packages " + ",".join(jars.spark_coordinates())
        )
    for jar in found:
        loader.addURL(jvm.java.io.File(jar).toURI().toURL())


def _java_options(conf: Mapping[str, str]) -> str:
    # A JVM that is to write its classes down takes none.
    quick = "" if "ArchiveClassesAtExit" in conf.get(_JAVA_OPTIONS, "") else appcds.java_options()
    return f"{_logging_options()} {quick}".strip()


def _logging_options() -> str:
    log = log_file()
    log.parent.mkdir(parents=True, exist_ok=True)
    config = log.with_suffix(".log4j2.properties")
    config.write_text(_LOG4J.format(file=log))
    return f"-Dlog4j2.configurationFile={config.as_uri()}"


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Give the JVM the log file for its standard output and error, which it inherits (Delta's VACUUM talks to the
    former); Python keeps the terminal."""
    sys.stdout.flush()
    sys.stderr.flush()
    terminals = {stream: os.dup(stream) for stream in (1, 2)}
    log = log_file().with_suffix(".stderr.log")
    sink = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    try:
        for stream in terminals:
            os.dup2(sink, stream)
        yield
    finally:
        for stream, terminal in terminals.items():
            os.dup2(terminal, stream)
            os.close(terminal)
        os.close(sink)
