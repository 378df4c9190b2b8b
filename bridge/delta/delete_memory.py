"""Remembers deleted keys with their sequence, so that an older change that comes later does not insert the row again.

They are in a Delta table below the folder of the table that they are about, where its readers and VACUUM do not look.
A deletion is written there before the commit that applies it. If that commit fails, its records are read again, so a
deletion is only known earlier than it is applied; which of the changes of a key is the newest does not depend on that
(docs/adr/074).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.bridge_folders import deleted_folder
from bridge.columns import col, frame_of, retracts, same_key
from bridge.console import duration
from bridge.definition import DeltaTarget, Truncate
from bridge.delta.delta_errors import retry_conflicts, table_errors
from bridge.delta.file_pruning import key_predicate
from bridge.delta.optimize_vacuum import FILE_RETENTION, LOG_RETENTION, optimize, vacuum
from bridge.delta.sequence_floor import Floor
from bridge.delta.table import Table, create_by_sql, described, exists, open_table
from bridge.delta.table_checks import COLUMN_MAPPING, MEMORY_PROPERTY, property_of, sql_name
from bridge.metrics import now_ms
from bridge.storage import list_names

DELETED_AT = "__deleted_at"
"""When the batch with the deletion was applied. Not the time of the record: late records have old ones."""

_RETENTION = 86_400.0
_PROPERTIES = {
    "delta.autoOptimize.autoCompact": "true",
    "delta.feature.timestampNtz": "supported",  # a DATE may be widened to it
    FILE_RETENTION: "1 day",
    LOG_RETENTION: "1 day",
}
_STEPS = 10
"""Deletions fall out in so many steps in the time for which they are remembered, whatever the number of batches."""


@dataclass(frozen=True)
class DeleteMemory:
    """The deleted keys of one table. Its methods raise TableError where its own table cannot be written."""

    table: Table
    """The table that the keys are deleted from; `target.sequence_by` orders its changes."""
    key: tuple[str, ...]
    stored: Table
    floor: Floor | None = None
    """That of the truncates that were applied, under `delta.truncate: apply`. It is never forgotten: its row, without
    DELETED_AT and a key, is one."""

    @classmethod
    def open(cls, table: Table, key: Sequence[str]) -> DeleteMemory:
        """Open the memory of `table` for its key, its order and its MEMORY_PROPERTY; creates it where it is absent. A
        type that was widened is widened here. Memories of other orders stay as they are, and so do those of other
        pipelines of a shared table, which order by columns of their own."""
        names = (*key, *table.target.sequence_by)
        began = table.properties.get(property_of(table.target, MEMORY_PROPERTY), "")
        target = DeltaTarget(path=deleted_folder(table.location, table.id, names, began))
        fields = [f for f in table.fields if f.name in names] + [T.StructField(DELETED_AT, T.TimestampType())]
        # A name that Parquet forbids needs column mapping here, too.
        mapping = {name: text for name, text in table.properties.items() if name == COLUMN_MAPPING}
        with table_errors(target):
            create_by_sql(table.spark, target, fields, _PROPERTIES | mapping)
            rows = table.spark.read.format("delta").load(str(target.path))
            types = {f.name: f.dataType for f in rows.schema.fields}
            if any(types[f.name] != f.dataType for f in fields):
                cast = rows.select(*(col(f.name).cast(f.dataType) for f in fields))
                writer = cast.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
                writer.save(str(target.path))
        opened = cls(table, tuple(key), open_table(table.spark, target, fields, feed=False))
        return opened._with_floor() if table.target.truncate is Truncate.APPLY else opened

    def _with_floor(self) -> DeleteMemory:
        rows = self.stored.delta().toDF().where(col(DELETED_AT).isNull())
        return replace(self, floor=Floor.of(rows, self.table.target.sequence_by))

    def on(self, spark: SparkSession) -> DeleteMemory:
        """The same memory in another session."""
        return replace(self, table=self.table.on(spark), stored=self.stored.on(spark))

    def others(self) -> Iterator[DeleteMemory]:
        """The memories that other orders of the same table have left, for `forget`: a RESTORE brings an order back.
        Of a shared table only those of the pipeline's columns."""
        folder, own = str(self.stored.target.path).rsplit("/", 1)
        spark = self.stored.spark
        for name in list_names(spark, folder):
            target = DeltaTarget(path=f"{folder}/{name}")
            if name != own and exists(spark, target):
                fields = described(spark, target).schema.fields
                names = {f.name for f in fields} - {DELETED_AT}
                if self.table.target.merge_columns and not names <= set(self.table.columns):
                    continue
                yield replace(self, stored=open_table(spark, target, fields, feed=False))

    def is_empty(self) -> bool:
        """True when no deletion is remembered."""
        return self.stored.is_empty()

    def of_keys(self, changes: DataFrame) -> DataFrame:
        """The deletions of the keys of the persisted `changes`, some of them several times."""
        keys = changes.select(*map(col, self.key)).alias("k")
        predicate = key_predicate(changes, self.key, "m").condition
        rows = self.stored.delta().toDF().alias("m")
        rows = rows if predicate is None else rows.where(predicate)
        return rows.join(keys, same_key(self.key, "m", "k"), "left_semi")

    def without_older(self, changes: DataFrame) -> DataFrame:
        """Leave out those of the persisted `changes`, one for each key, that are older than a deletion of their key, or
        not newer than a truncate."""
        if self.floor is not None:
            changes = changes.where(self.floor.is_below())
        of_batch = self.of_keys(changes).alias("m")
        is_older = same_key(self.key, "c", "m") & (self._sequence("c") < self._sequence("m"))
        return changes.alias("c").join(of_batch, is_older, "left_anti")

    def remember(self, changes: DataFrame) -> None:
        """Write the deletions among `changes`, in one commit. One that is known already is written again."""
        columns = [col(f.name) for f in self.stored.fields if f.name != DELETED_AT]
        deleted_at = F.timestamp_millis(F.lit(now_ms())).alias(DELETED_AT)
        rows = changes.where(retracts()).select(*columns, deleted_at)
        with table_errors(self.stored):
            rows.write.format("delta").mode("append").save(str(self.stored.target.path))

    def remember_truncate(self, floor: Floor) -> DeleteMemory:
        """Write the floor of a truncate, in place of a lesser one; returns the memory with the greater of the two."""
        row = frame_of(self.stored.spark, floor.values, T.StructType(list(floor.fields)))
        missing = [f for f in self.stored.fields if f.name not in row.columns]
        row = row.select("*", *(F.lit(None).cast(f.dataType).alias(f.name) for f in missing))
        with table_errors(self.stored):
            row.select(*map(col, self.stored.columns)).write.format("delta").mode("append").save(
                str(self.stored.target.path)
            )
        found = self._with_floor()
        if found.floor is not None:
            lesser = f"{DELETED_AT} IS NULL AND NOT ({found.floor.reached})"
            retry_conflicts(
                self.stored,
                lambda: self.stored.spark.sql(
                    f"DELETE FROM {sql_name(self.stored.target)} WHERE {lesser}"
                ).collect(),
                f"truncates of {self.table}:",
                "start the run again",
            )
        return found

    def forget(self, reached_ms: int | None) -> str | None:
        """Remove the deletions that are older than `delta.delete-memory`; returns a warning that counts them, if any.

        Their age is that at `reached_ms`, the time of the newest record that was applied: after an outage records that
        were late by less are still to come. None stands for now. They leave in steps of a tenth of this time, and their
        files are deleted a day later.
        """
        seconds = self.table.target.delete_memory_seconds
        step = max(1, int(1000 * seconds / _STEPS))
        now = now_ms() if reached_ms is None else min(now_ms(), reached_ms)
        bound = (now - int(1000 * seconds)) // step * step
        statement = (
            f"DELETE FROM {sql_name(self.stored.target)} WHERE {DELETED_AT} < timestamp_millis({bound}L)"
        )
        count = retry_conflicts(
            self.stored,
            lambda: int(self.stored.spark.sql(statement).collect()[0][0]),
            f"deleted keys of {self.table}:",
            "none is forgotten, and what was applied is committed; start the run again: it continues from the table",
        )
        if not count:
            return None
        optimize(self.stored)
        vacuum(self.stored, _RETENTION)
        return (
            f"{count:,} deletions are forgotten, as they are older than delta.delete-memory ({duration(seconds)}): a "
            "change of such a key that is older than its deletion, and comes now, inserts the row again"
        )

    def _sequence(self, frame: str) -> Column:
        return F.struct(*(col(name, frame) for name in self.table.target.sequence_by))
