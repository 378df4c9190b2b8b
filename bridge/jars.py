"""Fetches jars by Maven coordinates, which follow from the installed Python packages, once into a folder.

Ivy fetches them, from the copy that pyspark ships, so a machine needs only Python and Java. `python -m bridge.jars`
fetches everything ahead of time, as `make setup` does.

BRIDGE_HOME          the folder of the jars (default: ~/.cache/changelog-bridge)
BRIDGE_IVY_SETTINGS  an ivysettings.xml, for machines that reach artifacts through a mirror
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from bridge.errors import BridgeError
from bridge.spark_versions import SCALA, check_pair, delta_coordinate, installed

KAFKA_BROKER = "4.3.1"
SCHEMA_REGISTRY = "3.0.9"
_ATTEMPTS = 3


def spark_coordinates(versions: tuple[str, str] | None = None) -> list[str]:
    """Return the coordinates of Spark's extensions: Delta, its Kafka source, its Avro functions.

    They match `versions` of Spark and Delta, or the installed pyspark and delta-spark. Raises BridgeError for a pair
    that does not fit.
    """
    spark, delta = versions or installed()
    check_pair(spark, delta)
    return [
        delta_coordinate(spark, delta),
        f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{spark}",
        f"org.apache.spark:spark-avro_{SCALA}:{spark}",
    ]


def broker_coordinates(version: str = KAFKA_BROKER) -> list[str]:
    """Return the coordinates of a Kafka broker and its storage tool."""
    return [f"org.apache.kafka:kafka_{SCALA}:{version}", f"org.apache.kafka:kafka-tools:{version}"]


def registry_coordinate() -> str:
    """Return the coordinate of the schema registry's archive: group:artifact:version:classifier:type."""
    return f"io.apicurio:apicurio-registry-app:{SCHEMA_REGISTRY}:all:tar.gz"


def home() -> Path:
    """Return the folder of files between runs (BRIDGE_HOME)."""
    return Path(os.environ.get("BRIDGE_HOME") or Path.home() / ".cache" / "changelog-bridge")


