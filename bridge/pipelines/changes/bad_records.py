"""Bad records of a batch: refused, or written to the quarantine, as `ingest.bad-records` says."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from bridge.definition import BadRecords, Definition
from bridge.delta.quarantine import quarantine_records
from bridge.errors import BadRecordError
from bridge.ingest_progress import IngestProgress
from bridge.pipelines.changes import row_gate
from bridge.pipelines.changes.batch_stats import BatchStats

WAY_OUT = (
    "set `ingest: {{bad-records: quarantine}}` in the pipeline file of {!r} to continue and quarantine such records, "
    "or `{{bad-records: skip}}` to count them only"
)


def refuse_bad_records(definition: Definition, stats: BatchStats) -> None:
    """Raise BadRecordError where `bad-records` is `fail` and the batch has bad records.

    The message names the partition, the offset, the key where it is known, and the reason of the first one.
    """
    if not stats.bad or definition.bad_records is not BadRecords.FAIL:
        return
    more = f" (and {stats.bad - 1} more in this batch)" if stats.bad > 1 else ""
    raise BadRecordError(
        f"{stats.first_bad}{more}. Nothing of this batch was written. Correct the producer and have the key sent "
        f"again, or {WAY_OUT.format(definition.name)}"
    )


def quarantine_bad_records(
    definition: Definition,
    spark: SparkSession,
    records: DataFrame,
    changes: DataFrame,
    stats: BatchStats,
    progress: IngestProgress,
) -> bool:
    """Write the bad ones among `records` to the quarantine; True if there were any to write.

    Call it before the commit of `progress`. Rows that the gate diverts are bad records, too; they are quarantined
    under every setting of `bad-records`.
    """
    target = definition.quarantine
    quarantines_all = definition.bad_records is BadRecords.QUARANTINE
    if target is None or not (stats.diverted or (stats.bad and quarantines_all)):
        return False
    if not quarantines_all:
        changes = changes.where(row_gate.is_diverted())
    quarantine_records(
        spark,
        target,
        records,
        changes,
        pipeline=definition.name,
        batch=progress.batch,
        topic_ids=progress.topic_ids or {},
    )
    return True
