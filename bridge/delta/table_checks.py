"""What a table must be like before the bridge works on it: columns, properties, session settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.errors import DefinitionError, TableError
from bridge.schema import quote

__all__ = [
    "CHANGE_FEED_PROPERTY",
    "PIPELINE_PROPERTY",
    "is_on",
    "new_properties",
    "refuse_clustering",
    "refuse_hidden_loss",
    "refuse_names",
    "refuse_schema_mismatch",
    "refuse_unfit_properties",
    "sql_name",
]

PIPELINE_PROPERTY = "bridge.pipeline"
"""Table property that names the pipeline which ingests into the table."""

CHANGE_FEED_PROPERTY = "delta.enableChangeDataFeed"
_VECTORS = "delta.enableDeletionVectors"
_MAPPING = "delta.columnMapping.mode"
_APPEND_ONLY = "delta.appendOnly"
_FORGETS = "delta.setTransactionRetentionDuration"

_HIDES_LOSS = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
_NEEDS_MAPPING = frozenset(" ,;{}()\n\t=")


def is_on(properties: Mapping[str, str], key: str) -> bool:
    """A boolean table property as Delta reads it; absent is off."""
    return properties.get(key, "false").lower() == "true"


def sql_name(target: DeltaTarget) -> str:
    """The target as it stands in a SQL statement."""
    return target.table or "delta." + quote(str(target.path))


def new_properties(
    fields: Sequence[T.StructField], wanted: Mapping[str, str], pipeline: str, *, appends: bool = False
) -> dict[str, str]:
    """Properties of a table to be created: the bridge's own, `wanted` (delta.properties) on top.

    Raises DefinitionError for names and properties under which the bridge could not do its work.
    """
    refuse_names(fields)
    if PIPELINE_PROPERTY in wanted:
        raise DefinitionError(f"delta.properties: {PIPELINE_PROPERTY!r} is set by the bridge; leave it out")
    properties = {CHANGE_FEED_PROPERTY: "true", _VECTORS: "true"}
    if any(_NEEDS_MAPPING & set(name) for name in _all_names(T.StructType(list(fields)))):
        properties[_MAPPING] = "name"
    properties |= dict(wanted)
    if not is_on(properties, CHANGE_FEED_PROPERTY):
        raise DefinitionError(
            f"delta.properties: {CHANGE_FEED_PROPERTY!r} must stay on: without it the table's changes cannot be "
            "published; leave the property out"
        )
    try:
        refuse_unfit_properties("of this definition", properties, pipeline, appends=appends)
    except TableError as error:
        raise DefinitionError(f"delta.properties: {error}") from error
    return properties | {PIPELINE_PROPERTY: pipeline}


def refuse_names(fields: Sequence[T.StructField]) -> None:
    """Raise DefinitionError for column names that Delta's change data feed cannot carry."""
    for name in (f.name for f in fields):
        if name.lower() in _FEED_COLUMNS:
            raise DefinitionError(
                f"column {name!r}: the change data feed uses that name ({', '.join(_FEED_COLUMNS)}); rename it"
            )
        if "`" in name:
            raise DefinitionError(f"column {name!r}: Delta cannot MERGE a name with a backquote; rename it")


def _all_names(type: T.DataType) -> Iterator[str]:
    if isinstance(type, T.StructType):
        for f in type.fields:
            yield f.name
            yield from _all_names(f.dataType)
    elif isinstance(type, T.ArrayType):
        yield from _all_names(type.elementType)
    elif isinstance(type, T.MapType):
        yield from _all_names(type.keyType)
        yield from _all_names(type.valueType)


def refuse_unfit_properties(
    target: object, properties: Mapping[str, str], pipeline: str, *, appends: bool = False
) -> None:
    """Raise TableError when `pipeline` must not ingest into a table with these properties.

    `appends`: it only adds rows.
    """
    owner = properties.get(PIPELINE_PROPERTY, pipeline)
    if owner != pipeline:
        raise TableError(
            f"table {target} is kept by pipeline {owner!r}, not {pipeline!r}: two pipelines would undo each other's "
            f"rows. Give this one another table, or UNSET the table property {PIPELINE_PROPERTY!r} once "
            "the other has ended"
        )
    if is_on(properties, _APPEND_ONLY) and not appends:
        raise TableError(
            f"table {target} has {_APPEND_ONLY} = true, but an ingest updates and deletes rows; unset the property"
        )
    if _FORGETS in properties:
        raise TableError(
            f"table {target} has {_FORGETS} = {properties[_FORGETS]!r}: Delta would forget which batches it holds, "
            "and a late run could apply one twice; unset the property"
        )


def refuse_clustering(target: DeltaTarget, present: tuple[str, ...]) -> None:
    """Raise TableError when a table clustered by the columns `present` is not as its target says, if that says any."""
    wanted = target.cluster_by
    if wanted and wanted != present:
        raise TableError(
            f"table {target} is clustered by {', '.join(present) or 'nothing'}, `delta.cluster-by` says "
            f"{', '.join(wanted)}. Leave it out, or cluster the table, then OPTIMIZE it (`bridge maintain`):\n"
            f"  ALTER TABLE {sql_name(target)} CLUSTER BY ({', '.join(map(quote, wanted))})"
        )


def refuse_hidden_loss(spark: SparkSession) -> None:
    """Raise DefinitionError under settings that turn missing or broken files into missing rows, in silence."""
    for key in _HIDES_LOSS:
        if str(spark.conf.get(key, "false")).lower() == "true":
            raise DefinitionError(f"Spark setting {key} = true hides lost data; set it to false")


def refuse_schema_mismatch(
    target: DeltaTarget, present: T.StructType, fields: Sequence[T.StructField], extra_columns: bool
) -> None:
    """Raise TableError naming every column of the definition that is not in the table as it should be.

    Nullability does not count. Columns of the table alone count unless `extra_columns`.
    """
    there = {f.name: f.dataType.simpleString() for f in present.fields}
    wanted = {f.name: f.dataType.simpleString() for f in fields}
    problems = [f"  missing: {quote(n)} {t}" for n, t in wanted.items() if n not in there]
    problems += [
        f"  other type: {quote(n)} is {there[n]}, wanted {t}"
        for n, t in wanted.items()
        if there.get(n, t) != t
    ]
    if not extra_columns:
        problems += [f"  not in the definition: {quote(n)} {t}" for n, t in there.items() if n not in wanted]
    if problems:
        raise TableError(
            f"table {target} does not fit the definition:\n"
            + "\n".join(problems)
            + "\nchange the DDL, or the table (ALTER TABLE ... ADD / RENAME / DROP COLUMN), then run again; "
            "`delta: {merge-schema: true}` lets an ingest add columns and widen types"
        )
