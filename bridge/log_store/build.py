"""Builds `log-store.jar` from its sources: `python -m bridge.log_store.build`. It needs a JDK; nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from bridge import jars
from bridge.errors import BridgeError
from bridge.log_store import JAR
from bridge.store_jars import fetch_store_jars, hadoop_version

_FOLDER = Path(__file__).parent
_SOURCES = sorted(map(str, _FOLDER.glob("*.java")))
_LONG_AGO = (2020, 1, 1, 0, 0, 0)


def build(target: Path) -> None:
    """Compile the sources and write `target`; the same sources and compiler give the same bytes.

    Raises BridgeError, with the compiler's words, where it fails or is not there.
    """
    shipped = list(jars.pyspark_jars().glob("hadoop-client-*.jar"))
    path = [
        *shipped,
        *jars.fetch("spark", jars.spark_coordinates(), beside_spark=True),
        *fetch_store_jars(["s3a"], hadoop_version(jar.name for jar in shipped)),
    ]
    compiler = Path(jars.java()).with_name("javac")
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            *(str(compiler), "--release", "17", "-g:none", "-Xlint:all,-classfile,-path", "-Werror"),
            *("-cp", os.pathsep.join(map(str, path)), "-d", scratch, *_SOURCES),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise BridgeError(
                f"no {compiler}: install a JDK 17, or set JAVA_HOME to one, to build {JAR}"
            ) from None
        if done.returncode:
            raise BridgeError(f"the log store does not compile: {done.stderr or done.stdout}")
        classes = sorted(Path(scratch).rglob("*.class"))
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as jar:
            for compiled in classes:
                entry = zipfile.ZipInfo(compiled.relative_to(scratch).as_posix(), _LONG_AGO)
                jar.writestr(entry, compiled.read_bytes())


if __name__ == "__main__":
    build(_FOLDER / JAR)
    sys.exit(print(_FOLDER / JAR))
