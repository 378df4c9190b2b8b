"""Which of the jars that the bridge needs a Spark lacks: Delta, Spark's Kafka source and its Avro functions.

What users have given stays and is not fetched again: jars by `--jars` or `spark.jars`, modules by `--packages` or
`spark.jars.packages`, jars in the image of their Spark. Only for what is missing the bridge asks Ivy (see `jars`).
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bridge import jars
from bridge.errors import BridgeError, DefinitionError
from bridge.spark_versions import SCALA, TESTED, check_pair, delta_coordinate, has_class, running_versions
from bridge.store_jars import STORES, fetch_store_jars, hadoop_version

JARS, PACKAGES = "spark.jars", "spark.jars.packages"


@dataclass(frozen=True)
class _Extension:
    artifact: str
    """The name of the Maven module up to the version of Scala, or of Spark and Scala."""
    class_name: str

    def is_in_name(self, name: str) -> bool:
        """Whether `name` is the file of one of its jars, or a coordinate `group:artifact:version`."""
        return re.search(rf"(?:^|[/:]){self.artifact}(?:_\d+\.\d+)+[-:]", name) is not None

    def is_in_jar(self, jar: str) -> bool:
        """Whether a jar holds the class. One that this machine cannot open is judged by its name."""
        file = Path(jar.removeprefix("file://").removeprefix("file:").removeprefix("local:"))
        try:
            with zipfile.ZipFile(file) as opened:
                return f"{self.class_name.replace('.', '/')}.class" in opened.namelist()
        except (OSError, zipfile.BadZipFile):
            return self.is_in_name(jar)


@dataclass(frozen=True)
class _Client(_Extension):
    """The client of an object store, whose module has no version of Scala in its name."""

    def is_in_name(self, name: str) -> bool:
        return re.search(rf"(?:^|[/:]){self.artifact}[-:]", name) is not None


# In the order of jars.spark_coordinates().
_EXTENSIONS = (
    _Extension("delta-spark", "io.delta.sql.DeltaSparkSessionExtension"),
    _Extension("spark-sql-kafka-0-10", "org.apache.spark.sql.kafka010.KafkaSourceProvider"),
    _Extension("spark-avro", "org.apache.spark.sql.avro.AvroDataToCatalyst"),
)

_CLIENTS = {
    "s3a": _Client("hadoop-aws", STORES["s3a"]),
    "abfs": _Client("hadoop-azure", STORES["abfs"]),
    "abfss": _Client("hadoop-azure", STORES["abfss"]),
    "gs": _Client("gcs-connector", STORES["gs"]),
}


def joined(*lists: str | None) -> str:
    """Return the entries of comma-separated lists in their order, each once."""
    entries = (entry.strip() for text in lists for entry in (text or "").split(","))
    return ",".join(dict.fromkeys(entry for entry in entries if entry))


def missing_jars(conf: Mapping[str, str], stores: Collection[str] = ()) -> list[str]:
    """Return the jars to add to a Spark that is about to start on this machine with the settings `conf`.

    `stores` are the schemes of the object stores that it is to reach. Raises BridgeError for versions that do not fit,
    and for jars that cannot be fetched.
    """
    coordinates = jars.spark_coordinates()
    given, packages = _entries(conf.get(JARS)), _entries(conf.get(PACKAGES))
    shipped = _shipped_jars()
    wanted = [
        coordinate
        for coordinate, extension in zip(coordinates, _EXTENSIONS, strict=True)
        if not any(map(extension.is_in_name, (*packages, *shipped)))
        and not any(map(extension.is_in_jar, given))
    ]
    lacking = [
        scheme
        for scheme in stores
        if not any(map(_CLIENTS[scheme].is_in_name, (*packages, *shipped)))
        and not any(map(_CLIENTS[scheme].is_in_jar, given))
    ]
    return _fetched(wanted) + [str(jar) for jar in fetch_store_jars(lacking, shipped_hadoop())]


def shipped_hadoop() -> str:
    """Return the version of Hadoop in the Spark that PySpark starts; empty if it is not known."""
    return hadoop_version(_shipped_jars())


def add_missing_jars(jvm: Any, stores: Collection[str] = ()) -> list[str]:
    """Add what it lacks to the class path of a JVM that spark-submit started, and return these jars.

    `stores` as for `missing_jars`. Executors get the jars by `spark.jars`, which is left to the caller. The versions
    are those of the Spark that runs. Raises BridgeError for versions that do not fit, with the `--packages` to add.
    """
    lacking = [scheme for scheme in stores if not has_class(jvm, STORES[scheme])]
    missing = [extension for extension in _EXTENSIONS if not has_class(jvm, extension.class_name)]
    spark, scala, delta = running_versions(jvm)
    if delta is not None:
        _check_running(spark, delta)
    if not missing and not lacking:
        return []
    coordinates = _coordinates_for(spark, scala, delta)
    wanted = [c for c, extension in zip(coordinates, _EXTENSIONS, strict=True) if extension in missing]
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if missing and not hasattr(loader, "addURL"):
        raise BridgeError(f"{_names(missing)} not on the class path: add --packages {','.join(wanted)}")
    fetched = _fetched(wanted)
    if lacking:
        fetched += map(
            str, fetch_store_jars(lacking, str(jvm.org.apache.hadoop.util.VersionInfo.getVersion()))
        )
    for jar in fetched:
        loader.addURL(jvm.java.io.File(jar).toURI().toURL())
    return fetched


def refuse_jars_after_start(conf: Mapping[str, str]) -> None:
    """Raise DefinitionError for jars among the settings of a verb whose JVM spark-submit has started already."""
    options = {JARS: "--jars", PACKAGES: "--packages"}
    for key, option in options.items():
        if key in conf:
            raise DefinitionError(
                f"--conf {key}: under spark-submit the class path is fixed before the verb begins; give it to "
                f"spark-submit, as {option} or --conf, before the script"
            )


def _coordinates_for(spark: str, scala: str, delta: str | None) -> list[str]:
    if scala != SCALA:
        raise BridgeError(
            f"Spark {spark} runs here with Scala {scala}, and the bridge knows jars for Scala {SCALA} only: give "
            f"spark-submit those of your Spark by --packages or --jars: {', '.join(e.artifact for e in _EXTENSIONS)}"
        )
    delta = delta or _installed_delta(spark)
    _check_running(spark, delta)
    return jars.spark_coordinates((spark, delta))


def _installed_delta(spark: str) -> str:
    try:
        return version("delta-spark")
    except PackageNotFoundError:
        raise BridgeError(
            f"Delta is not on the class path, and delta-spark is not installed here: {_way_out(spark)}"
        ) from None


def _check_running(spark: str, delta: str) -> None:
    try:
        check_pair(spark, delta)
    except BridgeError as refused:
        raise BridgeError(
            f"Spark {spark} runs here, with Delta {delta} of the class path or of the package delta-spark: "
            f"{refused}; or {_way_out(spark)}"
        ) from None


def _way_out(spark: str) -> str:
    fitting = [delta_coordinate(s, d) for s, d in TESTED if s.split(".")[:2] == spark.split(".")[:2]] or [
        "a Delta for this Spark"
    ]
    return f"add --packages {fitting[0]} to spark-submit"


def _fetched(coordinates: Sequence[str]) -> list[str]:
    return [str(jar) for jar in jars.fetch("spark", coordinates, beside_spark=True)] if coordinates else []


def _entries(text: str | None) -> list[str]:
    return [entry for entry in joined(text).split(",") if entry]


def _shipped_jars() -> list[str]:
    """The names of the jars of the Spark that PySpark starts: SPARK_HOME's, else those of its own package."""
    home = os.environ.get("SPARK_HOME")
    folder = Path(home) / "jars" if home else jars.pyspark_jars()
    return [jar.name for jar in folder.glob("*.jar")]


def _names(extensions: Sequence[_Extension]) -> str:
    verb = "is" if len(extensions) == 1 else "are"
    return f"{', '.join(e.artifact for e in extensions)} {verb}"
