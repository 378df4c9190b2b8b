"""The result of an INSERT: a Delta table whose commits carry how far the INSERT has got in each of its sources."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge import failpoints
from bridge.columns import KIND, col, spark_type
from bridge.definition import DeltaTarget, MergeSettings
from bridge.delta.append import append_batch
from bridge.delta.appended_files import has_no_files
from bridge.delta.changes_in_driver import collect_changes
from bridge.delta.column_owners import open_shared_table
from bridge.delta.commit_files import read_file_changes
from bridge.delta.delta_errors import table_errors
from bridge.delta.engine_choice import Engines
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_semantics import semantics_of
from bridge.delta.rows_taken_back import following
from bridge.delta.table import Table, claim, create_table, described, exists, open_table
from bridge.errors import DefinitionError, TableError
from bridge.ingest_progress import IngestProgress
from bridge.metrics import BatchReport, now_ms
from bridge.offsets import Offsets
from bridge.pipelines.changes.own_rows import rows_with_values
from bridge.pipelines.ingest import run_state
from bridge.pipelines.scripts.closing import (
    ClosingWindows,
    EventTimeProgress,
    EventTimes,
    checked_upserts,
    close_windows,
)
from bridge.pipelines.scripts.failing_rows import Computed, Quarantine, left_out, source_errors
from bridge.pipelines.scripts.few_rows import planned_once
from bridge.pipelines.scripts.refresh import Refresh, method_for, refreshed
from bridge.pipelines.scripts.source_tables import SourceRange, SourceTables
from bridge.pipelines.scripts.state import ScriptState
from bridge.rows import RowKind
from bridge.sql import InsertPlan
from bridge.sql.accumulators import KEPT

_SOURCE, _QUERY, _EVENT_TIMES = "source ", "query", "event times"
"""The names of the progress: the ids of the sources, the fingerprint of the query, and an EventTimeProgress."""


@dataclass
class Result:
    """An open result and the engines that merge into it."""

    plan: InsertPlan
    table: Table
    name: str
    run: str
    engines: Engines
    progress: IngestProgress | None
    """That of the newest commit; None before the first one."""
    event_times: EventTimes | None = None
    """Set if the rows of the result come when their windows close."""
    quarantine: DeltaTarget | None = None
    """The table of the rows that are left out, if they are quarantined."""

    @property
    def needed_after_ms(self) -> int | None:
        """The time after which the windows end that may still be computed; None before the first window closes, and
        for rows that do not come window by window."""
        watermark_ms = _event_times(self.progress).watermark_ms
        if self.plan.windows is None or watermark_ms is None:
            return None
        return watermark_ms - self.plan.windows.lateness_ms + 1

    def refresh(self, sources: SourceTables, *, rebuild: bool = False) -> BatchReport | None:
        """Bring the result to the versions of its sources, in one commit that carries them; None if it has them.

        With `rebuild` all rows are computed again, whatever the progress says. Raises DefinitionError if the query is
        another one than that of the progress; GapError if a source was replaced, or its changes are gone;
        ConcurrentRunError if another run has committed this refresh; RowsTakenBack if another writer took rows of the
        result back, which is to be opened anew then; TableError for rows that the table does not accept.
        """
        if self.plan.windows is None:
            sources.check_complete(self.table)
        if rebuild and self.progress is not None:
            self._refuse_other_query(sources)
        since = Offsets() if self.progress is None or rebuild else self.progress.offsets
        if self.progress is not None and not rebuild:
            self._check_query()
            sources.check_same(_source_ids(self.progress), self.table)
        started = time.monotonic()
        if self.progress is not None:
            self.progress = following(self.table, self.progress)
        ranges = sources.ranges(since)
        is_same = self.progress is not None and not rebuild and since == sources.offsets
        if is_same and self.event_times is None:
            self._keep_progress(sources)
            return None
        method = method_for(self.plan, ranges, is_first=not len(since))
        if self.progress is None:
            self._refuse_foreign_rows()
        if rebuild and not self.plan.key and self.progress is not None:
            raise DefinitionError(
                f"INSERT {self.name}: rows of {self.table} were only ever appended, so they cannot be computed again "
                "in place; remove that table, or write the rows to another one"
            )
        with source_errors(self.table.spark, self.name, self.plan, Computed(ranges)):
            closing = self._closing(sources, ranges, is_whole=not len(since))
        if is_same and not (closing and closing.has_advanced):
            self._keep_progress(sources)
            return None
        windows = closing.windows if closing is not None else None
        computed = Computed(ranges, windows)
        with source_errors(self.table.spark, self.name, self.plan, computed):
            is_new = self.progress is None
            refresh = refreshed(
                self.table.spark, self.plan, self.table, ranges, method, windows, is_new=is_new
            )
            try:
                computed = replace(computed, parts=refresh.parts)
                quarantine = self._quarantine(is_whole=not len(since))
                bad = left_out(self.table.spark, self.plan, computed, quarantine)
                merged = self._commit(refresh, sources, closing)
            finally:
                for frame in refresh.persisted:
                    frame.unpersist()
        files = merged.files or read_file_changes(self.table, merged.version)
        return BatchReport(
            pipeline=self.name,
            verb="insert",
            batch=self.progress.batch if self.progress else 0,
            version=merged.version,
            inserted=merged.inserted,
            updated=merged.updated,
            deleted=merged.deleted,
            bad_records=bad,
            quarantined=bad if self.quarantine is not None else 0,
            files_written=files.written,
            bytes_written=files.bytes_written,
            files_rewritten=files.rewritten,
            bytes_rewritten=files.bytes_rewritten,
            committed_ms=now_ms(),
            engine=method.value,
            watermark_ms=closing.progress.watermark_ms if closing else None,
            warning=closing.warning if closing else None,
            seconds=time.monotonic() - started,
        )

    @property
    def _next_batch(self) -> int:
        return 0 if self.progress is None else self.progress.batch + 1

    def _quarantine(self, *, is_whole: bool) -> Quarantine | None:
        target = self.quarantine
        return None if target is None else Quarantine(target, self.name, self._next_batch, is_whole)

    def _closing(
        self, sources: SourceTables, ranges: Mapping[str, SourceRange], *, is_whole: bool
    ) -> ClosingWindows | None:
        if self.event_times is None:
            return None
        before = _event_times(self.progress)
        return close_windows(
            self.table.spark, self.plan, self.event_times, sources, ranges, before, is_whole=is_whole
        )

    def _refuse_foreign_rows(self) -> None:
        """A result with a key has the rows of its query and no others, so those of a user would be deleted."""
        if not self.plan.key or has_no_files(self.table):
            return
        with table_errors(self.table):
            is_empty = rows_with_values(self.table.delta().toDF(), self.plan.merge_columns).head() is None
        if not is_empty:
            raise TableError(
                f"INSERT {self.name}: {self.table} has rows that this INSERT did not write. A table with a PRIMARY KEY "
                "has exactly the rows of its query, so they would be deleted: name another table, or delete its rows "
                "first"
            )

    def _keep_progress(self, sources: SourceTables) -> None:
        """Commit the progress again where the commits of other INSERTs let Delta clean it out of the log."""
        is_old = self.progress is not None and now_ms() - self.progress.at_ms > run_state.PROGRESS_MS
        if self.plan.merge_columns and is_old:
            rows = self.table.delta().toDF().select(*map(col, self.table.columns)).limit(0)
            self._commit(Refresh(rows.withColumn(KIND, F.lit(RowKind.INSERT.value))), sources, None)

    def _check_query(self) -> None:
        assert self.progress is not None
        if self.progress.topic_ids.get(_QUERY) != self.plan.fingerprint:
            raise DefinitionError(
                f"INSERT {self.name}: its query, its sources or its sink are not those from which {self.table} was "
                "computed. Run the script with --rebuild, which computes the result again and sends what differs; or "
                "give the script another name (SET 'pipeline.name' = ...), and it starts anew"
            )

    def _refuse_other_query(self, sources: SourceTables) -> None:
        """Windows whose rows were removed would stay those of the query before."""
        assert self.progress is not None
        is_other = self.progress.topic_ids.get(_QUERY) != self.plan.fingerprint
        if is_other and not sources.are_complete:
            raise DefinitionError(
                f"INSERT {self.name}: another query cannot be computed, as rows of closed windows were removed from "
                "the state (SET 'bridge.state.closed-windows' = 'remove'). Give the script another name "
                "(SET 'pipeline.name' = ...), and it reads the topic anew"
            )

    def _commit(self, refresh: Refresh, sources: SourceTables, closing: ClosingWindows | None) -> MergeResult:
        ids = {f"{_SOURCE}{name}": id for name, id in sources.ids.items()}
        ids[_QUERY] = self.plan.fingerprint
        if self.event_times is not None:
            times = closing.progress if closing is not None else _event_times(self.progress)
            ids[_EVENT_TIMES] = times.to_json()
        at_ms = now_ms() if self.plan.merge_columns else 0
        after = None if self.progress is None else self.progress.after
        progress = IngestProgress(
            self.name, self.run, self._next_batch, sources.offsets, ids, at_ms=at_ms, after=after
        )
        table, given = self.table, refresh.changes
        if isinstance(given, DataFrame):
            table = table.on(given.sparkSession)
            if refresh.is_few:
                with planned_once(table.spark):
                    given = collect_changes(table, given)
        if not isinstance(given, DataFrame):
            failpoints.hit("script.before-commit")
            merged = self._merged(table, given, given.num_rows, progress)
        else:
            changes = given.persist()
            try:
                failpoints.hit("script.before-commit")
                if self.plan.key:
                    merged = self._merged(table, changes, checked_upserts(changes, self.plan), progress)
                else:
                    # A number of Spark's, such as ROW_NUMBER, may have another type than the sink's column.
                    typed = [col(f.name).cast(f.dataType).alias(f.name) for f in table.fields]
                    rows = changes.count()
                    merged = append_batch(table, changes.select(*typed), rows=rows, progress=progress)
            finally:
                changes.unpersist()
        failpoints.hit("script.after-commit")
        self.progress = replace(progress, after=merged.version)
        return merged

    def _merged(
        self, table: Table, changes: DataFrame | pa.Table, adds: int, progress: IngestProgress
    ) -> MergeResult:
        return self.engines.merge(table, changes, key=self.plan.key, adds=adds, progress=progress)


def open_result(spark: SparkSession, state: ScriptState, plan: InsertPlan) -> Result:
    """Open the table of an INSERT's result, and create it if it is absent.

    A table that was made without the columns that the plan keeps stays without them: its groups are computed again.
    Raises TableError if it belongs to another pipeline or has other columns, or if a column of an INSERT that shares it
    is another pipeline's; GapError if it has lost its progress.
    """
    name, target = state.result_name(plan), state.result_target(plan)
    is_new = not exists(spark, target)
    former: list[T.StructField] = []
    if not is_new and state.tables[plan.sink].delta is None:
        present = {f.name: f for f in described(spark, target).schema.fields if f.name.startswith(KEPT)}
        if not all(c.name in present for c in plan.kept_columns):
            plan = plan.without_kept_columns()
        former = [f for n, f in present.items() if n not in {c.name for c in plan.kept_columns}]
    fields = [
        T.StructField(c.name, spark_type(c.type)) for c in (*plan.columns, *plan.kept_columns, *plan.row_key)
    ]
    appends = not plan.key
    if plan.merge_columns:
        table = open_shared_table(spark, target, fields, pipeline=name, key=plan.key)
    elif is_new:
        table = create_table(spark, target, fields, pipeline=name, appends=appends)
    else:
        opened = open_table(spark, target, [*fields, *former])
        _refuse_padded_keys(opened, plan)
        table = claim(replace(opened, fields=tuple(fields)), name, appends=appends)
    found = read_progress(table, name)
    progress = found[0] if found else None
    times = EventTimes(plan.windows, _event_times(progress)) if plan.windows is not None else None
    engines = Engines(MergeSettings(), semantics_of(target))
    return Result(plan, table, name, uuid.uuid4().hex[:12], engines, progress, times, state.quarantine(plan))


def _refuse_padded_keys(table: Table, plan: InsertPlan) -> None:
    """Raise TableError if a column of the key is a CHAR of the table, as Delta stores shorter values with spaces: they
    would not be found again."""
    padded = [name for name in plan.key if name in {constraint.padded for constraint in table.constraints}]
    if padded:
        raise TableError(
            f"table {table}: column {padded[0]!r} of the PRIMARY KEY is a CHAR, to whose shorter values Delta adds "
            "spaces, so that a row would not be found by its key; let it be a VARCHAR or a STRING"
        )


def _source_ids(progress: IngestProgress) -> dict[str, str]:
    return {
        key.removeprefix(_SOURCE): id for key, id in progress.topic_ids.items() if key.startswith(_SOURCE)
    }


def _event_times(progress: IngestProgress | None) -> EventTimeProgress:
    text = progress.topic_ids.get(_EVENT_TIMES) if progress is not None else None
    return EventTimeProgress.from_json(text) if text else EventTimeProgress()
