"""Where the files of a table are: its folder on a local disk, or a file system of Arrow where delta-rs opened it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow.fs import FileSystem

__all__ = ["local_files", "local_folder", "scheme_of", "table_files"]


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
    uri = urlsplit(target.table_uri)
    if uri.scheme in ("", "file"):
        return local_files(unquote(uri.path))
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import PyFileSystem

    return PyFileSystem(DeltaStorageHandler.from_table(target._table))


def local_files(folder: str) -> FileSystem:
    """As `table_files`, of a table in a folder of this disk that nobody has opened."""
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    return SubTreeFileSystem(folder, LocalFileSystem())
