"""Names the bridge's own tables, folders and files: beside a table, in its folder, and in `run.checkpoint`.

    lake/orders                          the table of the pipeline
    lake/orders/_bridge/consumers/       feed consumers: a file for each publish
    lake/orders/_bridge/deleted/<id>/<order>  deleted keys of the table with this id in one order, a Delta table
    lake/orders_quarantine               quarantine
    lake/orders_quality                  results of quality checks

    <run.checkpoint>/ingest.lease.json   lease of one side: `ingest` or `publish`
    <run.checkpoint>/ingest/<run>/state  Spark's state of a streaming query, for one run
    <run.checkpoint>/publish/            publish log: a file for each batch
    <run.checkpoint>/publish.partitions.json

    rows of <run.state>                  the same names, below that of the pipeline
    consumers/<id>/<pipeline>.json       there: feed consumers of the table with this id

Names are part of the format on disk: a newer bridge must find what an older one wrote.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable

QUARANTINE_SUFFIX = "_quarantine"
"""Follows the table's name or path where `ingest.quarantine` names no place."""

RESULTS_SUFFIX = "_quality"
"""Follows the table's name or path where `quality.results` names no place."""

SCRIPT_STATE = "bridge-state"
"""The folder of states beside a script or job that names no other."""

PUBLISH_LOG = "publish"
"""The folder of a publish log in `run.checkpoint`."""

PARTITION_COUNTS = "publish.partitions.json"
"""The partition counts that the topics of a publish had when it last looked."""

OWNER_FILE = "_bridge_owner.json"
"""Marks a folder that the bridge made, and names the pipeline it made it for (docs/adr/024)."""

_PUBLISH_LOG_FILE = re.compile(r"(\d{20})\.json")


def consumers_folder(table_folder: str) -> str:
    """The folder of feed consumers. VACUUM skips folders whose names begin with an underscore."""
    return f"{table_folder.rstrip('/')}/_bridge/consumers"


def deleted_folder(table_folder: str, table_id: str, names: Iterable[str], resync: str) -> str:
    """The table of deleted keys with these columns, in any order, since `resync`, a run; "" where none began it anew.

    A table that takes the place of another one has an id of its own.
    """
    order = hashlib.sha256(json.dumps([*sorted(names), resync]).encode()).hexdigest()[:16]
    return f"{table_folder.rstrip('/')}/_bridge/deleted/{table_id}/{order}"


def consumers_of(table_id: str) -> str:
    """The folder of feed consumers of a table, among the names in a table of states."""
    return f"consumers/{table_id}"


def consumer_file(pipeline: str) -> str:
    """The name of a feed consumer's file."""
    return f"{pipeline}.json"


def consumer_of(name: str) -> str | None:
    """The pipeline of a feed consumer's file; None for any other file, e.g. a scratch file or a checksum."""
    return name.removesuffix(".json") if name.endswith(".json") and not name.startswith(".") else None


def lease_name(side: str) -> str:
    """The name of the lease of `ingest` or `publish`; in the folder of a state, that of the whole `script` or `job`."""
    return f"{side}.lease.json"


def lease_file(checkpoint: str, side: str) -> str:
    """The lease of a side in its folder."""
    return _in(checkpoint, lease_name(side))


def claim_file(name: str, digest: str, attempt: int) -> str:
    """The name of the file, beside the one with this name, by which one of several runs wins the right to replace it
    while its text has this digest."""
    return f"{name.removesuffix('.json')}.{digest}.{attempt}.claim"


def runs_folder(checkpoint: str, verb: str) -> str:
    """The parent of the folders that runs of `verb` make, one each, and remove."""
    return _in(checkpoint, verb)


def state_folder(run_folder: str) -> str:
    """Spark's state of the streaming query of one run."""
    return f"{run_folder}/state"


def publish_log_folder(checkpoint: str) -> str:
    """The folder of a publish log."""
    return _in(checkpoint, PUBLISH_LOG)


def publish_log_file(batch: int) -> str:
    """The name of the file with the progress after a batch."""
    return f"{batch:020}.json"


def publish_log_batch(name: str) -> int | None:
    """The batch of a file of a publish log; None for any other file."""
    match = _PUBLISH_LOG_FILE.fullmatch(name)
    return int(match[1]) if match else None


SCRATCH_ATTEMPTS = 100
"""How often a file is written again whose scratch file is gone, which runs that begin delete."""


def scratch_name(name: str) -> str:
    """A hidden name, never used before, for a file that is to be renamed to `name` once it is complete."""
    return f".{name}.{uuid.uuid4().hex}.tmp"


def is_scratch(name: str, of: str = "") -> bool:
    """Whether `scratch_name` made the name for a file whose own name begins with `of`."""
    return name.startswith(f".{of}") and re.search(r"\.[0-9a-f]{32}\.tmp$", name) is not None


def is_owner_file(name: str) -> bool:
    """Whether a file marks a folder as the bridge's, or is about to be renamed to one that does."""
    return name == OWNER_FILE or is_scratch(name, OWNER_FILE)


def is_run_folder(name: str) -> bool:
    """Whether a folder in `runs_folder` has the name of a run."""
    return re.fullmatch(r"[0-9a-f]{12}", name) is not None


def _in(checkpoint: str, name: str) -> str:
    return f"{checkpoint.rstrip('/')}/{name}"


def safe_name(name: str) -> str:
    """A name of a script or of a table in it as a part of paths and of names of pipelines. Other names stay other."""
    cleaned = re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip("._-") or "x"
    return name if cleaned == name else f"{cleaned}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
