"""Knows the newest version of a table from its log, and follows it commit by commit.

Following a log costs what its new commits have. Opening one costs more with its age: a checkpoint has the files that
were removed in the last week, and the folder of the log the commits of a month. So who asks often asks `followed`
(docs/adr/050).

Formats: "Action Reconciliation" in the Delta protocol (PROTOCOL.md).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from bridge.lake.local_store import LocalStore
from bridge.lake.store import Store, at_once
from bridge.log_layout import LOG_FOLDER, commit_path, version_of
from bridge.ways import NotThisWay

_Commit = tuple[bytes, str]
"""Its content and its stamp."""
Action = dict[str, Any]
"""An action of the protocol as it stands in a commit, without its name."""

_CHECKPOINT = ".checkpoint.parquet"
_ADD = (
    *("path", "size", "modificationTime", "stats", "tags", "deletionVector", "partitionValues"),
    "clusteringProvider",
)
_DESCRIPTION = ("protocol", "metaData", "txn", "domainMetadata")
_CLUSTERING = "delta.clustering"
_ACTION = re.compile(r'\s*\{\s*"(\w+)"\s*:')
_RECENT_COMMITS, _RECENT_BYTES = 4, 32 << 10
"""What is kept of the newest commits, which are read again to be published; larger ones are not kept."""
_MOST_ASKED = 32
"""Of commits at once; each is a request."""
_MANY_COMMITS = 100
"""After so many a checkpoint is looked for: it has what further ones would be read for, each by a request."""
_COLUMNS = (*_DESCRIPTION, *(f"add.{name}" for name in _ADD))


@dataclass
class Snapshot:
    """The state of a table at `version`."""

    store: Store
    """Of the table's folder."""
    version: int = -1
    protocol: Action = field(default_factory=dict)
    metadata: Action = field(default_factory=dict)
    files: dict[str, Action] = field(default_factory=dict)
    """`add` actions of the data files by their path in the log."""
    transactions: dict[str, int] = field(default_factory=dict)
    """The newest version of each application id."""
    domains: dict[str, str] = field(default_factory=dict)
    """The configuration of each metadata domain."""
    with_files: bool = True
    """False where nobody asks for `files`, which is then empty."""
    described: int = -1
    """The version since which `protocol`, `metadata` and `domains` are what they are, or a later one up to
    `version`."""
    _stamp: str | None = None
    _asked: int = 1
    """How many commits the next look asks for at once: one more than came before the last one."""
    _recent: dict[int, bytes] = field(default_factory=dict, repr=False, compare=False)
    """The newest commits as they stand in the log."""

    def follow(self, until: int | None = None) -> bool:
        """Apply the commits that have come since, up to version `until` if that is given. False if it is not there, if
        this is no longer the table whose log was read, or where a checkpoint is nearer: then nothing is known, and it
        must be opened anew."""
        known, begin, wanted = self._stamp, self.version, self._next(until, self._asked)
        looks: list[Callable[[], _Commit | None]] = [self._head, *(partial(self._read, v) for v in wanted)]
        stamp, *found = at_once(lambda look: look(), looks)
        if stamp is None or known != stamp[1]:
            return False
        looked_for_checkpoint = begin
        while self._apply_commits(found) and (wanted := self._next(until, 2 * len(wanted))):
            if self.version - looked_for_checkpoint >= _MANY_COMMITS:
                looked_for_checkpoint = self.version
                checkpoint, _ = last_checkpoint(self.store)
                if self.version < checkpoint and (until is None or checkpoint <= until):
                    return False
            found = at_once(self._read, wanted)
        self._asked = min(self.version - begin + 1, _MOST_ASKED)
        return until is None or self.version == until

    def _next(self, until: int | None, count: int) -> range:
        """The versions of the next commits, `count` or fewer."""
        end = self.version + 1 + min(count, _MOST_ASKED)
        return range(self.version + 1, end if until is None else min(end, until + 1))

    def _head(self) -> _Commit | None:
        stamp = self._stamp_of(self.version)
        return None if stamp is None else (b"", stamp)

    def _read(self, version: int) -> _Commit | None:
        try:
            return self.store.read_with_stamp(commit_path(version))
        except FileNotFoundError:
            return None

    def _apply_commits(self, commits: Iterable[_Commit | None]) -> bool:
        """Apply the next commits in their order, up to one that is not there; False if there is one. A later one may
        have come while they were read."""
        for commit in commits:
            if commit is None:
                return False
            content, self._stamp = commit
            self.version += 1
            if len(content) <= _RECENT_BYTES:
                self._recent[self.version] = content
                self._recent.pop(self.version - _RECENT_COMMITS, None)
            self.apply(_actions(content, None if self.with_files else _DESCRIPTION))
        return True

    def apply(self, actions: Iterable[Action]) -> None:
        """Apply the actions of commit `version`, each {name: action}, or of a checkpoint of it."""
        added = []
        for action in actions:
            (name, what), *_ = action.items()
            if name == "remove":
                self.files.pop(what["path"], None)
            elif name == "add" and self.with_files:
                added.append(what)
            elif name == "txn":
                self.transactions[what["appId"]] = what["version"]
            elif name == "metaData":
                self.metadata, self.described = what, self.version
            elif name == "protocol":
                self.protocol, self.described = what, self.version
            elif name == "domainMetadata":
                self.domains.pop(what["domain"], None)
                if not what.get("removed"):
                    self.domains[what["domain"]] = what["configuration"]
                self.described = self.version
        # A commit that gives a file a new vector removes it and adds it, in any order.
        self.files.update((what["path"], what) for what in added)

    @property
    def clustered_by(self) -> tuple[str, ...]:
        """The columns by which the table is clustered, names of nested ones with dots."""
        names = json.loads(self.domains.get(_CLUSTERING) or "{}").get("clusteringColumns", ())
        return tuple(name if isinstance(name, str) else ".".join(name) for name in names)

    def path_of(self, name: str) -> str:
        """The path of the file of that name in the log, for the store. Raises NotThisWay where it is not in
        the table's folder, as the files of a shallow clone."""
        place = urlsplit(name)
        elsewhere = place.path.startswith("/") and not isinstance(self.store, LocalStore)
        if elsewhere or place.scheme not in ("", "file"):
            raise NotThisWay(f"the table has files in {place.scheme}://{place.netloc}, outside of its folder")
        return unquote(place.path)

    def read_commit(self, version: int, wanted: Collection[str] | None = None) -> list[Action] | None:
        """The actions of that version, each {name: action}, of those names if some are `wanted`; None where the log has
        no such commit."""
        try:
            content = self._recent.get(version)
            return _actions(self.store.read(commit_path(version)) if content is None else content, wanted)
        except FileNotFoundError:
            return None

    def _stamp_of(self, version: int) -> str | None:
        found = self.store.head(commit_path(version))
        return None if found is None else found.stamp


