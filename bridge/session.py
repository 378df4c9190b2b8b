"""Builds the Spark session of a pipeline.

On a laptop or in a container the bridge starts Spark itself. Under spark-submit it adds its settings to the session
that is being built, and keeps what the command line gave. On Databricks (or in any process with a session) it uses that
session and does not change it: pipelines run in a child session with their own settings. Where pyspark is that of
Databricks Connect, it gives the session.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from bridge import appcds
from bridge.backend import ENGINE_ERRORS, Feature, backend_of, is_connect
from bridge.errors import BridgeError, DefinitionError
from bridge.log_store import LOG_STORES, add_log_store, log_store_jar, log_store_settings
from bridge.spark_jars import (
    JARS,
    PACKAGES,
    add_missing_jars,
    joined,
    missing_jars,
    refuse_jars_after_start,
    shipped_hadoop,
)
from bridge.spark_versions import has_class, is_databricks_connect
from bridge.watchdog import LOG4J, ends_with, log_file

SESSION_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # When on, each column made in Python sends its source line to the JVM: seven more calls, thousands in a batch.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # A batch has about 160 generated classes. A cache of 100 (Spark's default) would evict each class before the next
    # batch uses it, and every batch would compile all of them again.
    "spark.sql.codegen.cache.maxEntries": "1000",
}
"""Settings of every session that the bridge builds, on clusters and locally."""
_STARTED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark writes the plan of each query as text for the UI, in its longest form by default.
    "spark.sql.ui.explainMode": "simple",
}
"""Settings of a Spark that the bridge starts, beside those."""
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # The default of fifty tasks for the log of a small table costs more than the batch.
    "spark.databricks.delta.snapshotPartitions": "2",
}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_EXTENSIONS = "spark.sql.extensions"
_REMOTE = "spark.remote"
_PORT, _CONNECT_SECONDS = 15002, 20.0


def build_session(
    app_name: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    stores: Collection[str] = (),
) -> SparkSession:
    """Return a session with Delta and the Kafka source, in UTC: a child session of the one described at the module.

    `conf` overrides the bridge's own settings, except that jars, extensions and Java options are added to them; neither
    changes an existing session. What spark-submit was given is kept in the same way. Where the bridge starts Spark, its
    log goes to `log_file()`, not to the terminal. `stores` are the schemes of the object stores that the session is to
    reach (see `store_jars`). Raises BridgeError when the jars cannot be fetched or do not fit, or the heap is too small
    for Spark; DefinitionError for settings that come too late under spark-submit.

    With `spark.remote`, or SPARK_REMOTE in the environment, it is a session of that Spark Connect server, which has its
    own jars and settings. Databricks Connect finds its server in its own profile.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return child_session(active)
    remote = (conf or {}).get(_REMOTE) or os.environ.get("SPARK_REMOTE") or ""
    if is_databricks_connect() and not remote.startswith("sc:"):
        return _through_databricks(master, conf or {})
    if remote:
        return _connected(remote, master, conf or {})
    under_submit = "PYSPARK_GATEWAY_PORT" in os.environ
    find_settings = _submitted_settings if under_submit else _started_settings
    settings = find_settings(master, conf or {}, stores)
    builder = SparkSession.builder.appName(app_name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _quiet_start() if not under_submit else nullcontext():
        try:
            session = builder.getOrCreate()
        except Py4JJavaError as failed:
            if "INVALID_DRIVER_MEMORY" not in str(failed.java_exception):
                raise
            raise BridgeError(
                "Spark does not start with so little memory: set spark.driver.memory to 500m or more"
            ) from failed
    if (java := getattr(SparkContext._gateway, "proc", None)) is not None:
        ends_with(java.pid)
    return child_session(session)


def _through_databricks(master: str | None, conf: Mapping[str, str]) -> SparkSession:
    """Return a child session of the one that Databricks Connect finds: of the job, the notebook, or its profile."""
    if master is not None:
        raise DefinitionError(
            f"--master {master}: Databricks Connect starts no Spark; leave it out, or install "
            "'changelog-bridge[spark]' without databricks-connect"
        )
    try:
        session: SparkSession = import_module("databricks.connect").DatabricksSession.builder.getOrCreate()
    except Exception as failed:  # it raises errors of its SDK, of gRPC, and plain ones
        first = str(failed).partition("\n")[0].rstrip(".")[:300]
        raise BridgeError(
            f"no session of Databricks Connect: {first}; name the workspace and its compute by DATABRICKS_HOST and "
            "DATABRICKS_CLUSTER_ID or DATABRICKS_SERVERLESS_COMPUTE_ID=auto, by a profile (DATABRICKS_CONFIG_PROFILE), "
            "or another server by SPARK_REMOTE=sc://…"
        ) from failed
    return _with(conf, child_session(session))


def _with(conf: Mapping[str, str], child: SparkSession) -> SparkSession:
    """Set what the session of a server lacks of the settings that the user gave: not every client clones them."""
    for key, value in conf.items():
        if key != _REMOTE and backend_of(child).setting(key) != value:
            _set(child, key, value)
    return child


def _connected(remote: str, master: str | None, conf: Mapping[str, str]) -> SparkSession:
    """Return a child session of one at the Spark Connect server `remote`."""
    if master is not None:
        raise DefinitionError(
            f"--master {master}: {_REMOTE} or SPARK_REMOTE names a server; leave out one of them"
        )
    place = remote.partition(";")[0]
    server = urlsplit(place)
    builder = SparkSession.builder.remote(remote)
    try:
        if not getproxies():  # the client itself would try for ten minutes
            socket.create_connection((server.hostname or "", server.port or _PORT), _CONNECT_SECONDS).close()
        for key, value in conf.items():
            builder = builder.config(key, value)
        return _with(conf, child_session(builder.getOrCreate()))
    except ImportError as missing:  # pyspark's own error names one package, and several are needed
        raise BridgeError(
            f"Spark Connect needs more packages: pip install 'changelog-bridge[connect]': {missing}"
        ) from None
    except (OSError, *ENGINE_ERRORS) as failed:
        first = str(failed).splitlines()[0][:300]
        raise BridgeError(f"no session of Spark Connect at {place}: {first}") from failed


def submitted_settings() -> dict[str, str]:
    """Return what spark-submit was given, by --conf, --properties-file or its defaults; {} without spark-submit."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _submitted_settings(
    master: str | None, conf: Mapping[str, str], stores: Collection[str]
) -> dict[str, str]:
    """Return what to add to the settings of spark-submit, whose JVM runs already; its class path is extended."""
    if master is not None:
        raise DefinitionError(f"--master {master}: under spark-submit give --master to spark-submit")
    refuse_jars_after_start(conf)
    submitted = submitted_settings()
    jvm: Any = SparkContext._jvm
    added = [*add_missing_jars(jvm, stores), *add_log_store(jvm)]
    # No setting of the bridge replaces one of the user; lists get both.
    own = {key: value for key, value in SESSION_SETTINGS.items() if key not in submitted}
    own[_EXTENSIONS] = joined(submitted.get(_EXTENSIONS), SESSION_SETTINGS[_EXTENSIONS])
    if has_class(jvm, LOG_STORES["file"]):
        hadoop = str(jvm.org.apache.hadoop.util.VersionInfo.getVersion())
        own |= log_store_settings(stores, hadoop, {**submitted, **conf})
    if added:
        own[JARS] = joined(submitted.get(JARS), *added)
    return _merged(own, conf)


def _started_settings(master: str | None, conf: Mapping[str, str], stores: Collection[str]) -> dict[str, str]:
    """Return the settings of a Spark that the bridge starts."""
    master = master or conf.get("spark.master") or os.environ.get("SPARK_MASTER") or "local[*]"
    settings = {**SESSION_SETTINGS, **_STARTED, "spark.master": master}
    if master.startswith("local"):
        settings |= _LOCAL
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", conf.get("spark.pyspark.python") or sys.executable)
    settings["spark.driver.memory"] = os.environ.get("SPARK_DRIVER_MEMORY", "2g")
    settings[_JAVA_OPTIONS] = _java_options(conf)
    settings[JARS] = joined(*missing_jars(conf, stores), str(log_store_jar()))
    settings |= log_store_settings(stores, shipped_hadoop(), conf)
    return _merged(settings, conf)


def _merged(defaults: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with `conf` over `defaults`; of lists and Java options, which name the log, both."""
    merged = {**defaults, **conf}
    if _JAVA_OPTIONS in defaults and _JAVA_OPTIONS in conf:
        merged[_JAVA_OPTIONS] = f"{defaults[_JAVA_OPTIONS]} {conf[_JAVA_OPTIONS]}"
    for key in (JARS, PACKAGES, _EXTENSIONS):
        if key in defaults and key in conf:
            merged[key] = joined(conf[key], defaults[key])
    return merged


def child_session(spark: SparkSession) -> SparkSession:
    """Return a new session on the same Spark with its own settings: time zone UTC, and few partitions on local Spark.

    Temporary settings of a pipeline (such as Delta's txnAppId) never reach the parent.
    """
    backend = backend_of(spark)
    child = backend.child()
    _set(child, "spark.sql.session.timeZone", "UTC")
    if backend.can(Feature.SETTINGS) is not None:
        return child
    # A format's expressions are nested; the deepest need more iterations of the analyzer than Spark's 100.
    _set(child, "spark.sql.analyzer.maxIterations", "1000")
    # delta-rs misreads Spark's default, INT96, before 1678 and after 2261.
    _set(child, "spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    # The JVM does not compile longer methods, so Spark is faster with several short ones.
    _set(child, "spark.sql.codegen.hugeMethodLimit", "8000")
    if backend.master.startswith("local"):
        _set(child, "spark.sql.shuffle.partitions", str(backend.parallelism))
    return child


def is_local(spark: SparkSession) -> bool:
    """Whether Spark's tasks run on the driver's machine: `local[*]`, and `local-cluster`."""
    return backend_of(spark).master.startswith("local")


@contextmanager
def session_settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set session settings within the `with` block, and restore the previous ones after it.

    They make Spark faster: where the compute takes no settings, none is set. Raises BridgeError for a single one that a
    Spark Connect server refuses."""
    if backend_of(spark).can(Feature.SETTINGS) is not None:
        yield
        return
    before: list[tuple[str, str | None]] = []
    try:
        for key, value in values.items():
            old = spark.conf.get(key, None)
            _set(spark, key, value)
            before.append((key, old))
        yield
    finally:
        for key, old in before:
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _set(spark: SparkSession, key: str, value: str) -> None:
    try:
        spark.conf.set(key, value)
    except ENGINE_ERRORS as refused:
        if not is_connect(spark):
            raise
        raise BridgeError(
            f"the compute refuses the setting {key} ({str(refused)[:100]}): run on compute with standard or dedicated "
            "access mode, or where the bridge starts Spark"
        ) from refused


def _java_options(conf: Mapping[str, str]) -> str:
    # A JVM that creates the AppCDS archive cannot use one.
    cds_options = "" if "ArchiveClassesAtExit" in conf.get(_JAVA_OPTIONS, "") else appcds.java_options()
    return f"{_logging_options()} {cds_options}".strip()


def _logging_options() -> str:
    log = log_file()
    log.parent.mkdir(parents=True, exist_ok=True)
    config = log.with_suffix(".log4j2.properties")
    config.write_text(LOG4J.format(file=log, megabytes=20, kept=3))
    return f"-Dlog4j2.configurationFile={config.as_uri()}"


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Start the JVM with standard output and error in the log file; Delta's VACUUM writes to them.

    Python's own stay on the terminal."""
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
