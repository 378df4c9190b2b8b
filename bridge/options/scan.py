"""Options about reading a topic."""

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

__all__ = [
    "BOUNDED_MODE",
    "BOUNDED_OFFSETS",
    "BOUNDED_TIMESTAMP",
    "DISCOVERY_INTERVAL",
    "IDLE_TIMEOUT",
    "SCAN",
    "SCAN_PARALLELISM",
    "STARTUP_MODE",
    "STARTUP_OFFSETS",
    "STARTUP_TIMESTAMP",
    "UPSERT_STARTUP_MODE",
]

_STARTS = choice("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
_ONCE_A_BATCH = "the watermark is measured once a batch, from the records of the batch: remove it"
_NO_ALIGNMENT = (
    "a pipeline reads its topics in one batch after another, so no partition runs ahead: remove it"
)

STARTUP_MODE = Option(
    "scan.startup.mode",
    _STARTS,
    "Where reading begins when the table holds no progress. 'group-offsets' falls back to "
    "'properties.auto.offset.reset' where the group has none.",
    default="group-offsets",
    connectors=(KAFKA,),
    side=Side.SOURCE,
)
UPSERT_STARTUP_MODE = Option(
    "scan.startup.mode",
    _STARTS,
    "Not an option of Flink's connector, which always begins at the earliest offset, because a changelog "
    "without "
    "its beginning is not a table. The bridge accepts it, with its companions, when 'ingest.base: existing' "
    "says "
    "that the Delta table already holds what was before.",
    default="earliest-offset",
    connectors=(UPSERT,),
    side=Side.SOURCE,
)
STARTUP_OFFSETS = Option(
    "scan.startup.specific-offsets",
    partition_offsets("scan.startup.specific-offsets"),
    "First offset to read in each partition, for the mode 'specific-offsets': "
    "'partition:0,offset:42;partition:1,offset:300'.",
    side=Side.SOURCE,
)
STARTUP_TIMESTAMP = Option(
    "scan.startup.timestamp-millis",
    NON_NEGATIVE_LONG,
    "Epoch milliseconds for the mode 'timestamp': reading begins at the first record of that time or later.",
    side=Side.SOURCE,
)
BOUNDED_MODE = Option(
    "scan.bounded.mode",
    choice("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets"),
    "Where reading ends; looked up once, when the run starts.",
    default="unbounded",
    side=Side.SOURCE,
)
BOUNDED_OFFSETS = Option(
    "scan.bounded.specific-offsets",
    partition_offsets("scan.bounded.specific-offsets"),
    "First offset not to read in each partition, for the mode 'specific-offsets'. A partition that is not "
    "named "
    "is not read.",
    side=Side.SOURCE,
)
BOUNDED_TIMESTAMP = Option(
    "scan.bounded.timestamp-millis",
    NON_NEGATIVE_LONG,
    "Epoch milliseconds for the mode 'timestamp': reading ends before the first record of that time or "
    "later.",
    side=Side.SOURCE,
)
DISCOVERY_INTERVAL = Option(
    "scan.topic-partition-discovery.interval",
    DURATION,
    "How often topics that 'topic-pattern' matches by now are looked for; new partitions of known topics are found "
    "with every batch. 0 means never, for both.",
    default="5 min",
    connectors=(KAFKA,),
    side=Side.SOURCE,
)
SCAN_PARALLELISM = Option(
    "scan.parallelism", POSITIVE_INT, "Least number of tasks that read the topic.", side=Side.SOURCE
)

IDLE_TIMEOUT = Option(
    "scan.watermark.idle-timeout",
    DURATION,
    "How long a partition without records still holds the watermark back; 0 means for ever.",
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
                "How many events Flink lets pass between watermarks.",
                "1",
                _ONCE_A_BATCH,
            ),
            (
                "alignment.group",
                STRING,
                "Sources whose watermarks Flink keeps together.",
                None,
                _NO_ALIGNMENT,
            ),
            ("alignment.max-drift", DURATION, "How far apart those sources may get.", None, _NO_ALIGNMENT),
            ("alignment.update-interval", DURATION, "How often they are compared.", "1 s", _NO_ALIGNMENT),
        )
    ),
)