def java() -> str:
    """Return the java command: JAVA_HOME's if that is set, else the one on PATH.

    Raises BridgeError without one.
    """
    if os.environ.get("JAVA_HOME"):
        return str(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    command = shutil.which("java")
    if not command:
        raise BridgeError("no java found: install Java 17 and put it on PATH, or set JAVA_HOME")
    return command


def fetch(
    name: str,
    coordinates: Sequence[str],
    *,
    transitive: bool = True,
    beside_spark: bool = False,
    attempts: int = _ATTEMPTS,
) -> list[Path]:
    """Return the jars of `coordinates` and, with `transitive`, their run-time dependencies, in alphabetical order.

    Each set of coordinates is fetched at most once; its folder appears complete or not at all. `beside_spark` leaves
    out jars that pyspark itself ships. Raises BridgeError with Ivy's last lines after so many failed `attempts`.
    """

    def jars(scratch: Path) -> Path:
        settings = None if transitive else _without_poms(scratch)
        dependencies = "".join(_module(c, transitive) for c in coordinates)
        _retrieve(coordinates, scratch, dependencies, settings=settings, attempts=attempts)
        if beside_spark:
            _drop_shipped(scratch / "jars")
        return scratch / "jars"

    return sorted(_once(name, coordinates, jars).glob("*.jar"))


def fetch_application(name: str, coordinate: str) -> Path:
    """Return the folder of a Java application that is one archive (see `registry_coordinate`), unpacked.

    It is fetched as `fetch` does, but without the dependencies of the archive's module.
    """

    def unpacked(scratch: Path) -> Path:
        _retrieve([coordinate], scratch, _archive(coordinate), settings=_without_poms(scratch))
        (archive,) = (scratch / "jars").iterdir()
        with tarfile.open(archive) as packed:
            packed.extractall(scratch / "unpacked", filter="data")
        return scratch / "unpacked"

    return _once(name, [coordinate], unpacked)


def _without_poms(scratch: Path) -> Path:
    """Write Ivy settings that read no pom: some mirrors lack the parents of some, and a single artifact needs none."""
    settings = scratch / "ivysettings.xml"
    settings.write_text(
        "<ivysettings><settings defaultResolver='public'/><resolvers>"
        "<ibiblio name='public' m2compatible='true' usepoms='false'/></resolvers></ivysettings>"
    )
    return settings


def _once(name: str, coordinates: Sequence[str], make: Callable[[Path], Path]) -> Path:
    """Return the folder of `coordinates`; where it is missing, `make` creates it in a scratch folder."""
    digest = hashlib.sha256("\n".join(coordinates).encode()).hexdigest()[:12]
    folder = home() / "jars" / f"{name}-{digest}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as scratch:
            complete = make(Path(scratch))
            try:
                complete.rename(folder)
            except OSError:
                if not folder.is_dir():  # another process has finished first
                    raise
    return folder


def pyspark_jars() -> Path:
    """Return the folder of the jars that pyspark ships; SPARK_HOME's where pyspark belongs to a Spark there.

    Raises BridgeError without pyspark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise BridgeError("pyspark is not installed: pip install 'changelog-bridge[spark]'")
    folder = Path(spec.origin).parent / "jars"
    if not folder.is_dir() and os.environ.get("SPARK_HOME"):
        return Path(os.environ["SPARK_HOME"]) / "jars"
    return folder


def _module(coordinate: str, transitive: bool) -> str:
    """The module, with all that it needs at run time where that is `transitive`."""
    org, name, rev = map(quoteattr, coordinate.split(":"))
    if transitive:
        return f"<dependency org={org} name={name} rev={rev} conf='default->default(runtime),master'/>"
    return f"<dependency org={org} name={name} rev={rev} transitive='false' conf='default->default'/>"


def _archive(coordinate: str) -> str:
    """One artifact of a module, alone."""
    org, name, rev, classifier, type = map(quoteattr, coordinate.split(":"))
    return (
        f"<dependency org={org} name={name} rev={rev} transitive='false' conf='default->default'>"
        f"<artifact name={name} type={type} ext={type} m:classifier={classifier}/></dependency>"
    )


def _retrieve(
    coordinates: Sequence[str],
    scratch: Path,
    dependencies: str,
    *,
    settings: Path | None = None,
    attempts: int = _ATTEMPTS,
) -> None:
    """Let Ivy fetch `dependencies` into `scratch`/jars; BRIDGE_IVY_SETTINGS takes precedence over `settings`."""
    (scratch / "ivy.xml").write_text(
        "<ivy-module version='2.0' xmlns:m='http://ant.apache.org/ivy/maven'>"
        "<info organisation='bridge' module='jars'/>"
        "<configurations><conf name='default'/></configurations>"
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
    command = [java(), "-cp", str(pyspark_jars() / "*"), "org.apache.ivy.Main", "-warn"]
    if chosen := os.environ.get("BRIDGE_IVY_SETTINGS") or settings:
        command += ["-settings", str(chosen)]
    command += ["-cache", str(home() / "ivy"), "-ivy", str(scratch / "ivy.xml"), "-confs", "default"]
    command += ["-types", "jar", "bundle", "tar.gz"]
    command += ["-retrieve", str(scratch / "jars" / "[artifact]-[revision](-[classifier]).[ext]")]
    for attempt in range(1, attempts + 1):
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            return
        if attempt == attempts:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip(" .\t")]
            raise BridgeError(
                f"could not fetch {', '.join(coordinates)}:\n  " + "\n  ".join(lines[-8:]) + "\n"
                "check the network, or point BRIDGE_IVY_SETTINGS at an ivysettings.xml for your mirror"
            )


def _drop_shipped(folder: Path) -> None:
    shipped = {_artifact(jar) for jar in pyspark_jars().glob("*.jar")}
    for jar in folder.glob("*.jar"):
        if _artifact(jar) in shipped:
            jar.unlink()


def _artifact(jar: Path) -> str:
    return jar.stem.rsplit("-", 1)[0]


def main() -> int:
    """Fetch all jars and print their folders."""
    for name, coordinates in (("spark", spark_coordinates()), ("broker", broker_coordinates())):
        print(f"jars for {name}: {', '.join(coordinates)}", flush=True)
        fetched = fetch(name, coordinates, beside_spark=name == "spark")
        print(f"  {len(fetched)} jars in {fetched[0].parent}", flush=True)
    print(f"schema registry: {registry_coordinate()}", flush=True)
    print(f"  in {fetch_application('registry', registry_coordinate())}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
