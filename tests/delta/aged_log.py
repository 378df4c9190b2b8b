"""Makes the log of a table old: commits and removed files by the thousands, without writing or removing a file."""

from __future__ import annotations

import json
import time
from pathlib import Path

from deltalake import DeltaTable

from bridge.delta.table import Table
from bridge.log_layout import commit_file, log_folder


def age(table: Table, *, commits: int, removed: int) -> None:
    """Add `commits` that together remove `removed` files which the table never had, and a checkpoint, which names all
    of them for a week."""
    folder = str(table.target.path)
    opened = DeltaTable(folder)
    now, first = int(time.time() * 1000), opened.version() + 1
    for number in range(commits):
        names = range(number * removed // commits, (number + 1) * removed // commits)
        info = {"timestamp": now, "operation": "OPTIMIZE", "operationParameters": {}}
        lines = [{"commitInfo": info}, *({"remove": _removed(name, now)} for name in names)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        Path(log_folder(folder), commit_file(first + number)).write_text(text)
    opened.update_incremental()
    opened.create_checkpoint()


def _removed(number: int, now: int) -> dict[str, object]:
    return {
        "path": f"part-{number:08}.parquet",
        "deletionTimestamp": now,
        "dataChange": False,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": 1000,
    }
