"""The progress of an ingest, as a value: a line of JSON in the userMetadata of the commit that contains the rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bridge.definition import DeltaTarget
from bridge.errors import TableError
from bridge.offsets import Offsets

_FORMAT = 1


@dataclass(frozen=True)
class IngestProgress:
    """The state of an ingest after one batch. A table has at most one commit per (pipeline, batch)."""

    pipeline: str
    run: str
    """Identifies the run that made the commit, so that two runs can distinguish their commits."""
    batch: int
    """Increases by one per commit, over restarts, and never decreases: Delta skips a number that it has seen."""
    offsets: Offsets
    """The next offset of every partition; the table is the fold of everything before."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Kafka's id of each topic: a recreated topic has another one."""
    engine: str = field(default="", compare=False)
    """The merge engine of the commit and the reason for it, for people."""
    resync: bool = field(default=False, compare=False)
    """The commit is a resync's: for a key with several rows it contains deletes and an insert."""
    key: tuple[str, ...] | None = field(default=None, compare=False)
    """The PRIMARY KEY by which the commit's rows were merged, so that it has one change per key; () for appended rows,
    None in commits of an older bridge that did not record it."""
    columns: tuple[str, ...] = field(default=(), compare=False)
    """The own columns of the pipeline (`delta.merge-columns`), the only ones that the commit changed; () for all."""

    at_ms: int = field(default=0, compare=False)
    """When the batch began, in epoch milliseconds, in a table with columns of several pipelines; else 0."""
    after: int | None = field(default=None, compare=False)
    """The newest version that was known to have the rows of these offsets: of a commit the one before it, or an earlier
    one if others committed meanwhile; else the newest one that was looked at. None where that is not known."""
    starts: bool = field(default=False, compare=False)
    """The commit has no records: it is where a first run began that does not read its topic from the beginning."""
    newest_ms: int | None = field(default=None, compare=False)
    """The timestamp of the newest record of the batch, epoch milliseconds, for people; None without records."""
    reader: str = field(default="", compare=False)
    """The reader of the batch and why not a faster one, for people."""
    start: Offsets | None = field(default=None, compare=False)
    """Where the batch begins; None for a commit that reads no records. Not recorded."""
    reaches: Offsets | None = field(default=None, compare=False)
    """The table may have the rows of records up to here: of a batch that had begun, whose end is not recorded. The next
    batch reads them all again, so that no row goes back to an earlier record."""

    def to_json(self, table_id: str) -> str:
        """Return the text for userMetadata of a commit to the table with that id."""
        return json.dumps(
            {
                "bridge": {
                    "format": _FORMAT,
                    "pipeline": self.pipeline,
                    "run": self.run,
                    "batch": self.batch,
                    "offsets": self.offsets.tree(),
                    "topic_ids": dict(self.topic_ids),
                    "table": table_id,
                    **({"engine": self.engine} if self.engine else {}),
                    **({"resync": True} if self.resync else {}),
                    **({"key": self.key} if self.key is not None else {}),
                    **({"columns": self.columns, "at": self.at_ms} if self.columns else {}),
                    **({"after": self.after} if self.after is not None else {}),
                    **({"starts": True} if self.starts else {}),
                    **({"newest": self.newest_ms} if self.newest_ms is not None else {}),
                    **({"reader": self.reader} if self.reader else {}),
                    **({"reaches": self.reaches.tree()} if self.reaches is not None else {}),
                }
            }
        )

    def merging(self, target: DeltaTarget, key: Sequence[str]) -> IngestProgress:
        """Return the progress of a commit that merges by `key` into the columns that the pipeline has in `target`."""
        return replace(self, key=tuple(key), columns=target.merge_columns)

    @classmethod
    def from_json(cls, text: str | None) -> tuple[IngestProgress, str] | None:
        """Parse the progress and the table id that `to_json` wrote; None for any text that is not the bridge's.

        Raises TableError for a text of another format.
        """
        try:
            fields = json.loads(text or "")["bridge"]
            written = fields["format"]
        except (ValueError, TypeError, KeyError):
            return None
        if written != _FORMAT:
            raise TableError(
                f"progress is written in format {written}, this bridge reads {_FORMAT}: use the newer bridge"
            )
        offsets = Offsets.from_tree(fields["offsets"])
        key = fields.get("key")
        progress = cls(
            fields["pipeline"],
            fields["run"],
            fields["batch"],
            offsets,
            fields["topic_ids"],
            fields.get("engine", ""),
            fields.get("resync", False),
            None if key is None else tuple(key),
            tuple(fields.get("columns", ())),
            fields.get("at", 0),
            fields.get("after"),
            fields.get("starts", False),
            fields.get("newest"),
            fields.get("reader", ""),
            reaches=Offsets.from_tree(fields["reaches"]) if "reaches" in fields else None,
        )
        return progress, fields["table"]


def app_id(pipeline: str) -> str:
    """The application id of the pipeline's transactions in Delta."""
    return f"bridge/{pipeline}"


def merged_by(text: str | None, columns: Collection[str]) -> frozenset[str] | None:
    """Return the key by which an ingest or a replay merged a commit, from its userMetadata in any format.

    The commit has at most one change for each value of the key, changes no key, and each of its updates changes one of
    `columns`. None for commits of which this is not known: those of a resync, of an older bridge, of other writers, and
    of a pipeline with columns of its own that are not all among `columns`.
    """
    try:
        fields = json.loads(text or "")["bridge"]
        if fields.get("resync") or not set(fields.get("columns", ())) <= set(columns):
            return None
        return frozenset(fields["key"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
