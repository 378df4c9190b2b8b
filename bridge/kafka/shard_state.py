"""What a shard of a publish range needs to know, and its cursor, which it stores as offset metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bridge.errors import REPUBLISH, GapError, KafkaError

_FORMAT = 1
MAX_BYTES = 64 * 1024 * 1024
"""The records of a transaction stay in memory, to be sent again when its outcome is unknown."""


@dataclass(frozen=True, order=True)
class Cursor:
    """The position after a record of a shard: `rows` records of `version`, in that chunk of a snapshot, are sent."""

    version: int = -1
    chunk: int = 0
    rows: int = 0


@dataclass(frozen=True)
class ShardSpec:
    """What every shard of a range needs to know. Contains secrets in clear text, so `repr` hides its fields."""

    prefix: str
    run: str
    topics: tuple[str, ...]
    shards: int
    first: int
    """The first version of the range. From it on, all records must be sent with the same number of shards."""
    producer: Mapping[str, Any]
    consumer: Mapping[str, Any]
    plan_fingerprint: str = ""
    """A digest of what decides which records a range has, and in which order; see `cursor_from`."""
    buffer_rows: int = 0
    buffer_interval_ms: int = 0
    max_rows: int = 200_000
    """A transaction is committed when it has this many records."""
    max_bytes: int = MAX_BYTES
    """A transaction is committed when its records have this many bytes."""
    resync: str = ""
    """See PublishProgress.resync: cursors of another resync are ignored."""
    cursors_recorded: bool = False
    """See PublishRange.cursors_recorded: the shard must have offset metadata."""

    def __repr__(self) -> str:
        return f"ShardSpec({self.prefix}, {self.shards} shards)"

    def group(self, number: int) -> str:
        """Return the transactional id of a shard, which is also the name of its consumer group."""
        return f"{self.prefix}-{number}"

    def offset_metadata(self, upto: Cursor) -> str:
        """Return the offset metadata of a transaction that ends at `upto`."""
        fields = {"format": _FORMAT, **asdict(upto), "slots": self.shards, "manner": self.plan_fingerprint}
        fields["resync"] = self.resync
        return json.dumps({"bridge": fields})

    def initial_offset_metadata(self) -> str:
        """Return the offset metadata of a shard when its range is opened: nothing is sent."""
        return self.offset_metadata(Cursor(self.first - 1))

    def cursor_from(self, offset_metadata: Sequence[str], group: str) -> Cursor:
        """Return the furthest cursor in `offset_metadata`; without any, the one before all records.

        Raises GapError where `cursors_recorded` and there is none, KafkaError for a cursor in this range that was made
        with another number of shards or another plan.
        """
        parsed = (_parse(text, group) for text in offset_metadata)
        states = [state for resync, state in parsed if resync == self.resync]
        if self.cursors_recorded and not states:
            raise GapError(
                f"group '{group}' has no cursor for the range from version {self.first} on, although one was recorded "
                "when the range was opened: Kafka deletes committed offsets after offsets.retention.minutes, or with "
                f"their group. How much of the shard is in the topic is unknown; {REPUBLISH}"
            )
        cursor, shards, plan = max(states, default=(Cursor(), self.shards, self.plan_fingerprint))
        if cursor.version >= self.first and shards != self.shards:
            raise KafkaError(
                f"group '{group}' stands at version {cursor.version} with {shards} shards, but version {self.first} is "
                f"to be sent with {self.shards}: the progress of this publish was tampered with; {REPUBLISH}"
            )
        if cursor.version >= self.first and plan != self.plan_fingerprint:
            raise KafkaError(
                f"group '{group}' stands at version {cursor.version}, in a range that was begun with another "
                "pipeline file (key, formats or `publish` options), so its cursor counts other records than this file "
                f"sends; run the former file until it has caught up, then change it; {REPUBLISH}"
            )
        return cursor


def _parse(text: str, group: str) -> tuple[str, tuple[Cursor, int, str]]:
    """Return the resync of offset metadata and its state: cursor, number of shards, plan fingerprint."""
    try:
        fields = json.loads(text)["bridge"]
        cursor = Cursor(fields["version"], fields["chunk"], fields["rows"])
        return fields.get("resync", ""), (cursor, fields["slots"], fields.get("manner", ""))
    except (ValueError, TypeError, KeyError):
        raise KafkaError(
            f"group '{group}' holds offsets that the bridge did not write; choose another "
            "'sink.transactional-id-prefix'"
        ) from None
