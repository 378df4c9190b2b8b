"""Chooses where the state of a pipeline is: in rows of `run.state`, else in files of `run.checkpoint`."""

from __future__ import annotations

from pyspark.sql import SparkSession

from bridge.backend import Feature, backend_of
from bridge.definition import Definition, DeltaTarget
from bridge.delta.file_state import FileState
from bridge.delta.state_store import StateStore
from bridge.delta.table_state import TableState
from bridge.errors import DefinitionError


def state_of(spark: SparkSession, definition: Definition) -> StateStore:
    """The state of a pipeline. Raises BridgeError for a folder that this process does not reach, and for one
    that does not stay."""
    if definition.run.state is None:
        backend = backend_of(spark)
        reason = backend.can(Feature.CLIENT_DISK)
        if reason is not None and backend.files.local_path(definition.run.checkpoint) is not None:
            raise DefinitionError(
                f"{definition.name!r}: `run.checkpoint: {definition.run.checkpoint}` keeps no state: {reason}"
            )
        return FileState(spark, definition.run.checkpoint)
    return table_state(spark, definition.run.state, definition.name)


def table_state(spark: SparkSession, target: DeltaTarget, scope: str = "") -> TableState:
    """The state in a table, made once for a session: each has a session of its own."""
    made: dict[tuple[str | None, ...], TableState] = vars(spark).setdefault("_bridge_states", {})
    place = target.path, target.table, scope
    if (found := made.get(place)) is None:
        found = made[place] = TableState(spark, target, scope)
    return found
