"""Reads a Delta table as changes: a snapshot of one version, or the change data feed of a range of versions.

Delta's reader of the feed plans a frame of the changes, turns each row and its values into Java objects, and passes
these to Spark, which encodes them again: half of the time of a read. `read_as_columns` takes the frame itself
(ADR 016).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.backend.plans import make_plan
from bridge.columns import KIND, POSITION, col, row_fingerprint
from bridge.commit_operations import NO_ROWS
from bridge.delta.appended_files import count_at, rows_at
from bridge.delta.changed_files import (
    BEFORE_IMAGE,
    CHANGE_TYPE,
    COMMIT_VERSION,
    DELETE,
    INSERT,
    changed_files,
    changed_rows,
)
from bridge.delta.delta_errors import SCHEMA_CHANGED, error_names, feed_errors, table_errors
from bridge.delta.log_description import describe, newest_version
from bridge.delta.table import Table, newest_in_history
from bridge.errors import REPUBLISH, DefinitionError, GapError
from bridge.rows import RowKind
from bridge.spark_versions import feed_arguments
from bridge.ways import NotThisWay

_RELATION = "org.apache.spark.sql.delta.commands.cdc.CDCReader$DeltaCDFRelation"
_SCHEMA_MODE = "legacy"
"""Delta's name for how the feed of a table without column mapping resolves its columns."""


def plan_as_columns(rows: DataFrame, relation_class: str = _RELATION) -> DataFrame | None:
    """Have Delta plan the frame behind `rows`; None where `rows` read no version, or the table has column mapping.

    Raises Py4JError, PySparkException or TypeError where Delta is another release, as none of this is a public API, and
    where Delta refuses.
    """
    plan: Any = rows._jdf.queryExecution().analyzed()
    while plan.children().size():
        plan = plan.children().apply(0)
    relation = plan.relation()
    if relation.getClass().getName() != relation_class:  # there are no versions to read
        return None
    if relation.snapshotWithSchemaMode().schemaMode().name() != _SCHEMA_MODE:
        return None
    jvm: Any = rows.sparkSession._jvm
    reader = jvm.org.apache.spark.sql.delta.commands.cdc.CDCReader
    no_such_method: Py4JError | None = None
    for arguments in feed_arguments(relation, rows._jdf.sparkSession(), jvm.scala.Option):
        try:
            return DataFrame(reader.changesToBatchDF(*arguments), rows.sparkSession)
        except Py4JJavaError:
            raise
        except Py4JError as error:
            no_such_method = error
    assert no_such_method is not None
    raise no_such_method


def read_as_columns(
    rows: DataFrame, plan: Callable[[DataFrame], DataFrame | None] = plan_as_columns
) -> DataFrame:
    """Read the rows and columns of `rows`, the result of a read with `readChangeFeed`, as `plan` plans them.

    Returns `rows` itself where that is not possible: for a table with column mapping, whose columns are looked up in
    other versions; for another Delta (Databricks, another release); and where Delta refuses, so that its reader raises
    the error.
    """
    try:
        planned = plan(rows)
    except (
        Py4JError,
        PySparkException,
        TypeError,
    ):  # TypeError: a class that does not exist cannot be called
        planned = None
    return rows if planned is None else planned


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_KINDS = {
    INSERT: RowKind.INSERT,
    BEFORE_IMAGE: RowKind.UPDATE_BEFORE,
    "update_postimage": RowKind.UPDATE_AFTER,
    DELETE: RowKind.DELETE,
}


def snapshot(table: Table, version: int, *, by_delta: bool = False) -> DataFrame:
    """Read all rows of one version as changes: kind +I, `__position` struct<version bigint>; no order. Without those
    that the table hides.

    `by_delta` as in `changes`. Raises GapError when the log no longer has that version. Wrap actions in `feed_errors`,
    as its files may have been vacuumed.
    """
    with feed_errors(table, version, version):
        rows = _without_delta(lambda: rows_at(table, version), by_delta)
        if rows is None:
            rows = table.read({"versionAsOf": str(version)})
        return _as_changes(table, rows, F.lit(RowKind.INSERT.value), F.lit(version).cast("bigint"))


def row_count(table: Table, version: int) -> int:
    """Count the rows of a version. Its statistics are counted where it has them, without reading data."""
    with suppress(NotThisWay):
        return count_at(table, version)
    with feed_errors(table, version, version):
        return table.read({"versionAsOf": str(version)}).count()


