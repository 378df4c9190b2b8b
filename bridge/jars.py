"""Java parts by Maven coordinates: derived from the installed Python packages, fetched once, kept in a folder.

Ivy does the fetching, from the copy that ships inside pyspark, so a machine with Python and Java needs nothing
else. `python -m bridge.jars` fetches everything ahead of time (that is what `make setup` calls).

BRIDGE_HOME          where jars are kept (default: ~/.cache/changelog-bridge)
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
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from bridge.errors import BridgeError

__all__ = [
    "broker_coordinates",
    "fetch",
    "fetch_application",
    "home",
    "java",
    "registry_coordinate",
    "spark_coordinates",
]

KAFKA_BROKER = "4.3.1"
SCHEMA_REGISTRY = "3.0.9"
_SCALA = "2.13"
_ATTEMPTS = 3


def spark_coordinates() -> list[str]:
    """What Spark needs besides itself, in the versions that match the installed pyspark and delta-spark."""
    spark, delta = version("pyspark"), version("delta-spark")
    return [
        f"io.delta:delta-spark_{_SCALA}:{delta}",
        f"org.apache.spark:spark-sql-kafka-0-10_{_SCALA}:{spark}",
        f"org.apache.spark:spark-avro_{_SCALA}:{spark}",
    ]


def broker_coordinates() -> list[str]:
    """The Kafka broker and its storage tool."""
    return [f"org.apache.kafka:kafka_{_SCALA}:{KAFKA_BROKER}", f"org.apache.kafka:kafka-tools:{KAFKA_BROKER}"]


def registry_coordinate() -> str:
    """The schema registry, as an archive that holds all it needs: group:artifact:version:classifier:type."""
    return f"io.apicurio:apicurio-registry-app:{SCHEMA_REGISTRY}:all:tar.gz"


def home() -> Path:
    """The folder that keeps jars between runs (BRIDGE_HOME)."""
    return Path(os.environ.get("BRIDGE_HOME") or Path.home() / ".cache" / "changelog-bridge")


def java() -> str:
    """The java command: of JAVA_HOME where that is set, else the one on PATH.

    Raises BridgeError when there is none.
    """
    if os.environ.get("JAVA_HOME"):
        return str(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    found = shutil.which("java")
    if not found:
        raise BridgeError("no java found: install Java 17 and put it on PATH, or set JAVA_HOME")
    return found


def fetch(name: str, coordinates: Sequence[str], *, transitive: bool = True) -> list[Path]:
    """The jars of `coordinates` with all they need at run time, as local paths in alphabetical order; without
    `transitive` these jars alone.

    Fetched at most once per set of coordinates; the folder appears whole or not at all. Jars that pyspark
    itself ships are not in the folder of `spark`. Raises BridgeError with Ivy's last words when it fails.
    """

    def jars(scratch: Path) -> Path:
        settings = None if transitive else _without_poms(scratch)
        _retrieve(
            coordinates, scratch, "".join(_module(c, transitive) for c in coordinates), settings=settings
        )
        if name == "spark":
            _drop_shipped(scratch / "jars")
        return scratch / "jars"

    return sorted(_once(name, coordinates, jars).glob("*.jar"))


def fetch_application(name: str, coordinate: str) -> Path:
    """The folder of a Java application that comes as one archive (see `registry_coordinate`), unpacked.

    Fetched and kept as `fetch` does it, but without what the archive's module says it depends on.
    """

    def unpacked(scratch: Path) -> Path:
        _retrieve([coordinate], scratch, _archive(coordinate), settings=_without_poms(scratch))
        (archive,) = (scratch / "jars").iterdir()
        with tarfile.open(archive) as packed:
            packed.extractall(scratch / "unpacked", filter="data")
        return scratch / "unpacked"

    return _once(name, [coordinate], unpacked)


def _without_poms(scratch: Path) -> Path:
    """Ivy settings that read no pom: the parents of some cannot be had everywhere, and a single artifact needs none."""
    settings = scratch / "ivysettings.xml"
    settings.write_text(
        "<ivysettings><settings defaultResolver='public'/><resolvers>"
        "<ibiblio name='public' m2compatible='true' usepoms='false'/></resolvers></ivysettings>"
    )
    return settings


def _once(name: str, coordinates: Sequence[str], make: Callable[[Path], Path]) -> Path:
    """The kept folder of `coordinates`; where there is none, the one that `make` makes in a scratch folder."""
    digest = hashlib.sha256("\n".join(coordinates).encode()).hexdigest()[:12]
    folder = home() / "jars" / f"{name}-{digest}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as scratch:
            made = make(Path(scratch))
            try:
                made.rename(folder)
            except OSError:
                if not folder.is_dir():  # another process may have finished first; then its copy serves
                    raise
    return folder


def _pyspark_jars() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise BridgeError("pyspark is not installed: pip install changelog-bridge")
    return Path(spec.origin).parent / "jars"


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
    coordinates: Sequence[str], scratch: Path, dependencies: str, *, settings: Path | None = None
) -> None:
    """Have Ivy put what `dependencies` say into `scratch`/jars; BRIDGE_IVY_SETTINGS wins over `settings`."""
    (scratch / "ivy.xml").write_text(
        "<ivy-module version='2.0' xmlns:m='http://ant.apache.org/ivy/maven'>"
        "<info organisation='bridge' module='jars'/>"
        "<configurations><conf name='default'/></configurations>"
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
    command = [java(), "-cp", str(_pyspark_jars() / "*"), "org.apache.ivy.Main", "-warn"]
    if chosen := os.environ.get("BRIDGE_IVY_SETTINGS") or settings:
        command += ["-settings", str(chosen)]
    command += ["-cache", str(home() / "ivy"), "-ivy", str(scratch / "ivy.xml"), "-confs", "default"]
    command += ["-types", "jar", "bundle", "tar.gz"]
    command += ["-retrieve", str(scratch / "jars" / "[artifact]-[revision](-[classifier]).[ext]")]
    for attempt in range(1, _ATTEMPTS + 1):
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            return
        if attempt == _ATTEMPTS:
            words = [line for line in (done.stdout + done.stderr).splitlines() if line.strip(" .\t")]
            raise BridgeError(
                f"could not fetch {', '.join(coordinates)}:\n  " + "\n  ".join(words[-8:]) + "\n"
                "check the network, or point BRIDGE_IVY_SETTINGS at an ivysettings.xml for your mirror"
            )


def _drop_shipped(folder: Path) -> None:
    shipped = {_artifact(jar) for jar in _pyspark_jars().glob("*.jar")}
    for jar in folder.glob("*.jar"):
        if _artifact(jar) in shipped:
            jar.unlink()


def _artifact(jar: Path) -> str:
    return jar.stem.rsplit("-", 1)[0]


def main() -> int:
    """Fetch all jars, saying what is done."""
    for name, coordinates in (("spark", spark_coordinates()), ("broker", broker_coordinates())):
        print(f"jars for {name}: {', '.join(coordinates)}", flush=True)
        found = fetch(name, coordinates)
        print(f"  {len(found)} jars in {found[0].parent}", flush=True)
    print(f"schema registry: {registry_coordinate()}", flush=True)
    print(f"  in {fetch_application('registry', registry_coordinate())}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
