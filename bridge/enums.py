"""What a pipeline file may choose between, in its own words. `definition` gives them out beside its own values."""

from __future__ import annotations

from enum import Enum

__all__ = ["BadRecords", "DeliveryGuarantee", "Engine", "GateAction", "OnFailure"]


class BadRecords(str, Enum):
    """`ingest.bad-records`: what happens to a record that cannot be applied."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    SKIP = "skip"


class OnFailure(str, Enum):
    """`quality.on-failure`."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    WARN = "warn"


class GateAction(str, Enum):
    """`quality.gate`: what happens to the rows of a batch that are not as the suite expects."""

    WARN = "warn"
    QUARANTINE = "quarantine"
    FAIL = "fail"


class Engine(str, Enum):
    """`merge.engine`: what carries out an ingest's MERGE."""

    AUTO = "auto"
    SPARK = "spark"
    DELTA_RS = "delta-rs"


class DeliveryGuarantee(str, Enum):
    """`sink.delivery-guarantee` (Flink's words)."""

    NONE = "none"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"
