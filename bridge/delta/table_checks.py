"""Checks a table before the bridge uses it: columns, properties, and settings of the session."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.backend import backend_of
from bridge.definition import DeltaTarget
from bridge.delta.row_constraints import GENERATED
from bridge.errors import DefinitionError, TableError
from bridge.schema import quote

ExtraColumns = Literal["refused", "unused", "inserted as null"]
"""What the columns of a table are that a definition lacks: refused; of no use to a reader; or of a user, who must
expect null in the rows that an ingest inserts, so that NOT NULL is refused."""

PIPELINE_PROPERTY = "bridge.pipeline"
"""Table property that names the pipeline which ingests into the table."""

OWN_COLUMNS_PREFIX = "bridge.merge-columns."
"""Prefix of the table properties that name the own columns of a pipeline (see `column_owners`)."""

SEMANTICS_PROPERTY = "bridge.change-semantics"
"""Table property with `DeltaTarget.change_semantics` of the changes that were applied, as JSON; absent for {}. While a
resync changes it: `resync`, with the words for the new one, which is that of no definition."""

MEMORY_PROPERTY = "bridge.delete-memory"
"""Table property with the run of the resync that began the memory of deleted keys anew; absent before any did."""

ONCE_PROPERTY = "bridge.once"
"""Table property with the places from which `bridge ingest --once` has added rows, as JSON; absent without any."""

OF_EACH_PIPELINE = (SEMANTICS_PROPERTY, MEMORY_PROPERTY, ONCE_PROPERTY)
"""Those that each pipeline of a shared table has of its own: see `property_of`."""

CONSUMERS_PREFIX = "bridge.consumers."
"""Prefix of the table properties that name the tables of states (`run.state`) in which publishes are registered."""

CHANGE_FEED_PROPERTY = "delta.enableChangeDataFeed"
ROW_TRACKING = "delta.enableRowTracking"
READ_TIME_FEED = (
    f". It has {ROW_TRACKING}, by which Delta 4.4 computes changes when they are read (CHANGES FROM VERSION): the "
    "bridge does not use that, as such changes end where the columns change, and need Delta's second connector"
)
"""Why the change data feed is needed all the same."""
COLUMN_MAPPING = "delta.columnMapping.mode"
_log = logging.getLogger("bridge.delta")
_VECTORS = "delta.enableDeletionVectors"
_APPEND_ONLY = "delta.appendOnly"
_TXN_RETENTION = "delta.setTransactionRetentionDuration"

_HIDING_SETTINGS = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
IDENTITY_WAY_OUT = (
    "Leave it out of the DDL, with `delta: {merge-columns: all}`: Delta then numbers the rows that are inserted; or "
    "give the table a plain column"
)
_NEEDS_MAPPING = frozenset(" ,;{}()\n\t=")


def is_on(properties: Mapping[str, str], key: str) -> bool:
    """A boolean table property as Delta reads it; absent is off."""
    return properties.get(key, "false").lower() == "true"


def semantics_property(target: DeltaTarget) -> str | None:
    """The value of SEMANTICS_PROPERTY for the target; None where the table has none."""
    return json.dumps(target.change_semantics, ensure_ascii=False) if target.change_semantics else None


def property_of(target: DeltaTarget, name: str) -> str:
    """The name that one of the three properties has for the target: each pipeline of a shared table has its own."""
    return f"{name}.{target.owner}" if target.merge_columns else name


def moved_properties(target: DeltaTarget, properties: Mapping[str, str]) -> dict[str, str]:
    """The three properties of a table that was one pipeline's alone, by their names in a shared one."""
    if PIPELINE_PROPERTY not in properties:
        return {}
    return {property_of(target, name): properties[name] for name in OF_EACH_PIPELINE if name in properties}


def sql_name(target: DeltaTarget) -> str:
    """The name of the target in a SQL statement."""
    return target.table or "delta." + quote(str(target.path))


