"""Options about reading a topic."""

from __future__ import annotations

from typing import Any

from bridge.options.kinds import DURATION, INT, LONG, POSITIVE, STRING, choice, partition_offsets
from bridge.options.model import KAFKA, UPSERT, Fate, Option, Side

__all__ = [
    "BOUNDED_MODE",
    "BOUNDED_OFFSETS",
    "BOUNDED_TIMESTAMP",
    "DISCOVERY_INTERVAL",
    "SCAN",
    "SCAN_PARALLELISM",
    "STARTUP_MODE",
    "STARTUP_OFFSETS",
    "STARTUP_TIMESTAMP",
    "UPSERT_STARTUP_MODE",
]

_STARTS = choice("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
_NO_WATERMARKS = (
    "it tunes how Flink's operators pass watermarks on, and the bridge has none between its steps: "
    "a WATERMARK clause only measures the lag; remove it"
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
    LONG,
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
    LONG,
    "Epoch milliseconds for the mode 'timestamp': reading ends before the first record of that time or "
    "later.",
    side=Side.SOURCE,
)
DISCOVERY_INTERVAL = Option(
    "scan.topic-partition-discovery.interval",
    DURATION,
    "How often new partitions are looked for; 0 means never.",
    default="5 min",
    connectors=(KAFKA,),
    side=Side.SOURCE,
)
SCAN_PARALLELISM = Option(
    "scan.parallelism", POSITIVE, "Least number of tasks that read the topic.", side=Side.SOURCE
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
    *(
        Option(
            f"scan.watermark.{key}", kind, text, side=Side.SOURCE, fate=Fate.REFUSED, reason=_NO_WATERMARKS
        )
        for key, kind, text in (
            ("emit.strategy", choice("on-event", "on-periodic"), "When Flink emits watermarks."),
            ("emit.on-event.gap", INT, "How many events Flink lets pass between watermarks."),
            ("idle-timeout", DURATION, "When Flink counts a partition as idle."),
            ("alignment.group", STRING, "Sources whose watermarks Flink keeps together."),
            ("alignment.max-drift", DURATION, "How far apart those sources may get."),
            ("alignment.update-interval", DURATION, "How often they are compared."),
        )
    ),
)
