"""What a shard is told, and how it says where it stands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bridge.errors import REPUBLISH, GapError, KafkaError

__all__ = ["Cursor", "ShardSpec"]

_FORMAT = 1


@dataclass(frozen=True, order=True)
class Cursor:
    """The place after a record: so many (`rows`) of `version`, in that chunk of a snapshot, are in the topic."""

    version: int = -1
    chunk: int = 0
    rows: int = 0


@dataclass(frozen=True)
class ShardSpec:
    """What a shard is told, as plain values. Holds secrets in clear: never shown, so no repr of its fields."""

    prefix: str
    run: str
    topics: tuple[str, ...]
    shards: int
    first: int
    """The first version of the range: nothing from there on may have been sent with other numbers of shards."""
    producer: Mapping[str, Any]
    consumer: Mapping[str, Any]
    plan_fingerprint: str = ""
    """A digest of what decides which records a range has, and in which order; counts of another one mean nothing."""
    buffer_rows: int = 0
    buffer_interval_ms: int = 0
    max_rows: int = 200_000
    """A transaction holds not many more."""
    resync: str = ""
    """See PublishProgress.resync: notes of another one count for nothing."""
    cursors_recorded: bool = False
    """See Stretch.noted: the shard must have a note."""

    def __repr__(self) -> str:
        return f"Share({self.prefix}, {self.shards} shards)"

    def group(self, number: int) -> str:
        """A shard's transactional id, and the group that holds its notes."""
        return f"{self.prefix}-{number}"

    def offset_metadata(self, upto: Cursor) -> str:
        """What a transaction says of its end."""
        told = {"format": _FORMAT, **asdict(upto), "slots": self.shards, "manner": self.plan_fingerprint}
        told["resync"] = self.resync
        return json.dumps({"bridge": told})

    def initial_offset_metadata(self) -> str:
        """What is said of a shard when the range is opened: that nothing of it is sent."""
        return self.offset_metadata(Cursor(self.first - 1))

    def cursor_from(self, texts: Sequence[str], group: str) -> Cursor:
        """The furthest place among what `note` wrote; before all records where there is none.

        Raises GapError where there must be one, KafkaError for a place in this range that was counted in another way.
        """
        found = [place for resync, place in (_parse(text, group) for text in texts) if resync == self.resync]
        if self.cursors_recorded and not found:
            raise GapError(
                f"group '{group}' no longer says how much of its share of the range from version {self.first} on is "
                "in the topic: it said so when the range was opened (groups forget after offsets.retention.minutes, "
                f"or when they are deleted); {REPUBLISH}"
            )
        cursor, shards, manner = max(found, default=(Cursor(), self.shards, self.plan_fingerprint))
        if cursor.version >= self.first and shards != self.shards:
            raise KafkaError(
                f"group '{group}' stands at version {cursor.version} with {shards} shards, but version {self.first} is "
                f"to be sent with {self.shards}: the progress of this publish was tampered with; {REPUBLISH}"
            )
        if cursor.version >= self.first and manner != self.plan_fingerprint:
            raise KafkaError(
                f"group '{group}' stands at version {cursor.version}, in a range that was begun with another "
                "pipeline file (key, formats or `publish` options): how far it is sent cannot be told in records of "
                f"this one; run the former file until it has caught up, then change it; {REPUBLISH}"
            )
        return cursor


def _parse(text: str, group: str) -> tuple[str, tuple[Cursor, int, str]]:
    try:
        note = json.loads(text)["bridge"]
        cursor = Cursor(note["version"], note["chunk"], note["rows"])
        return note.get("resync", ""), (cursor, note["slots"], note.get("manner", ""))
    except (ValueError, TypeError, KeyError):
        raise KafkaError(
            f"group '{group}' holds offsets that the bridge did not write; choose another "
            "'sink.transactional-id-prefix'"
        ) from None
