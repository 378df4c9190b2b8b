"""Makes the actions of a batch's commit, and writes the commit if its version is still free."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from bridge.delta.deletion_vectors.data_files import DataFile
from bridge.delta.deletion_vectors.vectors import vector_file, write_vectors
from bridge.delta.snapshot import Action, stats_of
from bridge.delta.write_once import link_once, sync
from bridge.log_layout import commit_file, log_folder
from bridge.version import own_version

__all__ = ["append_info", "commit_info", "mark_rows", "removed", "sync_added", "write_commit"]

_SYNCS_AT_ONCE = 8


def mark_rows(
    table_folder: str, files: Iterable[DataFile], marked: Mapping[str, npt.NDArray[np.int64]]
) -> list[Action]:
    """Write the vectors of these files with more rows marked; return the actions, {name: action}, that replace the
    files. One without rows is removed."""
    vectors, kept = {}, {}
    actions: list[Action] = []
    for file in files:
        actions.append({"remove": removed(file.add)})
        vector = file.marked | BitMap(marked[file.name].tolist())
        if len(vector) < file.rows:
            vectors[file.name], kept[file.name] = vector, file
    for name, descriptor in write_vectors(table_folder, vectors).items():
        add = kept[name].add
        stats = {**stats_of(add), "numRecords": kept[name].rows, "tightBounds": False}
        actions.append(
            {
                "add": {
                    **add,
                    "dataChange": True,
                    "stats": json.dumps(stats, ensure_ascii=False, separators=(",", ":")),
                    "deletionVector": dict(descriptor),
                }
            }
        )
    return actions


def removed(add: Action) -> Action:
    """The `remove` action of a file that the table has."""
    wanted: tuple[str, ...] = ("path", "size", "tags", "deletionVector")
    kept = {key: add[key] for key in wanted if key in add}
    return {
        **kept,
        "deletionTimestamp": int(time.time() * 1000),
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
    }


def commit_info(
    read_version: int, user_metadata: str, key: Sequence[str], metrics: Mapping[str, int]
) -> Action:
    """The `commitInfo` of a MERGE by `key`; `metrics` have the names of Spark's MERGE."""
    predicate = json.dumps([f"{name} = {name}" for name in key])
    return _info("MERGE", {"predicate": predicate}, read_version, user_metadata, metrics)


def append_info(read_version: int, user_metadata: str, adds: Sequence[Action], rows: int) -> Action:
    """The `commitInfo` of an append of the files of `adds`, which have `rows` rows. It reads nothing of the table."""
    sizes = sum(int(add["size"]) for add in adds)
    metrics = {"numFiles": len(adds), "numOutputRows": rows, "numOutputBytes": sizes}
    return _info("WRITE", {"mode": "Append", "partitionBy": "[]"}, read_version, user_metadata, metrics)


def _info(
    operation: str,
    parameters: Mapping[str, str],
    read_version: int,
    user_metadata: str,
    metrics: Mapping[str, int],
) -> Action:
    appends = operation == "WRITE"
    return {
        "timestamp": int(time.time() * 1000),
        "operation": operation,
        "operationParameters": dict(parameters),
        "readVersion": read_version,
        "isolationLevel": "Serializable",
        "isBlindAppend": appends,
        "operationMetrics": {name: str(value) for name, value in metrics.items()},
        "userMetadata": user_metadata,
        "engineInfo": f"changelog-bridge/{own_version()}",
        "txnId": str(uuid.uuid4()),
    }


def write_commit(table_folder: str, version: int, actions: Sequence[Mapping[str, Any]]) -> bool:
    """Write the commit, all of it or nothing; False, with nothing written, if another writer has that version.

    The files that it adds are on the disk before it is, so that a loss of power leaves no commit without its rows.
    Raises ValueError, with nothing written, if the log lacks the version before: a log with a gap cannot be read."""
    log = Path(log_folder(table_folder))
    if version > 0 and not (log / commit_file(version - 1)).exists():
        raise ValueError(f"{log}: there is no version {version - 1}, so version {version} would leave a gap")
    text = "".join(json.dumps(action, ensure_ascii=False, separators=(",", ":")) + "\n" for action in actions)
    sync_added(table_folder, actions)
    return link_once(log / commit_file(version), text)


def sync_added(table_folder: str, actions: Sequence[Mapping[str, Any]]) -> None:
    """Put the new files of a commit, and their names in their folders, on the disk: each file and folder once."""
    known = {action["remove"]["path"] for action in actions if "remove" in action}
    files: dict[Path, None] = {}
    for action in actions:
        for added in (action[name] for name in ("add", "cdc") if name in action):
            if added["path"] not in known:
                files[Path(table_folder, unquote(added["path"]))] = None
            vector = added.get("deletionVector") or {}
            if vector.get("storageType") == "u":
                files[vector_file(table_folder, vector)] = None
    folders = dict.fromkeys(folder for file in files for folder in _up_to(file.parent, Path(table_folder)))
    if files:
        # What a disk is asked for at the same time it writes together.
        # Shared by threads: nothing; each opens a file of its own.
        with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
            list(pool.map(sync, (*files, *folders)))


def _up_to(folder: Path, top: Path) -> list[Path]:
    """The folder and those above it, of which each may be new, up to `top`."""
    return [folder] if folder == top or top not in folder.parents else [folder, *_up_to(folder.parent, top)]
