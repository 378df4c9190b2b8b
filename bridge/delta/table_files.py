"""Gives the files of a table that delta-rs has opened as a file system of Arrow, on local disks and object stores."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow.fs import FileSystem

__all__ = ["table_files"]


def table_files(target: DeltaTable) -> FileSystem:
    """Return a file system whose root is the table's folder. Names in it are those of the disk or store, not URIs."""
    from pyarrow.fs import LocalFileSystem, PyFileSystem, SubTreeFileSystem

    uri = urlsplit(target.table_uri)
    if uri.scheme in ("", "file"):
        return SubTreeFileSystem(unquote(uri.path), LocalFileSystem())
    from deltalake.fs import DeltaStorageHandler

    return PyFileSystem(DeltaStorageHandler.from_table(target._table))
