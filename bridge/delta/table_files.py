"""Where the files of a table are: its folder on a local disk, or a file system of Arrow where delta-rs opened it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow.fs import FileSystem

__all__ = ["local_folder", "scheme_of", "table_files"]


def local_folder(location: str) -> str | None:
    """The folder of a table on a local disk by `Table.location`; None for one that is elsewhere.

    The location is a Path of Hadoop as a text, in which no character is escaped: `%20`, `?` and `#` are in a name.
    """
    scheme, _, path = location.partition(":")
    if scheme != "file":
        return None
    return f"/{path.lstrip('/')}"


def scheme_of(location: str) -> str:
    """The file system of `Table.location`, for messages."""
    scheme, colon, _ = location.partition(":")
    return scheme if colon else "an unknown file system"


def table_files(target: DeltaTable) -> FileSystem:
    """Return a file system whose root is the table's folder. Names in it are those of the disk or store, not URIs."""
    from pyarrow.fs import LocalFileSystem, PyFileSystem, SubTreeFileSystem

    uri = urlsplit(target.table_uri)
    if uri.scheme in ("", "file"):
        return SubTreeFileSystem(unquote(uri.path), LocalFileSystem())
    from deltalake.fs import DeltaStorageHandler

    return PyFileSystem(DeltaStorageHandler.from_table(target._table))
