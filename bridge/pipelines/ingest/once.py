"""source -> changes -fold-> changes -merge-> Delta, once: `bridge ingest FILE --once SOURCE` beside the topic.

The rows of another topic, of files or of a table are merged as late records are: the greatest sequence counts, so they
may come before or after those of the pipeline's topic, and twice.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from bridge.columns import spark_type
from bridge.config.paths import is_uri
from bridge.decode import CORRUPT, decode_rows
from bridge.definition import BadRecords, Definition, DeltaTarget, GateAction, Startup, Topic
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.engine_choice import Engines
from bridge.delta.file_statistics import repair_statistics
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_semantics import semantics_of
from bridge.delta.schema_evolution import widens
from bridge.delta.table import Table, open_table, set_properties
from bridge.delta.table_checks import ONCE_PROPERTY, property_of
from bridge.errors import BadRecordError, DefinitionError
from bridge.ingest_progress import IngestProgress
from bridge.kafka import admin, source
from bridge.kafka.read_counts import ReadCounts
from bridge.metrics import Listener, Summary, ignore
from bridge.pipelines.changes import changelog_decode, row_gate
from bridge.pipelines.changes.batch_stats import collect_batch_stats
from bridge.pipelines.changes.changelog_decode import Persist
from bridge.pipelines.changes.truncates import after_truncates
from bridge.pipelines.changes.unfit_rows import with_constraints
from bridge.pipelines.ingest import batch
from bridge.pipelines.ingest.batch import Decoded
from bridge.pipelines.runtime.executors import check_executors
from bridge.pipelines.runtime.lease import Lease, acquire_lease
from bridge.pipelines.runtime.lineage import once_flow, tracked_command
from bridge.pipelines.runtime.monitoring import Notices
from bridge.pipelines.runtime.preflight import ingest_table
from bridge.schema import MetadataColumn, PhysicalColumn, ScalarType
from bridge.ways import told

_LEGAL = "topic:NAME, table:PATH or table:NAME of a Delta table, parquet:PATH, json:PATH and csv:PATH"
_FILES = ("parquet", "json", "csv")
_MOST_PLACES = 20


@dataclass(frozen=True)
class OnceSource:
    """What follows `--once`: `kind`, a colon, and `place`."""

    kind: str
    """`topic`, `table`, `parquet`, `json` (a document a line) or `csv` (with a header)."""
    place: str
    """Names of topics with `;` between them; a path, that of files may have wildcards; or the name of a table."""

    @classmethod
    def of(cls, text: str) -> OnceSource:
        """Parse it; a relative path is one of the working folder. Raises DefinitionError."""
        kind, colon, place = text.partition(":")
        if not (colon and place and kind in ("topic", "table", *_FILES)):
            raise DefinitionError(f"--once {text}: legal values are {_LEGAL}")
        is_path = kind in _FILES or (kind == "table" and "/" in place)
        return cls(kind, os.path.abspath(place) if is_path and not is_uri(place) else place)

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}"

    def target(self) -> DeltaTarget:
        """The table of a `table` source."""
        return DeltaTarget(path=self.place) if "/" in self.place else DeltaTarget(table=self.place)

    def topic(self, topic: Topic) -> Topic:
        """The topics of a `topic` source, on the brokers and in the formats of the pipeline's."""
        names = tuple(name.strip() for name in self.place.split(";"))
        return replace(topic, names=names, pattern=None, startup=Startup())


def ingest_once(
    spark: SparkSession, definition: Definition, text: str, *, listener: Listener = ignore
) -> Summary:
    """Merge all that the source `text` has now into the pipeline's table, in one commit.

    Records of a topic are decoded as those of the pipeline's. A row of a file or of a table sets the row of its key,
    unless `delta.apply-as-delete` says that it deletes it. `delta.sequence-by` orders them among each other and beside
    all that the table has, and the commit carries the offsets of the pipeline as they are; so the ingest continues
    where it was, and to run this again changes nothing. The table is created if absent; the first ingest then begins
    where it would begin now. A bad record or row stops it, with nothing written, unless `bad-records` is `skip`, and so
    does a row that breaks a rule of `gate: quarantine`: the quarantine has records of the pipeline's topic.

    It takes the lease of the ingest: one of the two runs at a time. Raises ConcurrentRunError while the other runs,
    DefinitionError for an illegal source, without `sequence-by`, and for files or a table without the columns of the
    DDL, BadRecordError, QualityError, TableError and KafkaError.
    """
    found = OnceSource.of(text)
    if not definition.delta.sequence_by:
        raise DefinitionError(
            f"--once: {definition.name!r} orders changes by their position in its topic, and what comes from elsewhere "
            "has none, so older values would overwrite newer ones; set `delta.sequence-by` to a column of the record"
        )
    check_executors(spark, definition, sends=False)
    read: Topic | DeltaTarget | str = found.place
    if found.kind in ("topic", "table"):
        read = found.topic(definition.topic) if found.kind == "topic" else found.target()
    flow = partial(once_flow, source=read)
    with (
        acquire_lease(spark, definition, "ingest", verb="ingest --once") as lease,
        tracked_command(spark, definition, "ingest", flow),
    ):
        return _Once(spark, definition, found, lease, listener).run()