def chunk(table: Table, snapshot: DataFrame, key: Sequence[str], number: int, of: int) -> DataFrame:
    """Select chunk `number` of `of` of a snapshot. Every row is in one chunk, by a hash of its key (of all its columns
    where the table has none), so a chunk has the same rows at every call."""
    if of == 1:
        return snapshot
    fields = [f for f in table.fields if f.name in key] if key else list(table.fields)
    return snapshot.where(F.pmod(row_fingerprint(fields), F.lit(of)) == number)


def changed_ms(table: Table, version: int) -> int | None:
    """When the newest version up to `version` that may have changed rows was committed, in epoch milliseconds; None
    when the log has none."""
    with table_errors(table):
        log = (
            table.delta().history().where((F.col("version") <= version) & ~F.col("operation").isin(*NO_ROWS))
        )
        at = log.agg(F.max_by(F.unix_millis("timestamp"), "version")).collect()[0][0]
    return None if at is None else int(at)


def key_moves(table: Table, versions: Sequence[int], key: Sequence[str]) -> list[int]:
    """List those of `versions` that changed a row's primary key. Runs one Spark job over the key columns of their
    changes, without a shuffle of rows; no job for no versions.

    Where no key changed, the updates of a version have the same keys before and after. The two sides are compared by
    their counts and by the exclusive or of 64-bit hashes, so one change in 2^64 is missed.
    """
    if not versions:
        return []
    frame = changes(table, versions[0], versions[-1])
    version, hashed = (
        F.col(f"{POSITION}.version"),
        row_fingerprint([f for f in table.fields if f.name in key]),
    )
    before, after = ((col(KIND) == kind.value) for kind in (RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER))
    sides = (
        frame.select(version.alias("version"), hashed.alias("h"), before.alias("b"), after.alias("a"))
        .groupBy("version")
        .agg(
            (F.count_if("b") == F.count_if("a")).alias("as_many"),
            F.expr("(bit_xor(h) FILTER (WHERE b)) <=> (bit_xor(h) FILTER (WHERE a))").alias("alike"),
        )
    )
    with feed_errors(table, versions[0], versions[-1]):
        moved = sides.where("NOT (as_many AND alike)").select("version").collect()  # a row per version
    return sorted(int(row[0]) for row in moved if row[0] in set(versions))


def changes(
    table: Table, first: int, last: int, *, before_images: bool = True, by_delta: bool = False
) -> DataFrame:
    """Read every row change of versions first..last, both inclusive, as changes; no order.

    Kinds are +I, -U, +U, -D; an update gives -U and +U at the same version, even if it changed the key; `__position` is
    struct<version bigint>. Commits that changed no rows (OPTIMIZE, progress alone) give nothing. Where the table hides
    rows, a row that gets hidden gives -U alone, and one that does so no longer +U alone. Raises GapError when
    the log no longer reaches back. Call `check_feed` first, and wrap actions in `feed_errors`.

    Without `before_images` there is no -U. The rest equals `compact.upserts` of `compact.net` where every -U has its +U
    and no key has two changes in a version, as in versions that an ingest wrote.

    `by_delta` has Delta plan the read, as `data_files` needs it; else the log of a local table names the files.
    """
    options = {"readChangeFeed": "true", "startingVersion": str(first), "endingVersion": str(last)}
    with feed_errors(table, first, last):
        rows = _without_delta(lambda: changed_rows(table, first, last), by_delta)
        if rows is None:
            rows = read_as_columns(table.read(options))
        if not before_images:
            # By Delta's own column, so that the reader of Parquet files skips row groups and pages without other rows.
            rows = rows.where(col(CHANGE_TYPE) != BEFORE_IMAGE)
        kind = F.lit(None)
        for change, name in _KINDS.items():  # a map would be searched for each row
            kind = F.when(col(CHANGE_TYPE) == change, name.value).otherwise(kind)
        return _as_changes(table, rows, kind, col(COMMIT_VERSION))


def _without_delta(read: Callable[[], DataFrame], by_delta: bool) -> DataFrame | None:
    """The rows of the files that the log names; None where Delta must be asked."""
    if not by_delta:
        with suppress(NotThisWay):
            return read()
    return None


def _as_changes(table: Table, rows: DataFrame, kind: Column, version: Column) -> DataFrame:
    position = F.struct(version.alias("version"))
    return table.live(rows).select(
        *(col(n) for n in table.columns), kind.alias(KIND), position.alias(POSITION)
    )


