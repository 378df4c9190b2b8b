"""Makes the actions of a batch's commit, and writes the commit if its version is still free."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from bridge.lake.data_files import DataFile, write_vectors
from bridge.lake.snapshot import Action, stats_of
from bridge.lake.store import Store
from bridge.log_layout import commit_path
from bridge.version import own_version


def mark_rows(
    store: Store, files: Iterable[DataFile], marked: Mapping[str, npt.NDArray[np.int64]]
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
    for name, descriptor in write_vectors(store, vectors).items():
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


def write_commit(store: Store, version: int, actions: Sequence[Mapping[str, Any]]) -> bool:
    """Write the commit, all of it or nothing; False, with nothing written, if another writer has that version.

    The files that it adds are there before it is: `Store.create` has written them. See `refuse_gap`."""
    text = "".join(json.dumps(action, ensure_ascii=False, separators=(",", ":")) + "\n" for action in actions)
    return store.put_if_absent(commit_path(version), text.encode())


def refuse_gap(store: Store, version: int) -> None:
    """Raise ValueError if the log lacks the version before: a log with a gap cannot be read.

    For a moment before `write_commit`, while the files of the commit are written: a store that is far away takes as
    long for this look as for the commit."""
    if version > 0 and store.head(commit_path(version - 1)) is None:
        raise ValueError(
            f"{store.location}: there is no version {version - 1}, so version {version} would leave a gap"
        )
