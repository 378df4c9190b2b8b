"""The settings of the bridge's producers, in librdkafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["producer_settings"]

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
    """librdkafka settings of a producer: `user` (librdkafka's names) over the bridge's defaults.

    Unless the user asks for other `acks` or for `enable.idempotence` = false, sending is idempotent, so a
    retry neither repeats nor reorders. Where it is not, one request at a time keeps the order. `checked`
    False (sink.delivery-guarantee none) waits for the leader only, unless idempotence is asked for.
    """
    waits = checked or user.get("enable.idempotence") == "true"
    made: dict[str, Any] = {**_DEFAULTS, **({} if waits else {"acks": "1"}), **user}
    idempotent = made["acks"] in ("all", "-1") and user.get("enable.idempotence", "true").lower() == "true"
    made["enable.idempotence"] = str(idempotent).lower()
    if not idempotent:
        made.setdefault("max.in.flight.requests.per.connection", "1")
    # As Java's default partitioner (librdkafka's own is CRC32): a key stays where other writers put it.
    made["partitioner"] = "murmur2_random"
    made["delivery.report.only.error"] = True  # successes are counted by librdkafka, without a call of Python
    return made
