"""Checks the storage locations of a pipeline at the start of a run, when tables given by name have a folder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from bridge.backend import backend_of
from bridge.config.storage_locations import StorageLocation, refuse_overlaps, storage_locations
from bridge.definition import Definition, DeltaTarget
from bridge.delta.table import exists, handle
from bridge.errors import BridgeError


def check_storage_locations(spark: SparkSession, definition: Definition) -> None:
    """Raise DefinitionError when two storage locations of the pipeline are the same, or one contains the other.

    `config.load` checks the same, but knows neither the folder of a table given by name nor what a path without a
    scheme means to Spark. Writes nothing. Leaves out a table whose folder is not known yet (another catalog chooses
    it).
    """
    results = definition.quality.results if definition.quality else None
    targets = (definition.delta, definition.quarantine, results, definition.run.state)
    locations = {}
    for target in targets:
        if target is not None and target.table is not None:
            location = _location(spark, target)
            if location is not None:
                locations[target.table] = location
    refuse_overlaps([_qualified(spark, spot) for spot in storage_locations(definition, locations)])


def _location(spark: SparkSession, target: DeltaTarget) -> str | None:
    assert target.table is not None
    try:
        if exists(spark, target):
            return str(handle(spark, target).detail().select("location").collect()[0][0])
    except BridgeError:
        return None  # opening the table raises the error
    try:
        state: Any = spark._jsparkSession.sessionState()
        name = state.sqlParser().parseTableIdentifier(target.table)
        return str(state.catalog().defaultTablePath(name))
    except Exception:
        return None


def _qualified(spark: SparkSession, spot: StorageLocation) -> StorageLocation:
    """With the scheme of Spark's default file system where the path has none, except for files that Python opens."""
    if spot.path is None or spot.kind.is_file:
        return spot
    try:
        return replace(spot, path=backend_of(spark).files.qualified(spot.path))
    except Exception:
        return spot  # a file system that Spark has no jar for: opening the location raises the error
