"""Several pipelines in one table: each merges into columns of its own (`delta.merge-columns`, ADR 037).

A table property for each of them, `bridge.merge-columns.PIPELINE`, holds its key and its columns as JSON. So a claim is
an atomic commit, every pipeline sees all claims, and a claim outlives the log of the batches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.delta.delta_errors import retry_conflicts
from bridge.delta.log_description import TableDescription
from bridge.delta.schema_evolution import merge_schema
from bridge.delta.table import (
    Table,
    create_if_absent,
    described,
    exists,
    open_table,
    set_properties,
    unset_properties,
)
from bridge.delta.table_checks import (
    OF_EACH_PIPELINE,
    OWN_COLUMNS_PREFIX,
    PIPELINE_PROPERTY,
    moved_properties,
    refuse_clustering,
    refuse_identities,
    refuse_schema_mismatch,
    refuse_unfit_properties,
    sql_name,
)
from bridge.errors import TableError
from bridge.schema import quote


@dataclass(frozen=True)
class Claim:
    """What one pipeline writes in a table."""

    key: tuple[str, ...]
    columns: tuple[str, ...]

    def to_json(self) -> str:
        """The value of the table property."""
        return json.dumps({"key": self.key, "columns": self.columns})


def claims(target: object, properties: Mapping[str, str]) -> dict[str, Claim]:
    """The claims in the properties of a table, by pipeline. Raises TableError for one that cannot be read."""
    found = {}
    for name, text in properties.items():
        if not name.startswith(OWN_COLUMNS_PREFIX):
            continue
        pipeline = name.removeprefix(OWN_COLUMNS_PREFIX)
        try:
            fields = json.loads(text)
            found[pipeline] = Claim(tuple(fields["key"]), tuple(fields["columns"]))
        except (ValueError, TypeError, KeyError):
            raise TableError(
                f"table {target}: the table property {name!r} is not as the bridge wrote it; UNSET it, and the next "
                f"ingest of pipeline {pipeline!r} sets it again"
            ) from None
    return found


def open_shared_table(
    spark: SparkSession,
    target: DeltaTarget,
    fields: Sequence[T.StructField],
    *,
    pipeline: str,
    key: Sequence[str],
) -> Table:
    """Open the table in which `pipeline` merges into the columns `target.merge_columns`; create it where it is absent.

    Claims the columns for the pipeline, then adds those that the table lacks (NULL in the rows that exist), each in a
    commit of its own; a run that finds both done commits nothing. Types are widened under `target.merge_schema`. A
    table that belonged to this pipeline alone becomes one that others may share.

    Raises TableError where another pipeline has claimed one of the columns, merges by another key, or has the table for
    itself; where a column outside the key is NOT NULL; and as `open_table` and `claim` do.
    """
    wanted = Claim(tuple(key), target.merge_columns)
    if not exists(spark, target):
        mark = {OWN_COLUMNS_PREFIX + pipeline: wanted.to_json()}
        try:
            create_if_absent(spark, target, fields, pipeline=pipeline, mark=mark)
        except TableError:
            if not exists(spark, target):  # else another pipeline has created it meanwhile
                raise
    found = described(spark, target)
    refuse_unfit(target, found, fields, pipeline, wanted)
    _claim(spark, target, found, pipeline, wanted)
    if target.merge_schema or any(f.name not in found.schema.names for f in fields):
        _commit(
            target,
            lambda: merge_schema(spark, target, fields, pipeline=pipeline, widen=target.merge_schema),
            "adding columns",
        )
    return open_table(spark, target, fields, extra_columns="unused")


def refuse_unfit(
    target: DeltaTarget,
    found: TableDescription,
    fields: Sequence[T.StructField],
    pipeline: str,
    wanted: Claim,
) -> None:
    """Raise TableError for a table into whose columns the pipeline cannot merge; changes nothing."""
    _refuse_owned(target, found.properties, pipeline, wanted)
    refuse_unfit_properties(target, {**found.properties, OWN_COLUMNS_PREFIX + pipeline: ""}, pipeline)
    refuse_identities(target, [f.name for f in fields], found.identities)
    refuse_clustering(target, found.clustered_by)
    present = [f for f in fields if f.name in found.schema.names or f.name in wanted.key]
    if not target.merge_schema:
        refuse_schema_mismatch(target, found.schema, present, extra_columns="unused")
    for f in found.schema.fields:
        if f.name not in wanted.key and f.name not in found.identities and not f.nullable:
            raise TableError(
                f"table {target}: column {f.name!r} is NOT NULL, but a row that only another pipeline has "
                f"(delta.merge-columns) is NULL there; allow that:\n"
                f"  ALTER TABLE {sql_name(target)} ALTER COLUMN {quote(f.name)} DROP NOT NULL"
            )


def _refuse_owned(target: DeltaTarget, properties: Mapping[str, str], pipeline: str, wanted: Claim) -> None:
    """Raise TableError where the table, or one of the columns, is another pipeline's."""
    owner = properties.get(PIPELINE_PROPERTY, pipeline)
    if owner != pipeline:
        raise TableError(
            f"table {target} belongs to pipeline {owner!r} alone, not {pipeline!r}: set `delta.merge-columns` in the "
            f"file of {owner!r}, too, and run its ingest first; or give this one another table"
        )
    for other, claim in claims(target, properties).items():
        if other == pipeline:
            continue
        if set(claim.key) != set(wanted.key):
            raise TableError(
                f"table {target}: pipeline {other!r} merges by the PRIMARY KEY ({', '.join(claim.key)}), and pipeline "
                f"{pipeline!r} by ({', '.join(wanted.key)}): the rows of one table have one key. Change the DDL, or "
                "give this pipeline another table"
            )
        taken = {name.lower() for name in claim.columns}
        both = [name for name in wanted.columns if name.lower() in taken]
        if both:
            raise TableError(
                f"table {target}: column {both[0]!r} is named by two pipelines in `delta.merge-columns`, {other!r} and "
                f"{pipeline!r}: each would overwrite the other's values. Leave it out of one DDL, or rename it there; "
                f"once {other!r} has ended for good, UNSET the table property {OWN_COLUMNS_PREFIX + other!r}"
            )


def _claim(
    spark: SparkSession, target: DeltaTarget, found: TableDescription, pipeline: str, wanted: Claim
) -> None:
    """Record the claim where the table does not have it. Of two pipelines that claim a column at the same time, at
    least one finds both claims afterwards, takes its own back, and raises TableError."""
    name = OWN_COLUMNS_PREFIX + pipeline
    before = found.properties.get(name)
    if before is None or claims(target, {name: before})[pipeline] != wanted:
        mark = {name: wanted.to_json(), **moved_properties(target, found.properties)}
        _commit(target, lambda: set_properties(spark, target, mark), "claiming columns")
        try:
            _refuse_owned(target, described(spark, target).properties, pipeline, wanted)
        except TableError:
            _commit(target, lambda: _take_back(spark, target, name, before), "taking a claim back")
            raise
    if PIPELINE_PROPERTY in found.properties:
        names = (PIPELINE_PROPERTY, *OF_EACH_PIPELINE)
        _commit(target, lambda: unset_properties(spark, target, *names), "sharing the table")


def _take_back(spark: SparkSession, target: DeltaTarget, name: str, before: str | None) -> None:
    if before is None:
        unset_properties(spark, target, name)
    else:
        set_properties(spark, target, {name: before})


def _commit(target: DeltaTarget, commit: Callable[[], object], doing: str) -> None:
    retry_conflicts(target, commit, f"table {target}: {doing}", "start again when other jobs have ended")
