"""The settings of the bridge's producers, in librdkafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEFAULTS = {
    "acks": "all",
    "batch.size": "1000000",
    "compression.type": "lz4",
    "linger.ms": "20",
    "message.max.bytes": "1048576",  # Java's default; librdkafka's is a little less
    "queue.buffering.max.kbytes": "65536",
    "queue.buffering.max.messages": "500000",
}


def producer_settings(user: Mapping[str, str], *, checked: bool) -> dict[str, Any]:
    """Return librdkafka's settings of a producer: `user` (librdkafka's names) over the bridge's defaults.

    Unless the user sets other `acks` or `enable.idempotence` = false, sending is idempotent, so a retry neither repeats
    nor reorders records. Without idempotence, one request at a time preserves the order. `checked` False
    ('sink.delivery-guarantee' = 'none') waits for the leader only, unless the user sets idempotence.
    """
    waits = checked or user.get("enable.idempotence") == "true"
    settings: dict[str, Any] = {**_DEFAULTS, **({} if waits else {"acks": "1"}), **user}
    idempotent = (
        settings["acks"] in ("all", "-1") and user.get("enable.idempotence", "true").lower() == "true"
    )
    settings["enable.idempotence"] = str(idempotent).lower()
    if not idempotent:
        settings.setdefault("max.in.flight.requests.per.connection", "1")
    # As Java's default partitioner (librdkafka's own is CRC32): all producers put a key into the same partition.
    settings["partitioner"] = "murmur2_random"
    settings["delivery.report.only.error"] = (
        True  # successes are counted by librdkafka, without a call of Python
    )
    return settings