def open_snapshot(
    store: Store, at: int | None = None, *, with_files: bool = True, most: int | None = None
) -> Snapshot:
    """Read version `at` of the table in `store`, by default the newest; without its files, of which it may have many,
    if nobody needs them.

    Raises NotThisWay for a log whose checkpoints have another form than one Parquet file, for one of which
    commits are missing, and where the table, or the checkpoint to begin with, has more than `most` files.
    """
    first = last_checkpoint(store)[0] if at is None else 0
    names = [name for name in store.names(LOG_FOLDER, after=f"{first:020}") if version_of(name) is not None]
    checkpoints = [name for name in names if ".checkpoint." in name]
    if any(not name.endswith(_CHECKPOINT) or len(name) != 20 + len(_CHECKPOINT) for name in checkpoints):
        raise NotThisWay("the log has checkpoints of a form that only Spark reads")
    snapshot = Snapshot(store, with_files=with_files)
    newest = max((name for name in checkpoints if at is None or int(name[:20]) <= at), default=None)
    if newest is not None:
        columns = _COLUMNS if with_files else _DESCRIPTION
        snapshot.version = int(newest[:20])
        snapshot.apply(_checkpoint(store, f"{LOG_FOLDER}/{newest}", columns, most))
    commits = {int(name[:20]) for name in names if name.endswith(".json")}
    last = max(commits, default=-1) if at is None else at
    while wanted := snapshot._next(last, _MOST_ASKED):
        if not snapshot._apply_commits(at_once(snapshot._read, wanted)):
            raise NotThisWay(f"the log lacks version {snapshot.version + 1}")
    if last < max(snapshot.version, 0) or not snapshot.metadata or not snapshot.protocol:
        raise NotThisWay("the log is not complete")
    if most is not None and len(snapshot.files) > most:
        raise _too_many(most)
    if snapshot._stamp is None:
        snapshot._stamp = snapshot._stamp_of(last)
    return snapshot


def _actions(commit: bytes, wanted: Collection[str] | None) -> list[Action]:
    # Not splitlines: a text in the statistics may have separators that only Python takes for ends of lines.
    lines = (line for line in commit.decode().split("\n") if line.strip())
    if wanted is None:
        return [json.loads(line) for line in lines]
    # Most lines are long, and of files.
    named = ((_ACTION.match(line), line) for line in lines)
    return [json.loads(line) for name, line in named if name is None or name[1] in wanted]


