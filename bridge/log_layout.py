"""Names the files of a table's transaction log, as the Delta protocol does ("File Types" in PROTOCOL.md).

A log is the folder `_delta_log` of the table. It holds a commit of each version, checkpoints of some, and checksums:
of versions (Spark's `N.crc`), and of single files (Hadoop's `.N.json.crc`).
"""

from __future__ import annotations

import re

LOG_FOLDER = "_delta_log"

_VERSIONED = re.compile(r"(\d{20})\.(?:json|checkpoint\.\S+)")
_CHECKSUM = re.compile(r"\.?(\d{20})\.(?:\S+\.)?crc")


def log_folder(table_folder: str) -> str:
    """The folder of the log of the table in `table_folder` (a path or a URI)."""
    return f"{table_folder.rstrip('/')}/{LOG_FOLDER}"


def commit_file(version: int) -> str:
    """The name of the commit of a version, e.g. `00000000000000000007.json`."""
    return f"{version:020}.json"


def commit_path(version: int) -> str:
    """The path of the commit of a version in the table's folder."""
    return f"{LOG_FOLDER}/{commit_file(version)}"


def version_of(name: str) -> int | None:
    """The version of a commit or a checkpoint (classic, multi-part or V2); None for any other file."""
    match = _VERSIONED.fullmatch(name)
    return int(match[1]) if match else None


def checksum_version(name: str) -> int | None:
    """The version to which a checksum belongs; None for any other file."""
    match = _CHECKSUM.fullmatch(name)
    return int(match[1]) if match else None
