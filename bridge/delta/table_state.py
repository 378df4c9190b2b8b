"""State in rows of a Delta table (`run.state`), where no folder is reached by all runs (ADR 084).

Each name is an entry, and each write of it a row with the next number; the newest row counts, one without a text means
that there is none. A publish log is one entry, in which the numbers are those of the batches. A write is an append with
`txnAppId` (the entry) and `txnVersion` (the number) as options of the writer: Delta leaves it out where the table has
this number already, and refuses it where another append of the entry was committed meanwhile. So of two writers with
the same number one has a row.

The rows of an entry that no longer count are deleted now and then; rows of 70 numbers at most are there.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge import storage
from bridge.backend.plans import analyzed
from bridge.bridge_folders import publish_log_batch, publish_log_file
from bridge.definition import DeltaTarget
from bridge.delta.delta_errors import CONFLICTS, attempts, error_names, table_errors
from bridge.delta.state_store import Medium
from bridge.delta.table import create_by_sql, exists
from bridge.delta.table_checks import sql_name
from bridge.errors import TableError
from bridge.formats.sql import literal
from bridge.session import child_session

_FIELDS = (
    T.StructField("entry", T.StringType()),
    T.StructField("number", T.LongType()),
    T.StructField("text", T.StringType()),
    T.StructField("writer", T.StringType()),
    T.StructField("at", T.TimestampType()),
)
_PROPERTIES = {
    "bridge.state": "1",
    "delta.enableDeletionVectors": "false",
    "delta.logRetentionDuration": "interval 7 days",
}
_APP = "changelog-bridge/state/"
_LOST = "ConcurrentTransactionException"
MOST_ROWS = 50
_log = logging.getLogger("bridge.delta")


@dataclass(frozen=True)
class _Row:
    number: int = -1
    text: str | None = None
    writer: str = ""


_NONE = _Row()


class TableState:
    """See `state_store.StateStore`. `scope` is the pipeline whose names these are; "" for those of all pipelines.

    The table is made with the first write. Errors of the table are TableError.
    """

    key, medium = "run.state", Medium.TABLE

    def __init__(self, spark: SparkSession, target: DeltaTarget, scope: str = "") -> None:
        # A session of its own: that of a batch has settings of Delta's transactions, which writes here must not see.
        self._spark, self._target, self._scope = child_session(spark), target, scope
        self._known: dict[str, tuple[_Row, int]] = {}
        """The newest row that this process has seen or written of an entry, and how many the entry has."""
        self._is_there = False

    def place(self, name: str) -> str:
        return f"{self._target} ({self._entry(name)})"

    def names(self, folder: str) -> list[str]:
        entry = self._entry(folder)
        found = self._rows(F.col("entry").eqNullSafe(entry) | F.col("entry").startswith(f"{entry}/"))
        log = [publish_log_file(row.number) for row in found.get(entry, ()) if row.text is not None]
        others = [name.removeprefix(f"{entry}/") for name, rows in found.items() if _newest(rows).text]
        return sorted([*log, *(name for name in others if name != entry and "/" not in name)])

    def read(self, name: str) -> str | None:
        entry, number = self._entry_and_number(name)
        rows = self._of(entry)
        if number is None:
            return _newest(rows).text
        return next((row.text for row in rows if row.number == number), None)

    def write(self, name: str, text: str) -> None:
        """A write that another one has overtaken counts as overwritten by it."""
        self._write(self._entry(name), text)

    def put_if_absent(self, name: str, text: str) -> bool:
        entry, number = self._entry_and_number(name)
        if number is not None:
            return self._take(entry, number, text)
        newest = _newest(self._of(entry))
        return newest.text is None and self._take(entry, newest.number + 1, text)

    def swap(self, name: str, before: str | None, after: str, *, attempt: int = 0) -> bool:
        """No `attempt` is ever needed: a writer that dies has a row, or has none."""
        entry = self._entry(name)
        newest = _newest(self._of(entry))
        return newest.text == before and self._take(entry, newest.number + 1, after)

    def delete(self, *names: str) -> None:
        numbers: dict[str, list[int]] = {}
        for entry, number in map(self._entry_and_number, names):
            if number is None:
                if _newest(self._of(entry)).text is not None:
                    self._write(entry, None)
            else:
                numbers.setdefault(entry, []).append(number)
        for entry, of_entry in numbers.items():
            self._delete_rows(entry, f"number IN ({', '.join(map(str, of_entry))})")

    def _write(self, entry: str, text: str | None) -> None:
        newest, count = self._known.get(entry) or (_newest(self._of(entry)), 0)
        if newest is _NONE:  # no row yet; or all were deleted by hand, which `_take` finds
            if not self._take(entry, 0, text):
                self._write(entry, text)
            return
        writer = self._append(entry, newest.number + 1, text)
        self._known[entry] = _Row(newest.number + 1, text, writer), count + 1
        if count >= MOST_ROWS:
            self._delete_rows(entry, f"number <= {newest.number}")
            self._known[entry] = self._known[entry][0], 1

    def _take(self, entry: str, number: int, text: str | None) -> bool:
        """Write a row with this number; False if another writer did so, or has written a later one."""
        writer = self._append(entry, number, text)
        rows = self._of(entry)
        if _newest(rows).number < number:
            raise TableError(
                f"{self.key}: {self._target} has lost rows of {entry!r} (a DELETE, a RESTORE?). Delta still knows that "
                "they were written and accepts none with their numbers: name another table, which begins anew, or "
                "RESTORE the table to the version that had them"
            )
        return any((row.number, row.writer) == (number, writer) for row in rows)

    def _append(self, entry: str, number: int, text: str | None) -> str:
        """Append a row, or none where the entry has this number; return the name that the row has as its writer."""
        self._make()
        writer = uuid.uuid4().hex
        values = (entry, number, text, writer)
        columns = [
            F.lit(value).cast(field.dataType).alias(field.name)
            for value, field in zip(values, _FIELDS, strict=False)
        ]
        row = self._spark.range(0, 1, 1, 1).select(*columns, F.current_timestamp().alias("at"))
        ids = {"txnAppId": _APP + entry, "txnVersion": str(number)}
        failure: Exception | None = None
        for _ in attempts():
            to = row.write.format("delta").mode("append").options(**ids)
            try:
                with table_errors(self._target):
                    if self._target.table:
                        to.saveAsTable(self._target.table)
                    else:
                        to.save(self._target.path)
                return writer
            except Exception as error:
                names = error_names(error)
                if _LOST in names:
                    return writer
                if not names & CONFLICTS:
                    raise
                failure = error
        raise TableError(
            f"{self.key}: {self._target} was changed by others all the time; run again"
        ) from failure

    def _make(self) -> None:
        if self._is_there:
            return
        if not self._exists():
            storage.make_local_folder(self._spark, self._target.path)
            try:
                create_by_sql(self._spark, self._target, _FIELDS, _PROPERTIES)
            except Exception as error:
                if not self._exists():  # else another run has made it at the same time
                    first = (str(error).splitlines() or [""])[0][:300]
                    raise TableError(f"{self.key}: {self._target} cannot be created: {first}") from error
        self._is_there = True

    def _exists(self) -> bool:
        try:
            return exists(self._spark, self._target)
        except TableError as error:
            raise TableError(f"{self.key}: {error}") from error

    def _of(self, entry: str) -> list[_Row]:
        rows = self._rows(F.col("entry").eqNullSafe(entry)).get(entry, [])
        self._known[entry] = _newest(rows), len(rows)
        return rows

    def _rows(self, condition: Column) -> Mapping[str, list[_Row]]:
        """The rows of entries; {} where there is no table."""
        if not self._is_there and not self._exists():
            return {}
        self._is_there = True
        found: dict[str, list[_Row]] = {}
        with table_errors(self._target):
            frame = self._frame().where(condition)
            for entry, number, text, writer in frame.select("entry", "number", "text", "writer").collect():
                found.setdefault(entry, []).append(_Row(number, text, writer))
        return found

    def _frame(self) -> DataFrame:
        reader = self._spark.read.format("delta")
        target = self._target
        frame = analyzed(reader.table(target.table) if target.table else reader.load(target.path))
        if missing := {f.name for f in _FIELDS} - set(frame.columns):
            raise TableError(
                f"{self.key}: {target} is no table of states, as it has no column {min(missing)!r}; name a table that "
                "is not there, and the bridge makes it"
            )
        return frame

    def _delete_rows(self, entry: str, condition: str) -> None:
        """Delete rows that no longer count. What stays changes nothing, so a failure is logged alone."""
        try:
            self._spark.sql(
                f"DELETE FROM {sql_name(self._target)} WHERE entry = {literal(entry)} AND {condition}"
            ).collect()
        except Exception as failed:
            if not error_names(failed) & CONFLICTS:
                _log.warning("%s: old rows of %s stay: %s", self._target, entry, type(failed).__name__)

    def _entry(self, name: str) -> str:
        return f"{self._scope}/{name}" if self._scope else name

    def _entry_and_number(self, name: str) -> tuple[str, int | None]:
        folder, _, last = name.rpartition("/")
        number = publish_log_batch(last)
        return (self._entry(name), None) if number is None else (self._entry(folder), number)


def _newest(rows: Iterable[_Row]) -> _Row:
    return max(rows, key=lambda row: row.number, default=_NONE)
