"""Flink as a peer, in one JVM on this machine: `python -m benchmarks.flink` (`make bench-peers`) fetches it once.

Its libraries come from PyPI (apache-flink-libraries), its connectors from Maven, both into BRIDGE_HOME. The runner
(FlinkSql.java) is compiled then, too, so that no run pays for that.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from bridge import jars

VERSION = "2.0.2"
AVRO = "2.0.0"
"""The newest release of Flink 2.0's avro format that Maven's mirrors have."""
_CONNECTORS = (
    "org.apache.flink:flink-sql-connector-kafka:4.0.1-2.0",
    f"org.apache.flink:flink-sql-avro:{AVRO}",
    f"org.apache.flink:flink-sql-avro-confluent-registry:{AVRO}",
    "org.apache.paimon:paimon-flink-2.0:2.0.0",
    "org.apache.flink:flink-shaded-hadoop-2-uber:2.8.3-10.0",
)
_RUNNER = Path(__file__).with_name("FlinkSql.java")
_OPENED = (
    *(
        "java.lang",
        "java.lang.invoke",
        "java.io",
        "java.math",
        "java.net",
        "java.nio",
        "java.text",
        "java.time",
    ),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks"),
)
"""Packages of Java that Flink reflects upon (conf/config.yaml of its distribution)."""
_LOGGING = """\
rootLogger.level = $level
rootLogger.appenderRef.console.ref = console
appender.console.name = console
appender.console.type = CONSOLE
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %-5p %c{1} %m%n
"""


class Flink:
    """A Flink that was fetched."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def command(
        self,
        place: Path,
        statements: Sequence[str],
        settings: Mapping[str, str],
        *,
        memory: str = "2g",
        runner: Path | None = None,
    ) -> list[str]:
        """The command that runs `statements` to their end, with as much heap as the bridge has. Its files are put into
        `place`, which is new. `runner` is the Java source of what runs them, FlinkSql.java by default."""
        source = runner or _RUNNER
        place.mkdir(parents=True)
        defaults = {
            "parallelism.default": str(os.cpu_count() or 1),
            "execution.checkpointing.dir": (place / "checkpoints").as_uri(),
            "taskmanager.memory.managed.size": "512m",
            "taskmanager.memory.network.max": "256m",
        }
        (place / "statements.sql").write_text("\n--\n".join(statements))
        (place / "flink.yaml").write_text(
            "\n".join(f"{key}: {value}" for key, value in (defaults | dict(settings)).items())
        )
        files = [place / "statements.sql", place / "flink.yaml"]
        return self.program(source, place, files, memory=memory, level="WARN")

    def program(
        self,
        source: Path,
        place: Path,
        arguments: Sequence[Path | str],
        *,
        memory: str = "2g",
        level: str = "OFF",
    ) -> list[str]:
        """The command that runs a Java program with Flink's libraries; its file has the name of its class. The settings
        of its log are put into `place`."""
        (place / "log4j2.properties").write_text(log_settings(level))
        libraries = sorted((self._folder / "lib").glob("*.jar"))
        classes = [_compiled(self._folder, source), *libraries, *_connectors()]
        opened = [
            argument
            for package in _OPENED
            for argument in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")
        ]
        return [
            *(jars.java(), f"-Xmx{memory}", *opened),
            f"-Dlog4j.configurationFile={place / 'log4j2.properties'}",
            *("-cp", os.pathsep.join(map(str, classes)), source.stem, *map(str, arguments)),
        ]


def found() -> Flink | None:
    """The one that was fetched; None where there is none, as `make bench-peers` has not run here."""
    return Flink(_folder()) if _folder().is_dir() else None


def fetch() -> Flink:
    """Fetch Flink where it is not there yet. Raises CalledProcessError when pip or javac fails, BridgeError when the
    connectors cannot be had."""
    _connectors()
    folder = _folder()
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".flink-") as scratch:
            made = Path(scratch, "flink")
            made.mkdir()
            _libraries(Path(scratch, "download"), made / "lib")
            made.rename(folder)
    _compiled(folder, _RUNNER)
    return Flink(folder)


def log_settings(level: str) -> str:
    """Returns the properties of log4j: messages from `level` on go to the standard error stream."""
    return Template(_LOGGING).substitute(level=level)


def _folder() -> Path:
    return jars.home() / f"flink-{VERSION}"


def _compiled(folder: Path, source: Path) -> Path:
    """The folder of a compiled program; another version of its source is compiled anew."""
    classes = folder / f"{source.stem}-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not classes.is_dir():
        with tempfile.TemporaryDirectory(dir=folder, prefix=".classes-") as scratch:
            made = Path(scratch, "classes")
            _compile(folder / "lib", source, made)
            made.rename(classes)
    return classes


def _connectors() -> list[Path]:
    return jars.fetch("flink", _CONNECTORS, transitive=False)


def _libraries(download: Path, lib: Path) -> None:
    package = f"apache-flink-libraries=={VERSION}"
    options = [
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-binary",
        ":all:",
        "--no-build-isolation",
    ]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "--dest", str(download), package], check=True
    )
    (archive,) = download.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(download, filter="data")
    (libraries,) = download.glob("*/deps/lib")
    shutil.move(libraries, lib)


def _compile(lib: Path, source: Path, classes: Path) -> None:
    classes.mkdir()
    javac = Path(jars.java()).with_name("javac")
    path = os.pathsep.join(map(str, lib.glob("*.jar")))
    subprocess.run([str(javac), "-cp", path, "-d", str(classes), str(source)], check=True)


if __name__ == "__main__":
    fetch()
    print(f"Flink {VERSION} is in {_folder()}")
