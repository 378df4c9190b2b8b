"""Runs a script: topics -ingest-> states -query-> results -publish-> topics, again and again until nothing changes.

Each arrow commits its progress with its rows, so a run that is killed goes on where it was. Two INSERTs that read one
topic share its state, which is read once. A `print` sink writes lines as Flink's connector does: `id> +U[Ulm, 3]`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from bridge import watchdog
from bridge.backend import Feature, require
from bridge.columns import KIND, col, retracts
from bridge.console import printable
from bridge.definition import Definition
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.file_removal import remove_files_before
from bridge.delta.file_state import FileState
from bridge.delta.rows_taken_back import RowsTakenBack
from bridge.delta.table import Table
from bridge.errors import BadRecordError, TableError
from bridge.kafka.topic_creation import prepare_topics
from bridge.metrics import BatchReport, Listener, RunName, Summary, ignore
from bridge.metrics.monitoring import monitored
from bridge.metrics.steps import step, taken, watched
from bridge.pipelines.changes.bad_records import WAY_OUT
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.runtime.lease import Lease, acquire_lease_in
from bridge.pipelines.runtime.preflight import ingest_table
from bridge.pipelines.scripts.lineage import script_flow
from bridge.pipelines.scripts.result import Result, open_result
from bridge.pipelines.scripts.source_tables import open_sources, with_kept_positions
from bridge.pipelines.scripts.state import ScriptState
from bridge.sql import InsertPlan, Script
from bridge.sql.connectors import Connector
from bridge.sql.positions import POSITION_COLUMNS

_SAME = "__same"


def printed_lines(table: Table, plan: InsertPlan, version: int, identifier: str = "") -> Iterator[str]:
    """Yield a line for each change of one version of a result: by key, the row before an update first.

    Values are texts as Spark casts them, and NULL is `null`. Rows come from Spark one partition at a time.
    """
    order = [*map(col, plan.key), F.when(retracts(), 0).otherwise(1)]
    changes = change_feed.changes(table, version, version)
    row = F.concat_ws(", ", *(F.coalesce(col(c.name).cast("string"), F.lit("null")) for c in plan.columns))
    if plan.kept_columns:
        # Updates of kept columns alone are left out.
        same = Window.partitionBy(*map(col, plan.key), row)
        changes = changes.withColumn(_SAME, F.count("*").over(same)).where(col(_SAME) == 1)
    prefix = f"{identifier}> " if identifier else ""
    with feed_errors(table, version, version):
        for kind, text in changes.orderBy(*order).select(col(KIND), row).toLocalIterator():
            yield f"{prefix}{kind}[{text}]"


_REMOVAL_SECONDS = 600.0
"""Rows of closed windows are removed with the first batch of a run, and then not more often."""

Print = Callable[[str, bool], None]
"""Called with a line of a `print` sink, and whether it goes to standard error."""


@dataclass
class ScriptSummary:
    """The totals of a run, by pipeline: those of the sources, of the INSERTs, and of the sinks."""

    script: str
    rounds: int = 0
    seconds: float = 0.0
    pipelines: dict[tuple[str, str], Summary] = field(default_factory=dict)
    """By verb (`ingest`, `insert`, `publish`) and name."""

    def add(self, report: BatchReport) -> None:
        """Add a batch to the totals of its pipeline."""
        at = (report.verb, report.pipeline)
        self.pipelines[at] = self.pipelines.get(at, Summary(report.pipeline, report.verb)).plus(report)


def _print_line(line: str, to_error: bool) -> None:
    stream = sys.stderr if to_error else sys.stdout
    print(printable(line) if stream.isatty() else line, file=stream, flush=True)


def run_script(
    spark: SparkSession,
    script: Script,
    *,
    every_seconds: float | None = None,
    rebuild: bool = False,
    listener: Listener = ignore,
    out: Print = _print_line,
    stop: threading.Event | None = None,
) -> ScriptSummary:
    """Run all INSERTs of a script until their sources have nothing new; with `every_seconds` until `stop` is set.

    In a round each topic is ingested to its end, each INSERT computes at one version of each source which rows of its
    result change, and commits them with these versions; each sink gets the changes of its result. A topic with
    'scan.bounded.mode' is read to the bound that it has when the run first reads it; a run whose sources have all ended
    ends, too. Where INSERTs read what others write, rounds follow each other as long as one of them changes something.
    Missing topics of sinks are created first, with the broker's defaults, and compacted if they are upsert topics.
    `rebuild` computes all results again in the first round; a result that is right stays as it is. `listener` is called
    after each commit, `out` with each line of a `print` sink.

    Raises ConcurrentRunError, before anything is read or written, when another run of the script is at work, and at
    the next step when another has taken over; what `ingest` and `publish` raise; DefinitionError for a query that has
    changed since the last run; TableError and GapError of its tables.
    """
    require(spark, Feature.PERSIST, "bridge run of a script")
    state, name = ScriptState(script), RunName(script.name, "run")
    with (
        watched(name, script.step_timeout_seconds),
        acquire_lease_in(
            FileState(spark, state.folder, "bridge.state"), "script", name=script.name, verb="run"
        ) as lease,
        monitored(
            script.monitoring,
            listener,
            name,
            owner=lease.owner,
            died=lease.died,
            flow=partial(script_flow, spark, state, is_streaming=every_seconds is not None),
            stop=stop,
            parts=state.run_names(),
        ) as listen,
    ):
        state = with_kept_positions(spark, state)
        return _Run(spark, state, lease, rebuild, listen, out, stop or threading.Event()).run(every_seconds)


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        state: ScriptState,
        lease: Lease,
        rebuild: bool,
        listener: Listener,
        out: Print,
        stop: threading.Event,
    ) -> None:
        self._spark, self._script, self._out, self._stop = spark, state.script, out, stop
        self._state, self._lease, self._listener, self._rebuild = state, lease, listener, rebuild
        self._summary = ScriptSummary(state.script.name)
        self._results: dict[str, Result] = {}
        self._opened: dict[str, tuple[Table, int]] = {}
        """The states of topics in this round, which INSERTs share."""
        self._ended: set[str] = set()
        """The sources that were read to their bound, which is looked up once in a run."""
        self._removals: dict[str, float] = {}
        """When rows of closed windows may be removed again, by source."""
        self._sent: set[str] = set()
        """The publishes that have sent all changes; none before the first round, as a former run may have left some."""

    def run(self, every_seconds: float | None) -> ScriptSummary:
        started = time.monotonic()
        self._create_sinks()
        while not self._stop.is_set():
            is_changed = self._round()
            self._summary.rounds += 1
            self._rebuild = False
            if every_seconds is None:
                if not (is_changed and self._state.feeds_itself()):
                    break
            elif not is_changed:
                if self._script.sources and all(s.name in self._ended for s in self._script.sources):
                    break
                with watchdog.waiting():
                    self._stop.wait(every_seconds)
        self._summary.seconds = time.monotonic() - started
        return self._summary

    def _create_sinks(self) -> None:
        """Create missing topics of sinks first, as other INSERTs of the script may read them; and all columns of tables
        of which each INSERT writes its own."""
        for plan in self._script.inserts:
            definition = self._state.publish(plan)
            if definition is not None:
                prepare_topics(definition.topic)  # the publish warns of what it finds
            if plan.merge_columns:
                self._results[plan.name] = open_result(self._spark, self._state, plan)

    def _round(self) -> bool:
        """One round; returns whether it has changed anything."""
        self._opened = {}
        steps: list[Callable[[], bool]] = [
            *(
                lambda n=name, d=definition: self._ingest(n, d)
                for name, definition in self._ingests().items()
            ),
            *(lambda p=plan: self._insert(p) for plan in self._script.inserts),
        ]
        return any([self._owned(step) for step in steps if not self._stop.is_set()])

    def _owned(self, step: Callable[[], bool]) -> bool:
        self._lease.check()
        return step()

    def _ingests(self) -> dict[str, Definition]:
        """Those of topics from which rows may still come, by the names of their tables."""
        names = [source.name for source in self._script.sources if source.name not in self._ended]
        found = {name: self._state.ingest(self._state.tables[name]) for name in names}
        return {name: definition for name, definition in found.items() if definition is not None}

    def _ingest(self, name: str, definition: Definition) -> bool:
        try:
            summary = ingest(self._spark, definition, listener=self._report, stop=self._stop)
        except BadRecordError as error:
            way_out = (
                "SET 'bridge.bad-records' = 'quarantine' to continue and quarantine such records, or 'skip' to count "
                "them only"
            )
            raise BadRecordError(str(error).replace(WAY_OUT.format(definition.name), way_out)) from error
        except TableError as error:
            if any(column.name in str(error) for column in POSITION_COLUMNS):
                raise TableError(
                    f"{error}. This state was made without the positions of its records, which a query of the script "
                    "needs now; give the script another name (SET 'pipeline.name' = ...), and it starts anew"
                ) from error
            raise
        if summary.has_ended:
            self._ended.add(name)
        if summary.batches and self._script.removes_closed and not self._rebuild:
            self._remove_closed(name, definition)
        return summary.batches > 0

    def _remove_closed(self, name: str, definition: Definition) -> None:
        """Remove the rows of a topic that no window needs any more. INSERTs see it together with new rows, so it makes
        no commit of theirs."""
        reads = self._script.windowed_reads(name)
        ends = [self._result(plan).needed_after_ms for plan, _ in reads]
        known = [end - at.longest_ms for end, (_, at) in zip(ends, reads, strict=True) if end is not None]
        if not definition.topic.appends or not known or len(known) < len(ends):
            return
        now = time.monotonic()
        if now >= self._removals.get(name, now):
            self._removals[name] = now + _REMOVAL_SECONDS
            remove_files_before(ingest_table(self._spark, definition), reads[0][1].column, min(known))

    def _result(self, plan: InsertPlan) -> Result:
        found = self._results.get(plan.name)
        if found is None:
            found = self._results[plan.name] = open_result(self._spark, self._state, plan)
        return found

    def _insert(self, plan: InsertPlan) -> bool:
        """Refresh the result of an INSERT and send its changes, also those of a run that was killed in between."""
        result = self._result(plan)
        sources = open_sources(self._spark, self._state, plan, self._opened, self._ended)
        with step("insert", f"computing and committing INSERT {plan.name}"):
            try:
                report = result.refresh(sources, rebuild=self._rebuild)
            except RowsTakenBack:
                del self._results[plan.name]
                self._sent.discard(self._state.sent_by(plan))
                result = self._result(plan)
                report = result.refresh(sources, rebuild=self._rebuild)
        if report is not None:
            report = replace(report, steps=taken())
            self._report(report)
            self._print(result, report)
        self._send(plan, is_changed=report is not None)
        return report is not None

    def _send(self, plan: InsertPlan, *, is_changed: bool) -> None:
        """Send the changes of a result, when all INSERTs that write its rows are done with the round."""
        name, definition = self._state.sent_by(plan), self._state.publish(plan)
        if is_changed:
            self._sent.discard(name)
        if definition is not None and name not in self._sent and not self._state.is_sent_later(plan):
            publish(self._spark, definition, listener=self._report, stop=self._stop)
            self._sent.add(name)

    def _print(self, result: Result, report: BatchReport) -> None:
        sink = self._state.tables[result.plan.sink]
        if sink.connector is Connector.PRINT and report.version is not None:
            identifier = sink.ddl.options.get("print-identifier", "")
            for line in printed_lines(result.table, result.plan, report.version, identifier):
                self._out(line, sink.ddl.options.get("standard-error", "false") == "true")

    def _report(self, report: BatchReport) -> None:
        self._summary.add(report)
        self._listener(report)
