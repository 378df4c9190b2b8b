"""Resolves paths in the pipeline file."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["resolved_path"]

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def resolved_path(base: Path, path: str) -> str:
    """Returns a URI (`s3://...`, `dbfs:/...`) unchanged, and any other path as an absolute path relative to `base`."""
    if _URI.match(path):
        return path
    return os.path.normpath(base / path)