@dataclass(frozen=True)
class _Once:
    spark: SparkSession
    definition: Definition
    source: OnceSource
    lease: Lease
    listener: Listener

    def run(self) -> Summary:
        started, notices = time.monotonic(), Notices()
        table = ingest_table(self.spark, self.definition)
        definition = with_constraints(_stopping(self.definition), table)
        gate = row_gate.check_ready(self.spark, definition, table.change_fields)
        notices.add(self.lease.warning, repair_statistics(table), gate)
        progress = self._progress(table)
        with ExitStack() as stack:
            persist = changelog_decode.persist_within(stack)
            decoded = self._decoded(definition, table, persist, stack)
            self._judge(decoded, definition)
            compacted = batch.compact(decoded, definition, persist)
            unexpected, warnings = batch.judge_rows(compacted, definition)
            self.lease.check()
            self._record(table)
            engines = Engines(definition.merge, semantics_of(definition.delta))
            merged = batch.merge(decoded, compacted, definition, table, engines, progress)
            applied = batch.report(decoded, compacted, merged, progress.reader, unexpected, warnings)
        notices.add(*applied.warnings)
        report = replace(
            batch.batch_report(applied, definition.name, progress.batch, str(self.source), table),
            warning=notices.all(),
            seconds=time.monotonic() - started,
        )
        self.listener(report)
        summary = Summary(definition.name, "ingest").plus(report)
        return replace(summary, warning=report.warning, seconds=time.monotonic() - started)

    def _progress(self, table: Table) -> IngestProgress:
        """That of the pipeline, with the next number; where it has none, the start of a first run."""
        last, run = read_progress(table, self.definition.name), uuid.uuid4().hex[:12]
        reader = told("spark", f"--once {self.source}")
        if last is not None:
            return replace(last[0], run=run, batch=last[0].batch + 1, reader=reader)
        topic = admin.resolve(self.definition.topic)
        state = admin.describe(topic)
        offsets = admin.start_offsets(topic, state)
        return IngestProgress(self.definition.name, run, 0, offsets, state.ids, starts=True, reader=reader)

    def _record(self, table: Table) -> None:
        """Have the table say that it has rows that are not from its topic, in a commit of its own where it does not."""
        if self.source.kind == "topic":
            own = admin.resolve(self.definition.topic).names
            if set(self.source.topic(self.definition.topic).names) <= set(own):
                return
        name = property_of(table.target, ONCE_PROPERTY)
        places = json.loads(table.properties.get(name, "[]"))
        if str(self.source) not in places:
            kept = [*places, str(self.source)][-_MOST_PLACES:]
            set_properties(self.spark, table.target, {name: json.dumps(kept, ensure_ascii=False)})

    def _decoded(self, definition: Definition, table: Table, persist: Persist, stack: ExitStack) -> Decoded:
        if self.source.kind == "topic":
            topic = self.source.topic(definition.topic)
            state = admin.describe(topic)
            records = batch.read(
                source.read(self.spark, topic, state.earliest, state.end),
                topic,
                state.earliest,
                state.end,
                None,
            )
            return batch.decode(records, replace(definition, topic=topic), table, persist, fast=True)
        rows = self._rows_of_table(table, stack) if self.source.kind == "table" else self._rows_of_files()
        self._refuse_unfit(rows)
        changes = decode_rows(rows, definition.topic, str(self.source))
        changes = persist(changelog_decode.turned_and_judged(changes, definition))
        stats = collect_batch_stats(definition, changes)
        changes, truncate = after_truncates(changes, definition, stats.truncates)
        if truncate is not None:
            stats = collect_batch_stats(definition, changes)
        read = ReadCounts(records=stats.good + stats.bad + stats.skipped + stats.diverted)
        return Decoded(rows, changes, stats, read, needed_full_decode=False, truncate=truncate)

    def _judge(self, decoded: Decoded, definition: Definition) -> None:
        """Raise BadRecordError for a bad record or row, unless such are left out."""
        stats = decoded.stats
        if not stats.bad or definition.bad_records is not BadRecords.FAIL:
            return
        first = str(stats.first_bad)
        if self.source.kind != "topic":  # the place of a row is the hash by which equal sequences are ordered
            first = re.sub(r"-0 at offset -?\d+", "", first, count=1)
        more = f" (and {stats.bad - 1} more)" if stats.bad > 1 else ""
        raise BadRecordError(
            f"{first}{more}. Nothing of --once {self.source} was written. Correct it, or set `ingest: {{bad-records: "
            "skip}` to leave such rows out; they are not quarantined, as they are not from the pipeline's topic"
        )

    def _rows_of_table(self, table: Table, stack: ExitStack) -> DataFrame:
        """The rows that the table has now, whatever is committed to it meanwhile."""
        found = open_table(self.spark, self.source.target(), [], extra_columns="unused", feed=False)
        if found.id == table.id:
            raise DefinitionError(f"--once {self.source}: it is the table of the pipeline itself")
        version = change_feed.latest_version(found)
        stack.enter_context(feed_errors(found, version, version))
        return found.read({"versionAsOf": str(version)})

    def _rows_of_files(self) -> DataFrame:
        """The rows of the files; CORRUPT is the text of a row that cannot be read."""
        read, place = self.spark.read, self.source.place
        try:
            if self.source.kind == "parquet":
                return read.option("mergeSchema", "true").parquet(place)
            read = read.option("columnNameOfCorruptRecord", CORRUPT)
            corrupt = T.StructField(CORRUPT, T.StringType())
            if self.source.kind == "json":
                columns = [T.StructField(c.name, spark_type(c.type)) for c in self._columns()]
                return read.schema(T.StructType([*columns, corrupt])).json(place)
            read = read.option("header", "true").option("escape", '"')
            header = read.csv(place).schema
            checked = read.option("enforceSchema", "false")
            return checked.schema(T.StructType([*header.fields, corrupt])).csv(place)
        except AnalysisException as error:
            reason = str(error).splitlines()[0][:300]  # of paths and names of columns
            raise DefinitionError(f"--once {self.source}: {reason}") from error

    def _columns(self) -> list[PhysicalColumn | MetadataColumn]:
        columns = self.definition.topic.schema.columns
        return [c for c in columns if isinstance(c, PhysicalColumn | MetadataColumn)]

    def _refuse_unfit(self, rows: DataFrame) -> None:
        """Raise DefinitionError for rows without the columns of the DDL, or with a type whose values these cannot have.
        A column with METADATA may be missing, unless the sequence is in it."""
        there = {f.name: f.dataType for f in rows.schema.fields}
        needed = self.definition.delta.sequence_by
        for column in self._columns():
            name, type = column.name, spark_type(column.type)
            if name not in there:
                if isinstance(column, PhysicalColumn) or name in needed:
                    raise DefinitionError(
                        f"--once {self.source}: it has no column {name!r}; its columns are "
                        f"{', '.join(n for n in there if n != CORRUPT)}. Give it one of this name"
                    )
                continue
            found = there[name]
            as_text = self.source.kind == "csv" and isinstance(column.type, ScalarType)
            # By text, as types of columns that may not be null are others.
            is_same = found.simpleString() == type.simpleString()
            if not (is_same or as_text or widens(found, type)):
                raise DefinitionError(
                    f"--once {self.source}: column {name!r} is {found.simpleString()}, and that of the DDL is "
                    f"{type.simpleString()}; write it with this type"
                )


def _stopping(definition: Definition) -> Definition:
    """The definition for rows that have no place in the quarantine: what would go there stops the run."""
    if definition.bad_records is BadRecords.QUARANTINE:
        definition = replace(definition, bad_records=BadRecords.FAIL)
    if definition.quality is not None and definition.quality.gate is not None and definition.quarantines_rows:
        gate = replace(definition.quality.gate, action=GateAction.FAIL)
        definition = replace(definition, quality=replace(definition.quality, gate=gate))
    return replace(definition, quarantine=None)
