"""Local paths relative to the pipeline file; URIs as they are."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["resolved_path"]

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def resolved_path(base: Path, path: str) -> str:
    """A URI (`s3://...`, `dbfs:/...`) as it is; anything else absolute, relative paths against `base`."""
    if _URI.match(path):
        return path
    return os.path.normpath(base / path)
