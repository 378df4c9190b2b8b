"""Previews the next batch of an ingest: which files and rows of the table it would touch, and why. Applies nothing."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.backend import Feature, backend_of
from bridge.columns import col, retracts
from bridge.definition import Definition
from bridge.delta.engine_choice import Engines
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_semantics import semantics_of
from bridge.delta.table import Table, exists
from bridge.kafka import admin, source
from bridge.kafka.leader_epochs import with_leader_epochs
from bridge.kafka.offset_availability import check_offsets_available
from bridge.offsets import Offsets
from bridge.pipelines.changes import changelog_decode
from bridge.pipelines.changes.truncates import settle
from bridge.pipelines.changes.unfit_rows import with_constraints
from bridge.pipelines.ingest.consumer_batches import next_end
from bridge.pipelines.ingest.consumer_support import preview
from bridge.pipelines.runtime.preflight import open_whole_table, refuse_partitions
from bridge.ways import told

_EVERYWHERE = 0.8
"""The fraction of all files from which on the keys are spread over the table."""
_SCATTERED = 0.1
"""The number of files per key from which on the keys lie far apart."""


@dataclass(frozen=True)
class Explained:
    """The next batch, compared with the table as it is. Bytes are those of whole files."""

    pipeline: str
    table: str
    pending_records: int
    """Offsets that are not applied yet."""
    records: int
    """Offsets of the next batch."""
    keys: int
    """Keys in the fold of the batch; rows, where the table has no key."""
    deletes: int
    files: int
    bytes: int
    rows: int
    """Rows of the whole table."""
    files_in_range: int
    """Files whose smallest and largest key enclose a key of the batch: statistics cannot rule them out."""
    bytes_in_range: int
    files_touched: int
    """Files that contain a row whose key is in the batch."""
    bytes_touched: int
    rows_touched: int
    """Rows whose key is in the batch."""
    why: str
    reader: str = ""
    """What reads the batch, and why not a faster way: what a record may need is not known before it is read."""
    engine: str = ""
    """The merge engine and the reason for it; empty where there is no table yet, or nothing to merge."""


def explain(spark: SparkSession, definition: Definition) -> Explained:
    """Read and fold the records of the next batch, and find its keys in the table's files.

    Reads the key columns of the whole table once, and writes nothing. Raises KafkaError, TableError and GapError, like
    an ingest before its first batch, and BadRecordError for a truncate under `truncate: refuse`.
    """
    topic = admin.resolve(definition.topic)
    state = admin.describe(topic)
    refuse_partitions(definition, state.end)
    table = open_whole_table(spark, definition) if exists(spark, definition.delta) else None
    definition = with_constraints(definition, table) if table else definition
    progress = read_progress(table, definition.name) if table else None
    start = progress[0].offsets if progress else admin.start_offsets(topic, state)
    if progress:
        check_offsets_available(start, state, progress[0].topic_ids)
    start = Offsets({**state.earliest.by_partition, **start.by_partition})
    end = admin.end_offsets(topic, state) or state.end
    reader = preview(definition, topic, table)
    streams = reader != told("consumer") and backend_of(spark).can(Feature.STREAMS) is None
    limited = end_of_stream if streams else next_end
    until = limited(start, end, definition.run.max_offsets_per_batch)
    with ExitStack() as stack:
        persist = changelog_decode.persist_within(stack)
        records = with_leader_epochs(source.read(spark, topic, start, until), topic, start, until)
        decoded = changelog_decode.decode_with_fallback(records, definition, persist)
        decoded, truncate = settle(decoded, definition)
        decoded = changelog_decode.without_halves(decoded, definition)
        changes = persist(changelog_decode.fold(decoded, definition))
        counts = changes.agg(F.count(F.lit(1)), F.count_if(retracts())).first()
        assert counts is not None
        files = _file_stats(table, changes, definition) if table else None
        files_touched = _sum_up(files) if files is not None else dict.fromkeys(_SUMS, 0)
        engine = ""
        if table and (counts[0] or truncate) and not definition.topic.appends:
            engines = Engines(definition.merge, semantics_of(definition.delta))
            engine = engines.describe_choice(
                table, changes, key=definition.primary_key, deletes_others=truncate is not None
            )
    return Explained(
        pipeline=definition.name,
        table=str(definition.delta),
        pending_records=start.lag(end),
        records=start.lag(until),
        keys=counts[0],
        deletes=counts[1],
        **files_touched,
        why=_why(
            files_touched,
            counts[0],
            appends=definition.topic.appends,
            clustered=table is not None and _clustered(table),
        ),
        reader=reader,
        engine=engine,
    )


def end_of_stream(start: Offsets, end: Offsets, limit: int) -> Offsets:
    """Do as `next_end` for Spark's streaming source, which rounds each partition's share of the limit."""
    left = {key: max(0, stop - start.by_partition.get(key, 0)) for key, stop in end.by_partition.items()}
    total = sum(left.values())
    if total <= limit:
        return end
    parts = {key: limit * count / total for key, count in left.items()}
    return Offsets(
        {
            key: start.by_partition.get(key, 0) + min(left[key], ceil(part) if part < 1 else floor(part))
            for key, part in parts.items()
        }
    )


_SUMS = (
    *("files", "bytes", "rows", "files_in_range", "bytes_in_range"),
    *("files_touched", "bytes_touched", "rows_touched"),
)


def _file_stats(table: Table, changes: DataFrame, definition: Definition) -> DataFrame:
    """Return a row per file: `bytes`, `rows`, `rows_touched`, and `in_range` by its first key column."""
    key = definition.primary_key
    rows = table.delta().toDF()
    meta = F.col("_metadata")
    file_columns = [meta.getField("file_path").alias("__file"), meta.getField("file_size").alias("__bytes")]
    if not key:
        files = rows.select(*file_columns).groupBy("__file").agg(_bytes(), F.count(F.lit(1)).alias("rows"))
        return files.select("bytes", "rows", F.lit(0).alias("rows_touched"), F.lit(False).alias("in_range"))
    # Of a history, a batch has several changes of a key.
    batch_keys = changes.select(*(col(name) for name in key)).distinct().withColumn("__in_batch", F.lit(True))
    first = col(key[0])
    is_same_key = [col(name, "t").eqNullSafe(col(name, "w")) for name in key]
    joined = (
        rows.select(*(col(name) for name in key), *file_columns)
        .alias("t")
        .join(batch_keys.alias("w"), is_same_key, "left")
    )
    files = joined.groupBy("__file").agg(
        _bytes(),
        F.count(F.lit(1)).alias("rows"),
        F.count("__in_batch").alias("rows_touched"),
        F.min(col(key[0], "t")).alias("__low"),
        F.max(col(key[0], "t")).alias("__high"),
    )
    within = first.between(F.col("__low"), F.col("__high"))
    enclosing = files.join(batch_keys.select(first), within, "left_semi").select(
        "__file", F.lit(True).alias("in_range")
    )
    ranged = files.join(enclosing, "__file", "left")
    return ranged.select(
        "bytes", "rows", "rows_touched", F.coalesce("in_range", F.lit(False)).alias("in_range")
    )


def _bytes() -> Any:
    return F.first("__bytes").alias("bytes")


def _sum_up(files: DataFrame) -> dict[str, int]:
    near, hit = F.col("in_range"), F.col("rows_touched") > 0
    row = files.agg(
        F.count(F.lit(1)).alias("files"),
        F.sum("bytes").alias("bytes"),
        F.sum("rows").alias("rows"),
        F.count_if(near).alias("files_in_range"),
        F.sum(F.when(near, F.col("bytes"))).alias("bytes_in_range"),
        F.count_if(hit).alias("files_touched"),
        F.sum(F.when(hit, F.col("bytes"))).alias("bytes_touched"),
        F.sum("rows_touched").alias("rows_touched"),
    ).first()
    assert row is not None
    return {name: row[name] or 0 for name in _SUMS}


def _clustered(table: Table) -> bool:
    detail = table.delta().detail().select("clusteringColumns", "partitionColumns").first()
    return detail is not None and bool(detail[0] or detail[1])


def _why(stats: dict[str, int], keys: int, *, appends: bool, clustered: bool) -> str:
    files, in_range, touched = stats["files"], stats["files_in_range"], stats["files_touched"]
    if not keys:
        return "there is nothing to apply"
    if appends:
        return "the table has no PRIMARY KEY: rows are added in new files, and no existing file is touched"
    if not files:
        return "the table is empty: rows are written without a lookup"
    if not touched:
        return "no key of the batch is in the table: its rows are new"
    if touched >= _EVERYWHERE * files:
        return (
            f"the keys are spread over the table: {touched:,} of {files:,} files contain one. No layout of files helps "
            "where keys are random; fewer, larger batches do"
        )
    if in_range > 2 * touched:
        layout = "OPTIMIZE has not been run since" if clustered else "the table is not clustered by its key"
        return (
            f"the keys lie together, but {in_range:,} files may contain one by their smallest and largest key where "
            f"{touched:,} do: {layout} (`delta.cluster-by` or ALTER TABLE ... CLUSTER BY, then `bridge maintain`)"
        )
    if touched > _SCATTERED * keys:
        return (
            f"the keys lie far apart: {touched:,} of {files:,} files contain one of {keys:,}; statistics rule out the "
            "others"
        )
    return f"the keys lie together: {touched:,} of {files:,} files contain one, and statistics rule out the others"