class _Followed:
    """The tables whose logs this process follows, those that were asked for last."""

    def __init__(self, *, with_files: bool, most_tables: int) -> None:
        self._with_files, self._most_tables = with_files, most_tables
        self._known: dict[str, Snapshot] = {}
        self._lock = threading.Lock()

    def at(self, store: Store, version: int | None, most: int | None) -> Snapshot:
        """What `followed` returns."""
        until = version if self._with_files else None
        with self._lock:
            known = self._known.pop(store.location, None)
            behind = known is not None and (until is None or known.version <= until)
            if known is None or not behind or not (self._has_seen(known, version) or known.follow(until)):
                known = open_snapshot(store, until, with_files=self._with_files, most=most)
            if (looked := _looked.get()) is not None:
                looked.add((self._with_files, store.location))
            if most is not None and len(known.files) > most:
                raise _too_many(most)
            self._known[store.location] = known
            while len(self._known) > self._most_tables:
                del self._known[next(iter(self._known))]
            found = replace(
                known,
                files=dict(known.files),
                transactions=dict(known.transactions),
                domains=dict(known.domains),
                _recent=dict(known._recent),
            )
        if version is None or found.described <= version <= found.version:
            return found
        return open_snapshot(store, version, with_files=self._with_files, most=most)

    def _has_seen(self, known: Snapshot, version: int | None) -> bool:
        """Whether the log was followed within `one_look`, and far enough for `version`."""
        if (self._with_files, known.store.location) not in (_looked.get() or ()):
            return False
        return (
            version is None or version == known.version or (not self._with_files and version < known.version)
        )


_looked: ContextVar[set[tuple[bool, str]] | None] = ContextVar("logs that were followed", default=None)


@contextmanager
def one_look() -> Iterator[None]:
    """Within the block `followed` follows each log once; its newest version is then the one that was found first.

    For questions about one state of a table that come one after the other. Each of them would ask the store whether
    there is a next commit."""
    before = _looked.set(set())
    try:
        yield
    finally:
        _looked.reset(before)


_WITH_FILES = _Followed(with_files=True, most_tables=50)
_WITHOUT_FILES = _Followed(with_files=False, most_tables=1_000)


def followed(
    store: Store, version: int | None = None, *, with_files: bool = True, most: int | None = None
) -> Snapshot:
    """Do as `open_snapshot` does, and read only what has been added to the log since the last call. Without files the
    snapshot may be of a later version, of which `protocol` and `metadata` are those of `version`; else `most` limits
    how many files it may have. It is the caller's own.
    """
    return (_WITH_FILES if with_files else _WITHOUT_FILES).at(store, version, most)


def _too_many(files: int) -> NotThisWay:
    return NotThisWay(f"the table has more than {files:,} files")


def stats_of(add: Mapping[str, Any]) -> Mapping[str, Any]:
    """The statistics of a file; empty where it has none."""
    found = json.loads(add.get("stats") or "{}")
    return found if isinstance(found, dict) else {}


def live_rows(add: Mapping[str, Any]) -> int | None:
    """How many rows of the file are not deleted; None where its statistics do not count rows."""
    count = stats_of(add).get("numRecords")
    marked = (add.get("deletionVector") or {}).get("cardinality", 0)
    return None if count is None else int(count) - int(marked)


def last_checkpoint(store: Store) -> tuple[int, int]:
    """The version of the last checkpoint, and how many actions it has; zeros where nobody says."""
    try:
        found = json.loads(store.read(f"{LOG_FOLDER}/_last_checkpoint"))
        return int(found["version"]), int(found["size"])
    except (OSError, ValueError, LookupError, TypeError):
        return 0, 0


def _checkpoint(store: Store, path: str, columns: Sequence[str], most: int | None) -> Iterator[Action]:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    opened = pq.ParquetFile(pa.BufferReader(store.read(path)))
    if most is not None and opened.metadata.num_rows > most:
        # Most of the actions may be of removed files.
        paths = pc.struct_field(opened.read(columns=["add.path"])["add"].combine_chunks(), "path")
        if len(paths) - paths.null_count > most:
            raise _too_many(most)
    content = opened.read(columns=list(columns))
    for name in content.column_names:
        column = content[name]
        given = column.filter(pc.is_valid(column))
        for action in given.to_pylist():
            yield {name: _plain(action)}


def _plain(action: Action) -> Action:
    """The action as a commit has it: maps of Parquet are lists of pairs, and absent fields are null."""
    found = {key: value for key, value in action.items() if value is not None}
    for key in ("partitionValues", "tags", "configuration"):
        if isinstance(found.get(key), list):
            found[key] = dict(found[key])
    return found