def new_properties(
    fields: Sequence[T.StructField],
    wanted: Mapping[str, str],
    pipeline: str,
    *,
    appends: bool = False,
    mark: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The properties of a new table: the bridge's own, overridden by `wanted` (delta.properties).

    `mark` are those that say whose table it is; by default it is the pipeline's alone. Raises DefinitionError for
    column names and properties with which the bridge cannot work.
    """
    refuse_names(fields)
    for name in wanted:
        own = (PIPELINE_PROPERTY, *OF_EACH_PIPELINE)
        prefixes = (OWN_COLUMNS_PREFIX, CONSUMERS_PREFIX, *(f"{each}." for each in OF_EACH_PIPELINE))
        if name in own or name.startswith(prefixes):
            raise DefinitionError(f"delta.properties: {name!r} is set by the bridge; leave it out")
    properties = {CHANGE_FEED_PROPERTY: "true", _VECTORS: "true"}
    if any(_NEEDS_MAPPING & set(name) for name in _all_names(T.StructType(list(fields)))):
        properties[COLUMN_MAPPING] = "name"
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
    return {**properties, **(mark or {PIPELINE_PROPERTY: pipeline})}


def refuse_names(fields: Sequence[T.StructField]) -> None:
    """Raise DefinitionError for column names that the change data feed or a MERGE does not support."""
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


def owners(properties: Mapping[str, str]) -> list[str]:
    """The pipelines that ingest into the table, sorted: one alone, or several into columns of their own."""
    alone = {properties[PIPELINE_PROPERTY]} if PIPELINE_PROPERTY in properties else set()
    prefix = OWN_COLUMNS_PREFIX
    return sorted(alone | {name.removeprefix(prefix) for name in properties if name.startswith(prefix)})


def belongs_to(properties: Mapping[str, str], pipeline: str) -> bool:
    """True where `pipeline` ingests into the table."""
    return pipeline in owners(properties)


def refuse_unfit_properties(
    target: object, properties: Mapping[str, str], pipeline: str, *, appends: bool = False
) -> None:
    """Raise TableError when `pipeline` must not ingest into a table with these properties.

    `appends`: the pipeline only adds rows.
    """
    owner = properties.get(PIPELINE_PROPERTY, pipeline)
    if owner != pipeline:
        raise TableError(
            f"table {target} belongs to pipeline {owner!r}, not {pipeline!r}: two pipelines would overwrite "
            f"each other's rows. Give this one another table, or UNSET the table property {PIPELINE_PROPERTY!r} once "
            "the other has ended"
        )
    sharing = owners(properties)
    if sharing and pipeline not in sharing:
        raise TableError(
            f"table {target} has columns of other pipelines ({', '.join(sharing)}), whose rows pipeline "
            f"{pipeline!r} would overwrite or delete; set `delta: {{merge-columns: all}}`, so that it writes the "
            "columns of its DDL only, or give it another table"
        )
    if is_on(properties, _APPEND_ONLY) and not appends:
        raise TableError(
            f"table {target} has {_APPEND_ONLY} = true, but an ingest updates and deletes rows; unset the property"
        )
    if _TXN_RETENTION in properties:
        raise TableError(
            f"table {target} has {_TXN_RETENTION} = {properties[_TXN_RETENTION]!r}: Delta would forget which "
            "batches it has, and a run that was delayed could apply one twice; unset the property"
        )


def refuse_identities(
    target: DeltaTarget, columns: Sequence[str], identities: Mapping[str, bool], *, appends: bool = False
) -> None:
    """Raise TableError for identity columns of the table (see `TableDescription`) that an ingest would write."""
    for name in columns:
        if name not in identities or (appends and identities[name]):
            continue
        how, why = (
            ("BY DEFAULT", "updates none") if identities[name] else ("ALWAYS", "takes no values for it")
        )
        raise TableError(
            f"table {target}: column {name!r} is GENERATED {how} AS IDENTITY, and Delta {why}. {IDENTITY_WAY_OUT}"
        )


def refuse_clustering(target: DeltaTarget, present: tuple[str, ...]) -> None:
    """Raise TableError when the target names clustering columns, and `present`, those of the table, are others."""
    wanted = target.cluster_by
    if wanted and wanted != present:
        raise TableError(
            f"table {target} is clustered by {', '.join(present) or 'nothing'}, but `delta.cluster-by` names "
            f"{', '.join(wanted)}. Leave it out, or cluster the table, then OPTIMIZE it (`bridge maintain`):\n"
            f"  ALTER TABLE {sql_name(target)} CLUSTER BY ({', '.join(map(quote, wanted))})"
        )


def refuse_hidden_loss(spark: SparkSession) -> None:
    """Raise DefinitionError for settings that silently turn missing or corrupt files into missing rows."""
    for key in _HIDING_SETTINGS:
        if (backend_of(spark).setting(key) or "").lower() == "true":
            raise DefinitionError(f"Spark setting {key} = true hides lost data; set it to false")


def refuse_schema_mismatch(
    target: DeltaTarget, present: T.StructType, fields: Sequence[T.StructField], extra_columns: ExtraColumns
) -> None:
    """Raise TableError that names every column of the definition that the table lacks or has with another type, and the
    columns that the definition lacks where they are not legal.

    Nullability of the definition's columns is ignored.
    """
    actual = {f.name: f.dataType.simpleString() for f in present.fields}
    wanted = {f.name: f.dataType.simpleString() for f in fields}
    extra = [f for f in present.fields if f.name not in wanted]
    problems = [f"  missing: {quote(n)} {t}" for n, t in wanted.items() if n not in actual]
    problems += [
        f"  other type: {quote(n)} is {actual[n]}, wanted {t}"
        for n, t in wanted.items()
        if actual.get(n, t) != t
    ]
    if extra_columns == "refused":
        problems += [f"  not in the definition: {quote(f.name)} {actual[f.name]}" for f in extra]
    elif extra_columns == "inserted as null":
        problems += [
            f"  not in the definition, and NOT NULL: {quote(f.name)} {actual[f.name]}"
            for f in extra
            if not f.nullable and GENERATED not in (f.metadata or {})
        ]
        if extra and not problems:
            _log.warning(
                "table %s has columns that the definition lacks: %s; they stay as they are in rows that are updated, "
                "and are null in rows that are inserted",
                *(target, ", ".join(quote(f.name) for f in extra)),
            )
    if problems:
        raise TableError(
            f"table {target} does not fit the definition:\n"
            + "\n".join(problems)
            + "\nchange the DDL, or the table (ALTER TABLE ... ADD / RENAME / DROP COLUMN), then run again; "
            + ("an ingest adds columns of `delta.merge-columns`, and with " if target.merge_columns else "")
            + "`delta: {merge-schema: true}` lets an ingest add columns and widen types"
        )
