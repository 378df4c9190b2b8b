"""Opens the table of a verb, and checks what a run requires before it reads or writes anything."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import overload

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.backend import Feature, require
from bridge.columns import KIND, POSITION, col, struct_type
from bridge.config import refuse_unpublishable, settings_without_effect
from bridge.definition import Definition, DeltaTarget, Topic, Truncate
from bridge.delta.column_owners import Claim, open_shared_table, refuse_unfit
from bridge.delta.ingest_progress import read_progress
from bridge.delta.schema_evolution import merge_schema, unchanged_fields
from bridge.delta.table import (
    Table,
    claim,
    create_table,
    described,
    exists,
    open_table,
    set_properties,
    unset_properties,
)
from bridge.delta.table_checks import (
    MEMORY_PROPERTY,
    PIPELINE_PROPERTY,
    SEMANTICS_PROPERTY,
    ExtraColumns,
    belongs_to,
    moved_properties,
    new_properties,
    property_of,
    semantics_property,
)
from bridge.delta.timeline import history_fields
from bridge.errors import DefinitionError, TableError
from bridge.history_columns import AppendHistory, History
from bridge.ingest_progress import IngestProgress
from bridge.offsets import Offsets
from bridge.partitioners import TASK_FREE
from bridge.rows import RowKind
from bridge.schema import ColumnRule, RowField, RowType, TableSchema

_RESYNC = "resync"
"""The key of SEMANTICS_PROPERTY while a resync changes it."""


def deletion_field(target: DeltaTarget) -> list[T.StructField]:
    """The column of `delta.soft-delete`; none without it."""
    return [] if target.soft_delete is None else [T.StructField(target.soft_delete, T.TimestampType())]


def table_fields(spark: SparkSession, schema: TableSchema) -> list[T.StructField]:
    """Return the Delta table's columns in DDL order, all nullable; computed ones with the type that Spark gives them.

    Raises DefinitionError for an expression Spark cannot resolve.
    """
    physical = tuple(RowField(c.name, c.type) for c in schema.physical)
    metadata = tuple(RowField(c.name, c.type) for c in schema.metadata)
    row = struct_type(RowType(physical + metadata))
    types = {f.name: f.dataType for f in row.fields}
    empty = spark.createDataFrame([], row) if schema.computed else None
    for column in schema.computed:
        assert empty is not None
        try:
            types[column.name] = empty.select(F.expr(column.spark)).schema[0].dataType
        except PySparkException as error:
            raise DefinitionError(
                f"computed column {column.name!r}: Spark cannot resolve {column.expression!r} over the columns "
                f"{', '.join(empty.columns)}"
            ) from error
    return [T.StructField(name, types[name]) for name in schema.names]


def ingested_fields(
    spark: SparkSession, definition: Definition, *, deletions: bool = True
) -> list[T.StructField]:
    """Return the columns of the table that the pipeline ingests into: those of the DDL, those of a history, and that of
    `delta.soft-delete` unless `deletions` is False."""
    target, fields = definition.delta, table_fields(spark, definition.topic.schema)
    history = history_fields(fields, target.history, target.sequence_by[0]) if target.history else []
    return [*fields, *history, *(deletion_field(target) if deletions else [])]


@overload
def ingest_table(spark: SparkSession, definition: Definition, *, any_semantics: bool = False) -> Table: ...
@overload
def ingest_table(spark: SparkSession, definition: Definition, *, changes: bool) -> Table | None: ...
def ingest_table(
    spark: SparkSession, definition: Definition, *, any_semantics: bool = False, changes: bool = True
) -> Table | None:
    """Open the table to ingest into, or create it. Raises TableError if another pipeline owns it, and unless
    `any_semantics` if its changes were applied by another `change_semantics`.

    Under `delta: {merge-schema: true}` its schema is changed to that of the definition first. With `merge-columns` it
    is opened as `column_owners.open_shared_table` does. The column of `soft-delete` is added to it, and is one of the
    result. A column that a user has added stays as it is in rows that are
    updated, and is null in rows that are inserted; a warning names it.

    Without `changes` raise what that would raise, and write nothing: None where the table would be created; columns
    that would be added or widened first are not among those of the table.
    """
    target, name, appends = definition.delta, definition.name, definition.topic.appends
    fields = ingested_fields(spark, definition)
    if ColumnRule.SUM in target.aggregate.values():
        # Elsewhere a batch may be merged twice, and would be added twice (txn_settings.merging).
        require(spark, Feature.SETTINGS, "a sum (delta.aggregate)")
    if changes and target.merge_columns:
        shared = open_shared_table(spark, target, fields, pipeline=name, key=definition.primary_key)
        return _alike(shared, definition, any_semantics=any_semantics, changes=True)
    if not exists(spark, target):
        if changes:
            return create_table(spark, target, fields, pipeline=name, appends=appends)
        new_properties(fields, target.properties, name, appends=appends)
        return None
    extra: ExtraColumns = "inserted as null"
    if target.history_columns:
        found = described(spark, target)
        has_columns = set(target.history_columns) <= set(found.schema.names)
        is_owned = found.properties.get(PIPELINE_PROPERTY) == name
        known = recorded_history(found.properties)
        is_alike = type(known) is type(target.history or target.append_history)
        if not has_columns and known is not None and is_alike and target.merge_schema:
            raise TableError(
                f"table {target} is a history in the columns {', '.join(known.columns)}, and `delta.history-columns` "
                "names others: set them as they were, or give the pipeline another table and another `run.checkpoint`"
            )
        if not has_columns and (is_owned or target.merge_schema):
            raise _other_history(target, known)
    if changes and target.merge_schema:
        merge_schema(spark, target, fields, pipeline=name, appends=appends)
    elif target.merge_columns or target.merge_schema:
        found = described(spark, target)
        if target.merge_columns:
            refuse_unfit(target, found, fields, name, Claim(definition.primary_key, target.merge_columns))
        fields, extra = unchanged_fields(found.schema, fields, widen=target.merge_schema), "unused"
    elif target.soft_delete is not None and target.soft_delete not in described(spark, target).schema.names:
        of_ddl = ingested_fields(spark, definition, deletions=False)
        present = open_table(spark, target, of_ddl, extra_columns=extra)
        present = claim(present, name, appends=appends, changes=False)
        if not any_semantics:
            refuse_other_semantics(present, definition)
        if not changes:
            return present
        merge_schema(spark, target, deletion_field(target), pipeline=name)
    table = open_table(spark, target, fields, extra_columns=extra)
    if target.merge_columns:
        table = replace(table, properties={**table.properties, **moved_properties(target, table.properties)})
        return _alike(table, definition, any_semantics=any_semantics, changes=False)
    known, now = recorded_history(table.properties), target.history or target.append_history
    if known is not None and (type(known), len(known.columns)) != (type(now), len(target.history_columns)):
        raise _other_history(target, known)
    table = claim(table, name, appends=appends, changes=changes)
    return _alike(table, definition, any_semantics=any_semantics, changes=changes)


def _alike(table: Table, definition: Definition, *, any_semantics: bool, changes: bool) -> Table:
    if not any_semantics:
        refuse_other_semantics(table, definition)
        if changes:
            record_semantics(table)
    return table


def _other_history(target: DeltaTarget, known: History | AppendHistory | None) -> TableError:
    is_one = "no history" if known is None else f"a history in the columns {', '.join(known.columns)}"
    return TableError(
        f"table {target} is {is_one}, and `delta.history` says otherwise: set it as it was, "
        "or give the pipeline another table and another `run.checkpoint`, as a resync changes no columns"
    )


def recorded_history(properties: Mapping[str, str]) -> History | AppendHistory | None:
    """What a table with these properties is as a history; None if it is no history."""
    semantics = json.loads(properties.get(SEMANTICS_PROPERTY, "{}"))
    if "history" not in semantics:
        return None
    columns = semantics["history-columns"].split(", ")
    return AppendHistory(*columns) if semantics["history"] == "append" else History(*columns)


def record_semantics(table: Table, memory: str | None = None) -> None:
    """Have the table say how its changes are applied, in a commit of its own where it does not. `memory` is the run
    whose resync has begun the memory of deleted keys anew."""
    target = table.target
    semantics, name = semantics_property(target), property_of(target, SEMANTICS_PROPERTY)
    if memory is None and table.properties.get(name) == semantics:
        return
    if semantics is None:
        unset_properties(table.spark, target, name)
    else:
        began = {} if memory is None else {property_of(target, MEMORY_PROPERTY): memory}
        set_properties(table.spark, target, {name: semantics, **began})


def record_running_resync(table: Table) -> None:
    """Have the table refuse all runs but a resync until `record_semantics`, in a commit of its own."""
    semantics = table.target.change_semantics
    kept = {key: value for key, value in semantics.items() if key.startswith("history")}
    running = json.dumps({_RESYNC: _shown(semantics), **kept}, ensure_ascii=False)
    name = property_of(table.target, SEMANTICS_PROPERTY)
    set_properties(table.spark, table.target, {name: running})


def refuse_other_semantics(table: Table, definition: Definition) -> None:
    """Raise TableError if this pipeline's changes were applied by another `change_semantics` than that of `definition`,
    and after a resync to another one that did not end."""
    found = table.properties.get(property_of(table.target, SEMANTICS_PROPERTY))
    if found == semantics_property(definition.delta) or read_progress(table, definition.name) is None:
        return
    before, now = json.loads(found) if found else {}, definition.delta.change_semantics
    if "truncate" not in before and before == {k: v for k, v in now.items() if k != "truncate"}:
        return  # no truncate has come yet, as it was refused
    if _RESYNC in before:
        raise TableError(
            f"table {table}: a resync to {before[_RESYNC]} did not end, and its rows may be of the semantics before it "
            "or after it; run `bridge resync FILE` again"
        )
    raise TableError(
        f"table {table}: its changes were applied with {_shown(before)}, and `delta` now has {_shown(now)}: its rows "
        f"would be of both. Set it as it was, or {_way_to_others(definition)}"
    )


def _way_to_others(definition: Definition) -> str:
    history = definition.delta.history
    if history is not None and history.system_to is not None:
        return "give the pipeline another table and another `run.checkpoint`"
    return "run `bridge resync FILE`, which makes the table equal to its topic by the new semantics"


def refuse_other_key(table: Table, definition: Definition, progress: IngestProgress) -> None:
    """Raise TableError if the last rows of this pipeline were merged by another PRIMARY KEY, or appended without one:
    later ones would not find them."""
    before, now = progress.key, () if definition.topic.appends else definition.row_key
    if before is None or set(before) == set(now):
        return
    way_out = (
        "give the pipeline another table and another `run.checkpoint`, or a script another 'pipeline.name'"
    )
    if now:
        way_out = (
            f"run `bridge resync FILE`, which makes the table equal to its topic by the new key, or {way_out}"
        )
    raise TableError(
        f"table {table}: its rows are {_by_key(before)}, and those of the DDL are {_by_key(now)}, so that a record "
        f"would not find the row that it changes. Set the PRIMARY KEY as it was, {way_out}"
    )


def _by_key(key: Sequence[str]) -> str:
    return f"identified by ({', '.join(key)})" if key else "without a PRIMARY KEY"


def _shown(semantics: Mapping[str, str]) -> str:
    return (
        ", ".join(f"`{key}: {value}`" for key, value in semantics.items())
        or "neither `sequence-by` nor others"
    )


def published_table(spark: SparkSession, definition: Definition) -> Table:
    """Open the table to publish, which must exist with all columns that a published record has; it may have more.

    VIRTUAL metadata columns and computed columns are not among them, as in Flink's sinks. Raises OptionError for
    columns that a record cannot contain, DefinitionError for a pipeline with `delta.merge-columns` or
    `change_semantics` other than `soft-delete`. By this one rows are hidden that are deleted; TableError where an
    ingest has marked such rows, and the pipeline neither has it nor the column. Under `publish.history: current` the
    rows of a history are hidden that are not valid any more; TableError for a table that is none.
    """
    refuse_unpublishable(definition.topic)
    for key in sorted(definition.delta.change_semantics.keys() - {"soft-delete"}):
        raise DefinitionError(
            f"{definition.name!r}: `delta.{key}` is about the changes of an ingest; a publish sends those of the "
            "table, in the order of its versions. Publish the table by a pipeline file without this key"
        )
    if definition.delta.merge_columns:
        raise DefinitionError(
            f"{definition.name!r}: `delta.merge-columns` is of an ingest, and its table has rows of other topics, too. "
            "Publish it by a pipeline file without this key, whose DDL has the columns to send"
        )
    schema = definition.topic.schema
    left_out = {c.name for c in schema.metadata if c.virtual} | {c.name for c in schema.computed}
    fields = [f for f in table_fields(spark, schema) if f.name not in left_out]
    deletions = deletion_field(definition.delta)
    table = open_table(spark, definition.delta, [*fields, *deletions], extra_columns="unused")
    if definition.publish.current_rows:
        return replace(table, hides_by=_ends_of_rows(table))
    refuse_part_of_history(table, definition.primary_key)
    if not deletions:
        refuse_unseen_deletions(
            table, "Set `delta: {{soft-delete: {0}}}`, by which it is a tombstone, or name {0!r} in the DDL"
        )
    return replace(table, fields=tuple(fields), hides_by=tuple(deletions))


def _ends_of_rows(table: Table) -> tuple[T.StructField, ...]:
    """The columns of a history with the ends of its rows, null in those that are valid now."""
    history = recorded_history(table.properties)
    if not isinstance(history, History):
        raise TableError(
            f"table {table} has no rows that were valid before (`delta.history` of its ingest); remove "
            "`publish.history: current`"
        )
    schema = described(table.spark, table.target).schema
    return tuple(schema[name] for name in history.ends)


def refuse_part_of_history(table: Table, key: Sequence[str]) -> None:
    """Raise TableError if the table is a history, of which `key` has not the columns of the starts, or of all changes
    that of their place: it would be taken for a table with one row for each key."""
    history = recorded_history(table.properties)
    if isinstance(history, AppendHistory):
        if key and not set(history.place) <= set(key):
            raise TableError(
                f"table {table} is a history (`delta.history: append`), in which several rows have the same "
                f"{', '.join(key)}: leave the PRIMARY KEY out, as rows are only added"
            )
    elif history is not None and key and (starts := [n for n in history.of_row if n not in key]):
        raise TableError(
            f"table {table} is a history (`delta.history`), in which several rows have the same {', '.join(key)}: set "
            f"the PRIMARY KEY to ({', '.join([*key, *starts])}), as a row begins at {starts[0]!r}. A DDL can "
            "have it if `delta.history-columns` of the ingest gives it a name without underscores at its beginning. To "
            "send the rows that are valid now by this key, set `publish: {history: current}`"
        )


def refuse_partitions(definition: Definition, offsets: Offsets) -> None:
    """Raise DefinitionError under `truncate: apply` for offsets of several partitions: Kafka does not say which records
    of the others come before a truncate, unless a sequence does."""
    partitions = len(offsets.by_partition)
    target = definition.delta
    if target.truncate is Truncate.APPLY and not target.sequence_by and partitions > 1:
        raise DefinitionError(
            f"{definition.name!r}: `delta.truncate: apply` needs a topic of one partition, and "
            f"{definition.topic.title} has {partitions}: which records of the others come before a truncate is not "
            "known. Set it to refuse or ignore, order changes by `delta.sequence-by`, or have the producer "
            "write to a topic of one partition"
        )


def refuse_unseen_deletions(table: Table, way_out: str) -> None:
    """Raise TableError if an ingest has marked rows as deleted (`delta.soft-delete`), in a column that is none of those
    to read, so that they would be taken for live ones. `way_out` names the column where it has {0}."""
    marked = json.loads(table.properties.get(SEMANTICS_PROPERTY, "{}")).get("soft-delete")
    if marked is not None and marked not in table.columns:
        raise TableError(
            f"table {table}: a row that has a value of {marked!r} is deleted, and would be taken for one that is not. "
            + way_out.format(marked)
        )


def publish_warnings(topic: Topic) -> list[str]:
    """Warnings about how this topic will be written."""
    warnings = list(settings_without_effect(topic, "publish"))
    if topic.key is None and topic.schema.primary_key and topic.sink.partitioner in TASK_FREE:
        warnings.append(
            "records have no key, so the changes of one row go to several partitions and readers see them in no fixed "
            "order; set 'key.format' and 'key.fields', or 'sink.partitioner' = 'fixed'"
        )
    return warnings


def refuse_retractions(changes: DataFrame, table: Table) -> None:
    """Raise TableError if `changes` update or delete rows and the topic only takes inserts."""
    first = changes.where(col(KIND) != RowKind.INSERT.value).select(KIND, f"{POSITION}.version").head()
    if first is not None:
        raise TableError(
            f"table {table}: version {first['version']} updates or deletes rows, and a 'kafka' table with an "
            "insert-only format doesn't support consuming update and delete changes: nothing was sent. Publish with "
            "'connector' = 'upsert-kafka', or start after that version (publish.start: version:N)"
        )


def open_whole_table(spark: SparkSession, definition: Definition) -> Table:
    """Open the table to read it. It must have every column of the definition, and may have more. Rows that
    `delta.soft-delete` has marked as deleted are hidden; none in a table without that column. So are rows of a history
    that are not valid any more, under `publish.history: current`."""
    fields, deletions = ingested_fields(spark, definition, deletions=False), deletion_field(definition.delta)
    table = open_table(spark, definition.delta, fields, extra_columns="unused", feed=False)
    if definition.publish.current_rows:
        return replace(table, hides_by=_ends_of_rows(table))
    if not deletions or deletions[0].name not in described(spark, definition.delta).schema.names:
        return table
    return replace(table, hides_by=tuple(deletions))


def open_ingested_table(table: Table, definition: Definition) -> tuple[IngestProgress, int] | None:
    """Read the ingest progress of this pipeline and the version that contains it; None before its first ingest."""
    if not belongs_to(table.properties, definition.name):
        return None
    return read_progress(table, definition.name)