def latest_version(table: Table) -> int:
    """The newest version of the table. Raises TableError when the table is gone."""
    newest = newest_version(table.spark, table.target)
    if newest is not None:
        return newest
    with table_errors(table):
        return newest_in_history(table.delta())


def oldest(table: Table, last: int) -> int:
    """The first version from which the change feed up to `last` can be planned; `last` + 1 where there is none. Reads
    the log, no data: files of these versions may have been vacuumed."""
    with table_errors(table):
        low = int(table.delta().history().agg(F.min("version")).collect()[0][0])
    high = last + 1
    while low < high:
        middle = (low + high) // 2
        try:
            _plan(table, middle, last)
            high = middle
        except GapError:
            low = middle + 1
    return low


def version_at(table: Table, timestamp: str) -> int:
    """The first version committed at `timestamp` (ISO 8601; UTC where it has no zone) or later.

    Raises DefinitionError when it is not a timestamp, when the table has no commit that late, and when it is before the
    log's oldest version, so that an earlier one may be gone.
    """
    moment = _parse_timestamp(timestamp)
    # Whole microseconds: seconds as a float are less precise than the time of a commit.
    micros = (moment - _EPOCH) // timedelta(microseconds=1)
    with table_errors(table):
        log = table.delta().history().select("version", F.unix_micros("timestamp").alias("at"))
        bounds = log.agg(F.min("version"), F.max("version"), F.min("at"), F.max("at")).collect()[0]
        version = log.where(F.col("at") >= micros).agg(F.min("version")).collect()[0][0]
    oldest, newest, first_at, last_at = bounds
    if version is None:
        raise DefinitionError(
            f"publish.start: no version of table {table} was committed at {moment.isoformat()} or later; the newest, "
            f"version {newest}, is of {_iso(last_at)}"
        )
    if version == oldest and oldest > 0 and micros < first_at:
        raise DefinitionError(
            f"publish.start: {moment.isoformat()} is before version {oldest} of {_iso(first_at)}, the oldest that "
            f"the log of table {table} still has; start from `snapshot`, or at that time or later"
        )
    return int(version)


def check_same(table: Table, known_id: str) -> dict[str, str]:
    """Read the table's properties. Raises GapError when it is not the table that progress belongs to (it was dropped or
    replaced)."""
    found = describe(table.spark, table.target)
    if found is not None:
        id, properties = found.id, found.properties
    else:
        with table_errors(table):
            detail = table.delta().detail().select("id", "properties").collect()[0]
        id, properties = detail["id"], detail["properties"]
    if id != known_id:
        raise GapError(
            f"table {table} was replaced: progress belongs to table id {known_id}, there is now {id}; {REPUBLISH}"
        )
    return dict(properties)


def check_feed(table: Table, first: int, last: int, known_id: str, *, newest: int | None = None) -> None:
    """Raise GapError unless the change feed of versions first..last can be read from the table with the id `known_id`,
    and has the columns of the version before. `newest` is the table's newest version, where the caller knows it.

    Reads the log of those versions, no data: missing files fail the action that reads them.
    """
    properties = check_same(table, known_id)
    newest = latest_version(table) if newest is None else newest
    if last > newest:
        raise GapError(
            f"table {table}: versions {first} to {last} are needed, but the newest is {newest}: its log was "
            f"cut back; {REPUBLISH}"
        )
    with suppress(NotThisWay):
        changed_files(table, first, last)
        return
    _plan(table, first, last)
    if first > 0 and properties.get("delta.columnMapping.mode", "none") != "none":
        # Delta compares the columns within a range only; they may have changed in its first version.
        try:
            _plan(table, first - 1, last)
        except GapError as gap:
            if gap.__cause__ is not None and error_names(gap.__cause__) & SCHEMA_CHANGED:
                raise


def _plan(table: Table, first: int, last: int) -> None:
    frame = changes(table, first, last, by_delta=True)
    with feed_errors(table, first, last):
        make_plan(frame)


def _iso(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).isoformat()


def _parse_timestamp(timestamp: str) -> datetime:
    try:
        # Python 3.10 does not read the Z.
        moment = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", timestamp))
    except ValueError:
        raise DefinitionError(
            f"publish.start: {timestamp!r} is not a timestamp; write one as 2026-01-31T12:00:00Z"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
