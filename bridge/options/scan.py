"""Options of a source: where reading starts and ends, discovery, parallelism and watermarks."""

from __future__ import annotations

from typing import Any

from bridge.options.kinds import (
    DURATION,
    INT,
    NON_NEGATIVE_LONG,
    POSITIVE_INT,
    STRING,
    choice,
    partition_offsets,
)
from bridge.options.model import KAFKA, UPSERT, Option, Side, Support

_STARTS = choice("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
_ONCE_A_BATCH = "the bridge computes the watermark once per batch, from the records of the batch; remove it"
_NO_ALIGNMENT = "a pipeline reads all partitions batch by batch, so there are no sources to align; remove it"

STARTUP_MODE = Option(
    "scan.startup.mode",
    _STARTS,
    "Where reading starts if the table contains no progress of the pipeline. For partitions without a committed "
    "offset, 'group-offsets' uses 'properties.auto.offset.reset', by default latest as in Kafka (Flink fails); a run "
    "warns of what it leaves out.",
    default="group-offsets",
    connectors=(KAFKA,),
    side=Side.SOURCE,
)
UPSERT_STARTUP_MODE = Option(
    "scan.startup.mode",
    _STARTS,
    "Where reading starts if the table contains no progress of the pipeline. Flink's connector does not have this "
    "option: it always starts at the earliest offset, since a changelog without its beginning does not define a "
    "table. The bridge accepts it and the other 'scan.startup.*' options only with 'ingest.base: existing' in the "
    "pipeline file, which declares that the Delta table already contains the changes before the start position.",
    default="earliest-offset",
    connectors=(UPSERT,),
    side=Side.SOURCE,
)
STARTUP_OFFSETS = Option(
    "scan.startup.specific-offsets",
    partition_offsets("scan.startup.specific-offsets"),
    "First offset to read in each partition in the mode 'specific-offsets': "
    "'partition:0,offset:42;partition:1,offset:300'.",
    side=Side.SOURCE,
)
STARTUP_TIMESTAMP = Option(
    "scan.startup.timestamp-millis",
    NON_NEGATIVE_LONG,
    "Start of reading in the mode 'timestamp', in epoch milliseconds: the first record with this or a later timestamp.",
    side=Side.SOURCE,
)
BOUNDED_MODE = Option(
    "scan.bounded.mode",
    choice("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets"),
    "Where reading ends. The end offsets are determined once, when the run starts.",
    default="unbounded",
    side=Side.SOURCE,
)
BOUNDED_OFFSETS = Option(
    "scan.bounded.specific-offsets",
    partition_offsets("scan.bounded.specific-offsets"),
    "End of reading in the mode 'specific-offsets': the offset after the last one to read in each partition. "
    "Partitions that are not listed are not read.",
    side=Side.SOURCE,
)
BOUNDED_TIMESTAMP = Option(
    "scan.bounded.timestamp-millis",
    NON_NEGATIVE_LONG,
    "End of reading in the mode 'timestamp', in epoch milliseconds: before the first record with this or a later "
    "timestamp.",
    side=Side.SOURCE,
)
DISCOVERY_INTERVAL = Option(
    "scan.topic-partition-discovery.interval",
    DURATION,
    "Interval at which a continuous run looks for new topics that match 'topic-pattern'. New partitions of known "
    "topics are discovered with every batch. '0' disables both.",
    default="5 min",
    connectors=(KAFKA,),
    side=Side.SOURCE,
)
SCAN_PARALLELISM = Option(
    "scan.parallelism",
    POSITIVE_INT,
    "Minimum number of Spark tasks that read the topic; there is at least one per partition.",
    side=Side.SOURCE,
)

IDLE_TIMEOUT = Option(
    "scan.watermark.idle-timeout",
    DURATION,
    "Time after which a partition without records is idle and no longer holds back the watermark; '0 ms' disables it.",
    default="0 ms",
    side=Side.SOURCE,
)

SCAN: tuple[Option[Any], ...] = (
    UPSERT_STARTUP_MODE,
    STARTUP_MODE,
    STARTUP_OFFSETS,
    STARTUP_TIMESTAMP,
    BOUNDED_MODE,
    BOUNDED_OFFSETS,
    BOUNDED_TIMESTAMP,
    DISCOVERY_INTERVAL,
    SCAN_PARALLELISM,
    IDLE_TIMEOUT,
    *(
        Option(
            f"scan.watermark.{key}",
            kind,
            text,
            default,
            side=Side.SOURCE,
            support=Support.REFUSED,
            reason=reason,
        )
        for key, kind, text, default, reason in (
            (
                "emit.strategy",
                choice("on-event", "on-periodic"),
                "When Flink emits watermarks.",
                "on-periodic",
                _ONCE_A_BATCH,
            ),
            (
                "emit.on-event.gap",
                INT,
                "Number of events between two watermarks in Flink.",
                "1",
                _ONCE_A_BATCH,
            ),
            (
                "alignment.group",
                STRING,
                "Group of sources whose watermarks Flink aligns.",
                None,
                _NO_ALIGNMENT,
            ),
            (
                "alignment.max-drift",
                DURATION,
                "Maximum drift between the sources of an alignment group.",
                None,
                _NO_ALIGNMENT,
            ),
            (
                "alignment.update-interval",
                DURATION,
                "Interval at which Flink compares the sources of an alignment group.",
                "1 s",
                _NO_ALIGNMENT,
            ),
        )
    ),
)
