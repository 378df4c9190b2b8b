"""Resolves paths in the pipeline file."""

from __future__ import annotations

import re

from bridge.user_files import resolved

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def is_uri(path: str) -> bool:
    """Returns whether `path` is a URI (`s3a://...`, `dbfs:/...`), not a path of a file system of this machine."""
    return _URI.match(path) is not None


def resolved_path(base: str, path: str) -> str:
    """Returns a URI (`s3://...`, `dbfs:/...`) unchanged, and any other path as seen from `base`: an absolute path, or
    a URI where `base` is a folder on an object store."""
    return path if is_uri(path) else resolved(base, path)
