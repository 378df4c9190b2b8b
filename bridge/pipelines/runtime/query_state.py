"""Spark's working state of one streaming run.

Structured Streaming requires a checkpoint. The bridge gives each run a fresh one and deletes it at the end, since
progress is in the table (docs/adr/001): a lost, stale or copied checkpoint cannot be mistaken for progress.
Only folders with the pipeline's mark are deleted (docs/adr/024): `run.checkpoint` may contain folders of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from bridge import bridge_folders, storage
from bridge.backend import backend_of
from bridge.definition import Definition
from bridge.errors import BridgeError
from bridge.offsets import Offsets
from bridge.small_files import SmallFiles
from bridge.spark_versions import checkpoint_file_manager

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@contextmanager
def query_state_folder(spark: SparkSession, definition: Definition, verb: str, run: str) -> Iterator[str]:
    """Create a folder below `run.checkpoint` for this run, and delete it at the end of the block.

    Folders that earlier runs of the same pipeline left behind are deleted, too, also those of a run that was killed
    before it had marked its folder, which are empty; no other folder is, whatever its name. What the query writes after
    a run that took over has deleted its folder is deleted as well.
    On a local disk it also sets how the session's streaming queries write there, unless that is set already. Raises
    BridgeError when the folder cannot be created.
    """
    checkpoint, pipeline = definition.run.checkpoint, definition.name
    if backend_of(spark).files.local_path(checkpoint) is not None and not spark.conf.get(_MANAGER, ""):
        # Spark's default starts a process for each symbolic link that it reads, some thirty in a batch, to make renames
        # atomic, which they are on a local disk anyway.
        manager = checkpoint_file_manager(spark._jvm)
        if manager is not None:
            spark.conf.set(_MANAGER, manager)
    parent = bridge_folders.runs_folder(checkpoint, verb)
    for left_behind in storage.list_names(spark, parent):
        folder = f"{parent}/{left_behind}"
        if not storage.delete_owned_folder(spark, folder, pipeline) and bridge_folders.is_run_folder(
            left_behind
        ):
            storage.delete_folder_without_owner(spark, folder)
    place = f"{parent}/{run}"
    try:
        storage.create_owned_folder(spark, place, pipeline)
    except Exception as failed:
        first = (str(failed).splitlines() or [""])[0][:300]
        raise BridgeError(
            f"run.checkpoint: {place} cannot be written: {type(failed).__name__}: {first}"
        ) from failed
    try:
        yield bridge_folders.state_folder(place)
    finally:
        if not storage.delete_owned_folder(spark, place, pipeline):
            # A run that took over has deleted it, and this run's query has written on, without a mark.
            storage.delete_folder(spark, bridge_folders.state_folder(place))
            storage.delete_folder_without_owner(spark, place)


def batch_end(spark: SparkSession, checkpoint: str, batch_id: int) -> Offsets:
    """Read the end offsets that Spark chose for a batch: exact, past transaction markers, for every partition.

    They are in the write-ahead offset log (version line, metadata line, one line per source), which Spark writes before
    it calls foreachBatch.
    """
    text = SmallFiles(spark, f"{checkpoint}/offsets").read(str(batch_id))
    version, _metadata, source = text.splitlines()[:3]
    if version != "v1":
        raise ValueError(f"Spark's offset log has version {version!r}; the bridge reads v1")
    return Offsets.from_json(source)
