"""The enums of the pipeline file, with their values in the file. `definition` exports them, too."""

from __future__ import annotations

from enum import Enum


class BadRecords(str, Enum):
    """`ingest.bad-records`: how bad records are handled."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    SKIP = "skip"


class OnFailure(str, Enum):
    """`quality.on-failure`: what a failed check does."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    WARN = "warn"


class GateAction(str, Enum):
    """`quality.gate`: how rows of a batch that break the rules of the suite are handled."""

    WARN = "warn"
    QUARANTINE = "quarantine"
    FAIL = "fail"


class Truncate(str, Enum):
    """`delta.truncate`: what a record does that deletes all rows."""

    APPLY = "apply"
    REFUSE = "refuse"
    IGNORE = "ignore"


class Engine(str, Enum):
    """`merge.engine`: what executes the MERGE of an ingest."""

    AUTO = "auto"
    SPARK = "spark"
    DRIVER = "driver"


class Reader(str, Enum):
    """`ingest.reader`: what reads the topic for an ingest."""

    AUTO = "auto"
    CONSUMER = "consumer"
    SPARK = "spark"


class Encoder(str, Enum):
    """`publish.encoder`: what makes documents of rows; AUTO is the sending tasks, where the bytes are the same."""

    AUTO = "auto"
    SPARK = "spark"


class DeliveryGuarantee(str, Enum):
    """`sink.delivery-guarantee`, as in Flink."""

    NONE = "none"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"
