"""The AppCDS archive of Spark's classes, which shortens the JVM's start: loading classes takes most of its time.

`bridge.demo.rehearsal` creates the archive once for each Java and each installed Spark. The JVM itself verifies that
the archive matches, and ignores it otherwise.
"""

from __future__ import annotations

import hashlib
import os
from importlib.metadata import version
from pathlib import Path

from bridge import jars

# An archive that does not match is not worth a message.
_SILENT = "-Xlog:cds*=off"


def archive() -> Path:
    """Return the archive's path for the installed Java and Spark, whether it exists or not.

    Raises BridgeError without Java."""
    java = Path(jars.java()).resolve()
    parts = [
        version("pyspark"),
        str(jars.pyspark_jars()),
        str(java),
        str(java.stat().st_mtime_ns if java.exists() else 0),
    ]
    return jars.home() / "classes" / f"spark-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:12]}.jsa"


def java_options() -> str:
    """Return the Java options that use the archive; '' without one."""
    file = archive()
    return f"-XX:SharedArchiveFile={file} {_SILENT}" if _usable(file) and file.is_file() else ""


def java_options_to_create(file: Path) -> str:
    """Return the Java options that create the archive `file` at exit; '' for a path with spaces or quotes."""
    return f"-XX:ArchiveClassesAtExit={file} {_SILENT}" if _usable(file) else ""


def _usable(file: Path) -> bool:
    return not any(c.isspace() or c in "\"'" for c in os.fspath(file))
