"""The classes of Spark's JVM, laid out ahead of time in one file (Java's AppCDS): a cold start is mostly loading them.

`bridge.demo.rehearsal` makes the file, once for a Java and a Spark; the JVM itself makes sure that it fits and goes
without it where it does not.
"""

from __future__ import annotations

import hashlib
import os
from importlib.metadata import version
from pathlib import Path

from bridge import jars

__all__ = ["archive", "java_options", "java_options_to_create"]

# What does not fit is no news to anybody who reads a log.
_SILENT = "-Xlog:cds*=off"


def archive() -> Path:
    """Where the file is for the Java and the Spark that are installed, or will be.

    Raises BridgeError when there is no Java."""
    java = Path(jars.java()).resolve()
    parts = [version("pyspark"), str(java), str(java.stat().st_mtime_ns if java.exists() else 0)]
    return jars.home() / "classes" / f"spark-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:12]}.jsa"


def java_options() -> str:
    """Java options with which a JVM takes its classes from the file; '' where there is none."""
    file = archive()
    return f"-XX:SharedArchiveFile={file} {_SILENT}" if _usable(file) and file.is_file() else ""


def java_options_to_create(file: Path) -> str:
    """Java options with which a JVM writes `file` when it ends; '' for a path that Java options cannot name."""
    return f"-XX:ArchiveClassesAtExit={file} {_SILENT}" if _usable(file) else ""


def _usable(file: Path) -> bool:
    return not any(c.isspace() or c in "\"'" for c in os.fspath(file))
