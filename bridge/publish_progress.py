"""How far a publish has got, as values: the same whether Kafka or a file holds them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from bridge.offsets import Offsets

__all__ = ["NOTHING", "PublishProgress", "PublishRange", "key_digest"]

_FORMAT = 1
_JSON_NAMES = {"shards": "slots", "cursors_recorded": "noted"}
"""Fields of PublishRange whose names in JSON are those of format 1, so that older and newer bridges read each other."""
_LONG_KEY, _LONG_TOPICS = 400, 1500
"""Characters; all of a note must fit into what Kafka takes (offset.metadata.max.bytes, 4096)."""
NOTHING = -1
"""The version before a table's first one."""


@dataclass(frozen=True)
class PublishRange:
    """What one batch sends. It is written down before it is sent, so that whoever takes over sends the very same."""

    first: int
    last: int
    """Table versions, both inclusive."""
    snapshot: bool = False
    """True for all rows of `last`, False for the changes of first..last."""
    chunk: int = 0
    chunks: int = 1
    """A snapshot is sent in chunks, by a hash of the key; this is number `chunk`."""
    shards: int = 0
    """How many transactional producers share it: a key's shard depends on their number. 0 without transactions."""
    files: str = ""
    """A digest of the names of the data files that it is read from, where each file is a shard; "" where a shard is a
    hash of the key."""
    resync: bool = False
    """True for what differs between the rows of `last` and the topic: nobody else can send the very same, for what is
    sent changes what differs."""
    cursors_recorded: bool = False
    """True where every shard has had a note in Kafka since the range was opened: one without has been forgotten. False
    without transactions, and for a range that an older bridge opened."""


@dataclass(frozen=True)
class PublishProgress:
    """The state of a publish between two batches, or, with `open`, in the middle of one."""

    pipeline: str
    table_id: str
    """Delta's id of the table: another one means the table was replaced."""
    version: int
    """The table version up to which all has been sent, inclusive; NOTHING while a first snapshot is under way."""
    batch: int
    """Counts up by one with every state written down."""
    open: PublishRange | None = None
    """The range that is being sent."""
    run: str | None = None
    """Which run wrote this; another one's in Kafka means that it took over."""
    resync: str = ""
    """Names the last resync: what shards noted before it says nothing about what is sent after it."""
    ends: Offsets | None = None
    """The topic's ends when all up to `version` was in it, where that is written down (the log): all later records are
    of later versions. Kafka's notes are too short for it."""
    key: str = ""
    """By what the topic tells rows apart, in words (in Kafka's notes perhaps in_short); "" in an older bridge's."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """Every topic that was sent to, with Kafka's id of it ("" where Kafka does not tell); empty in an older bridge's,
    and in Kafka's notes where there are many."""

    lost: int = 0
    """Records that the broker has not acknowledged, since the publish began or a resync compared the topic with the
    table: above 0 after runs with 'sink.delivery-guarantee' = 'none' alone."""

    @property
    def has_begun(self) -> bool:
        """False where a first run ended before its first range: nothing has been sent."""
        return self.version != NOTHING or self.open is not None

    def opened(self, publish_range: PublishRange) -> PublishProgress:
        """The state while `range` is being sent."""
        return replace(self, open=publish_range)

    def closed(self, *, lost: int = 0) -> PublishProgress:
        """The state after the open range, of whose records so many were `lost`: at its last version, or with the next
        chunk of its snapshot open."""
        assert self.open is not None
        lost += self.lost
        if self.open.chunk + 1 < self.open.chunks:
            return replace(self, open=replace(self.open, chunk=self.open.chunk + 1), lost=lost)
        return replace(self, version=self.open.last, open=None, ends=None, lost=lost)

    def for_offset_metadata(self) -> PublishProgress:
        """What of it fits into a note in Kafka."""
        topics = self.topics if len(json.dumps(dict(self.topics))) <= _LONG_TOPICS else {}
        return replace(self, ends=None, key=key_digest(self.key), topics=topics)

    def to_json(self) -> str:
        """One line; read by `from_json` of this version and later ones."""
        fields = {"format": _FORMAT, **asdict(replace(self, ends=None, topics=dict(self.topics)))}
        if self.open is not None:
            fields["open"] = {_JSON_NAMES.get(name, name): value for name, value in asdict(self.open).items()}
        if self.ends is not None:
            fields["ends"] = json.loads(self.ends.to_json())
        return json.dumps({"bridge": fields})

    @classmethod
    def from_json(cls, text: str) -> PublishProgress:
        """What `to_json` wrote. Raises ValueError for anything else, NotImplementedError for a newer bridge's."""
        try:
            found = json.loads(text)["bridge"]
            if found.pop("format") != _FORMAT:
                raise NotImplementedError("written by a newer bridge")
            if found.get("open") is not None:
                names = {written: name for name, written in _JSON_NAMES.items()}
                found["open"] = PublishRange(**{names.get(n, n): value for n, value in found["open"].items()})
            if found.get("ends") is not None:
                found["ends"] = Offsets.from_json(json.dumps(found["ends"]))
            return cls(**found)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError("no progress of a publish") from error


def key_digest(key: str) -> str:
    """`PublishProgress.key` for a note in Kafka: itself, or a digest where it is long."""
    if len(json.dumps(key)) <= _LONG_KEY:
        return key
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"
