"""The progress of a publish, as values; the same in Kafka and in the publish log (see `delta.publish_log`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

from bridge.bridge_folders import publish_log_batch
from bridge.errors import REPUBLISH, DefinitionError, GapError
from bridge.offsets import Offsets

_FORMAT = 1
_JSON_NAMES = {"shards": "slots", "cursors_recorded": "noted"}
"""Fields of PublishRange whose names in JSON are those of format 1, so that older and newer bridges read each other."""
_LONG_KEY, _LONG_TOPICS = 400, 1500
"""Characters in JSON. All of the progress must fit into offset metadata (offset.metadata.max.bytes, 4096)."""
NOTHING = -1
"""The version before a table's first one."""


@dataclass(frozen=True)
class PublishRange:
    """What one batch sends. It is recorded before it is sent, so that a run that takes over sends the same records."""

    first: int
    last: int
    """Table versions, both inclusive."""
    snapshot: bool = False
    """True for all rows of `last`, False for the changes of first..last."""
    chunk: int = 0
    chunks: int = 1
    """A snapshot is sent in chunks, by a hash of the key; this is chunk number `chunk`, counted from 0."""
    shards: int = 0
    """How many shards, each with its transactional id, the range has: a key's shard depends on their number. 0 without
    transactions."""
    files: str = ""
    """A digest of the names of the data files that the range is read from, where each file is a shard; "" where a shard
    is a hash of the key."""
    resync: bool = False
    """True for the differences between the rows of `last` and the topic. No other run can send the same records, as
    sending them changes what differs."""
    cursors_recorded: bool = False
    """True where every shard has had a cursor in Kafka since the range was opened, so that Kafka has lost a cursor that
    is missing. False without transactions, and for a range that an older bridge opened."""


@dataclass(frozen=True)
class PublishProgress:
    """The state of a publish between two batches, or, with `open`, within one."""

    pipeline: str
    table_id: str
    """Delta's id of the table; a table with another id replaced it."""
    version: int
    """The table version up to which all changes have been sent, inclusive; NOTHING during a first snapshot."""
    batch: int
    """Increased by one with every record of progress."""
    open: PublishRange | None = None
    """The range that is being sent."""
    run: str | None = None
    """The run that recorded this, where it is exactly-once; another run in Kafka means that it took over."""
    resync: str = ""
    """The id of the last resync: cursors of shards from before it do not count for what is sent after it."""
    ends: Offsets | None = None
    """The topic's ends when all records up to `version` were in it: all later records are of later versions. Recorded
    in the log only, as they do not fit into offset metadata."""
    key: str = ""
    """The key by which the topic tells rows apart (see `topic_key`; in offset metadata perhaps its `key_digest`); "" in
    progress of an older bridge."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """Every topic that was sent to, with its id ("" where the broker reports none); empty in progress of an older
    bridge, and in offset metadata where there are many topics."""
    lost: int = 0
    """Records that the broker has not acknowledged since the publish began or a resync last compared the topic with the
    table; above 0 only after runs with 'sink.delivery-guarantee' = 'none'."""
    sender: str = field(default="", compare=False)
    """What sent the last range and why not the faster way, for people; in the log only."""

    @property
    def has_begun(self) -> bool:
        """False where the first run ended before it opened a range: nothing has been sent."""
        return self.version != NOTHING or self.open is not None

    def opened(self, publish_range: PublishRange) -> PublishProgress:
        """The state while `publish_range` is being sent."""
        return replace(self, open=publish_range)

    def closed(self, *, lost: int = 0) -> PublishProgress:
        """The state after the open range, `lost` records of which were not acknowledged: at its last version, or with
        the next chunk of its snapshot open."""
        assert self.open is not None
        lost += self.lost
        if self.open.chunk + 1 < self.open.chunks:
            return replace(self, open=replace(self.open, chunk=self.open.chunk + 1), lost=lost)
        return replace(self, version=self.open.last, open=None, ends=None, lost=lost)

    def for_offset_metadata(self) -> PublishProgress:
        """The part of the progress that fits into offset metadata in Kafka."""
        topics = self.topics if len(json.dumps(dict(self.topics))) <= _LONG_TOPICS else {}
        return replace(self, ends=None, key=key_digest(self.key), topics=topics, sender="")

    def to_json(self) -> str:
        """One line of JSON; `from_json` of this version and of later ones reads it."""
        fields = {"format": _FORMAT, **asdict(replace(self, ends=None, topics=dict(self.topics)))}
        if self.open is not None:
            fields["open"] = {_JSON_NAMES.get(name, name): value for name, value in asdict(self.open).items()}
        if self.ends is not None:
            fields["ends"] = self.ends.tree()
        # Beside the other fields, as an older bridge takes a field among them that it does not know for a broken file.
        sender = fields.pop("sender")
        return json.dumps({"bridge": fields, **({"sender": sender} if sender else {})})

    @classmethod
    def from_json(cls, text: str) -> PublishProgress:
        """Parse what `to_json` wrote. Raises ValueError for anything else, NotImplementedError for progress of a newer
        bridge."""
        try:
            written = json.loads(text)
            fields = written["bridge"]
            if fields.pop("format") != _FORMAT:
                raise NotImplementedError("written by a newer bridge")
            if fields.get("open") is not None:
                names = {in_json: name for name, in_json in _JSON_NAMES.items()}
                fields["open"] = PublishRange(
                    **{names.get(n, n): value for n, value in fields["open"].items()}
                )
            if fields.get("ends") is not None:
                fields["ends"] = Offsets.from_tree(fields["ends"])
            return cls(**fields, sender=written.get("sender", ""))
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError("not the progress of a publish") from error


def key_digest(key: str) -> str:
    """`PublishProgress.key` for offset metadata: the key itself, or a digest where it is long."""
    if len(json.dumps(key)) <= _LONG_KEY:
        return key
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def newest_progress(
    folder: str, names: Iterable[str], read: Callable[[str], str], pipeline: str
) -> PublishProgress | None:
    """Return the newest progress in a publish log, of which `folder` is the place, `names` are the names of its files,
    and `read` returns the text of one; None before the first batch.

    A file that cannot be read (a disk was full, the machine went down) counts as not written. Raises GapError when no
    file can be read, DefinitionError when the log belongs to another pipeline or is a newer bridge's.
    """
    written = sorted(name for name in names if publish_log_batch(name) is not None)
    for name in reversed(written):
        progress = logged_progress(folder, read(name))
        if progress is None:
            continue
        if progress.pipeline != pipeline:
            raise DefinitionError(
                f"run.checkpoint: {folder} belongs to pipeline {progress.pipeline!r}, not {pipeline!r}; give each "
                "pipeline a checkpoint of its own"
            )
        return progress
    if written:
        raise GapError(
            f"none of the {len(written)} files in {folder} can be read, so it is not known what was published; "
            f"restore them, or {REPUBLISH}"
        )
    return None


def logged_progress(folder: str, text: str) -> PublishProgress | None:
    """Return the progress in the text of a file of a publish log; None for a file that is not complete. Raises
    DefinitionError for one of a newer bridge."""
    try:
        return PublishProgress.from_json(text)
    except NotImplementedError:
        raise DefinitionError(
            f"{folder} was written by a newer bridge; use that one, or another run.checkpoint or run.state"
        ) from None
    except ValueError:
        return None
