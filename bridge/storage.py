"""The files of pipelines and tables where they are: on a local disk, in an object store, or where only Hadoop reaches.

`store_at` finds the store that has a table's files, as the driver and the tasks reach it: same place, same login as
Spark. Only what the options of the library object_store can say the same way is translated. Where a setting of Hadoop
means a request that the library would make otherwise (encryption, a proxy, an assumed role, a provider of credentials
of one's own), the place is left to Spark. The options hold secrets: they are never logged, and never part of an error.

Folders, among them those of Spark's checkpoints, are made and deleted through Hadoop's FileSystem.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from bridge.backend import Feature, Files, backend_of
from bridge.backend.hadoop import HadoopFiles, write_text
from bridge.bridge_folders import OWNER_FILE, is_owner_file
from bridge.lake.local_store import LocalStore, make_folder
from bridge.lake.remote_store import RemoteStore
from bridge.store_options import REMOTE, hadoop_options, misread_name
from bridge.ways import NotThisWay

if TYPE_CHECKING:
    from deltalake import DeltaTable


def store_at(spark: SparkSession, location: str) -> LocalStore | RemoteStore:
    """The store of a table by its `Table.location`.

    Credentials that Hadoop has not are looked up as `hadoop_options` says. Raises NotThisWay for a location that only
    Spark reaches.
    """
    if (reason := backend_of(spark).can(Feature.TABLE_FILES)) is not None:
        raise NotThisWay(reason)
    return store_of(location, backend_of(spark).files)


def store_of(location: str, files: Files) -> LocalStore | RemoteStore:
    """The store at a URI, whose login `files` knows. Raises as `store_at`."""
    scheme, _, path = location.partition(":")
    if scheme == "file":
        # A Path of Hadoop as a text, in which no character is escaped: `%20`, `?` and `#` are in a name.
        return LocalStore(f"/{path.lstrip('/')}")
    if scheme not in REMOTE or scheme == "gs":  # no server has shown that its client keeps the contract
        raise NotThisWay(f"the table is stored in {scheme_of(location)}, which only Spark reaches")
    return RemoteStore(location.rstrip("/"), hadoop_options(location, files.settings()))


def store_for_writing(spark: SparkSession, location: str) -> LocalStore | RemoteStore:
    """Do as `store_at` for a table that is written in the driver. Raises NotThisWay, too, for a path that
    delta-rs, which writes the checkpoints, takes for another one."""
    store = store_at(spark, location)
    if isinstance(store, LocalStore) and (misread := misread_name(store.folder)):
        raise NotThisWay(misread)
    return store


def scheme_of(location: str) -> str:
    """The file system of `Table.location`, for messages."""
    scheme, colon, _ = location.partition(":")
    return scheme if colon else "an unknown file system"


def opened_store(target: DeltaTable) -> LocalStore | RemoteStore:
    """The store of a table that delta-rs has opened."""
    uri = urlsplit(target.table_uri)
    if uri.scheme in ("", "file"):
        return LocalStore(unquote(uri.path).rstrip("/"))
    return RemoteStore(target.table_uri.rstrip("/"), target._storage_options or {})


def make_local_folder(spark: SparkSession, path: str | None) -> None:
    """Do as `make_folder` for a path that Spark was given, if it is one of a local disk."""
    backend = backend_of(spark)
    if path is None or backend.can(Feature.TABLE_FILES) is not None:
        return
    if (place := backend.files.local_path(path)) is not None:
        make_folder(place)


def open_path(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return Hadoop's file system of a path, and the path for it."""
    return _hadoop(spark).open(path)


def _hadoop(spark: SparkSession) -> HadoopFiles:
    files = backend_of(spark).files
    assert isinstance(
        files, HadoopFiles
    )  # only what runs streams asks, and `Feature.STREAMS` is refused before
    return files


def list_names(spark: SparkSession, folder: str) -> list[str]:
    """Return the names in `folder`, sorted; [] for a missing folder."""
    return backend_of(spark).files.names(folder)


def delete_folder(spark: SparkSession, folder: str) -> None:
    """Delete a folder with everything in it, if it exists: one that the caller knows to be its own."""
    system, where = open_path(spark, folder)
    system.delete(where, True)


def create_owned_folder(spark: SparkSession, folder: str, pipeline: str) -> None:
    """Create `folder`, which only `delete_owned_folder` of the same pipeline removes.

    Raises FileExistsError for a folder that has files."""
    if list_names(spark, folder):
        raise FileExistsError(f"{folder} holds files, so it cannot become a working folder of {pipeline!r}")
    system, where = open_path(spark, f"{folder}/{OWNER_FILE}")
    write_text(system, where, json.dumps({"pipeline": pipeline}))


def delete_owned_folder(spark: SparkSession, folder: str, pipeline: str) -> bool:
    """Delete a folder that `create_owned_folder` made for `pipeline`, with everything in it.

    Any other folder is left alone, and the result is False."""
    if _owner(spark, folder) != pipeline:
        return False
    system, where = open_path(spark, folder)
    for name in list_names(spark, folder):
        if name != OWNER_FILE:  # deleted last, so that an interrupted deletion can be repeated
            system.delete(open_path(spark, f"{folder}/{name}")[1], True)
    system.delete(where, True)
    return True


def delete_folder_without_owner(spark: SparkSession, folder: str) -> bool:
    """Delete a folder that a process left when it died before it had written the owner, or after it had deleted it.

    That is one which is empty, or has nothing but an owner's file that is not complete. Any other folder, and a file,
    is left alone, and the result is False."""
    system, where = open_path(spark, folder)
    if not system.exists(where) or not system.getFileStatus(where).isDirectory():
        return False
    names = list_names(spark, folder)
    if _owner(spark, folder) is not None or not all(map(is_owner_file, names)):
        return False
    for name in names:
        system.delete(open_path(spark, f"{folder}/{name}")[1], False)
    return bool(system.delete(where, False))


def _owner(spark: SparkSession, folder: str) -> str | None:
    system, where = open_path(spark, folder)
    if not system.exists(where) or not system.getFileStatus(where).isDirectory():
        return None
    try:
        owner = json.loads(_hadoop(spark).text(*open_path(spark, f"{folder}/{OWNER_FILE}")))
    except (ValueError, FileNotFoundError):
        return None
    name = owner.get("pipeline") if isinstance(owner, dict) else None
    return name if isinstance(name, str) else None
