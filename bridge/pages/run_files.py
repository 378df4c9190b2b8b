"""Reads what runs leave behind: the lease, the publish log, and the events. Without Spark, from outside of the run."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.bridge_folders import lease_file, publish_log_batch, publish_log_folder
from bridge.lake.reached_store import reached_store
from bridge.lease_owner import LeaseOwner
from bridge.publish_progress import NOTHING, PublishProgress, logged_progress, newest_progress

__all__ = ["LeaseState", "PublishLogReader", "last_event", "lease_state"]

_MISSED_HEARTBEATS = 3
_TAIL_BYTES = 1 << 18


@dataclass(frozen=True)
class LeaseState:
    """The lease of one side of a pipeline."""

    was_taken: bool
    is_held: bool
    """Whether its owner is a process that runs here, or sends heartbeats from elsewhere."""


def lease_state(folder: str, side: str, names: Collection[str], now_ms: int) -> LeaseState:
    """Read the lease `side` in a folder. One whose run has none of these names is not counted. Raises the store's
    errors."""
    store, name = reached_store(folder), Path(lease_file(folder, side)).name
    head = store.head(name)
    if head is None:
        return LeaseState(False, False)
    owner = LeaseOwner.from_json(store.read(name).decode())
    if owner is not None and owner.pipeline not in names:
        return LeaseState(False, False)
    if owner is None or owner.released or owner.is_gone():
        return LeaseState(True, False)
    silent_seconds = now_ms / 1000 - head.modified
    return LeaseState(True, owner.is_running() or silent_seconds <= _MISSED_HEARTBEATS * owner.every)


class PublishLogReader:
    """The publish log of one pipeline, of which each file is read once. For one thread."""

    def __init__(self, checkpoint: str, pipeline: str) -> None:
        self._store, self._pipeline = reached_store(checkpoint), pipeline
        self._place = publish_log_folder(checkpoint)
        self._folder = Path(self._place).name
        self._texts: dict[str, tuple[str, float]] = {}

    def last(self) -> PublishProgress | None:
        """The newest progress, as `newest_progress` returns and raises. Raises the store's errors, too."""
        found = [name for name in self._store.names(self._folder) if publish_log_batch(name) is not None]
        read = ((name, self._texts.get(name) or self._read(name)) for name in found)
        texts = {name: text for name, text in read if text is not None}
        progress = newest_progress(self._place, texts, lambda name: texts[name][0], self._pipeline)
        self._texts = {name: text for name, text in texts.items() if logged_progress(self._place, text[0])}
        return progress

    @property
    def written_ms(self) -> int | None:
        """When the newest file of `last` was written; None without one."""
        return None if not self._texts else int(1000 * self._texts[max(self._texts)][1])

    def version_at(self, at_ms: int, *, at_least: int = NOTHING) -> tuple[int, int] | None:
        """The version that was published at that time, and the time. Where the files of `last` do not reach that
        far, or the version is below `at_least`, it is the first one that they know, and when it was."""
        newest_first = sorted(self._texts.items(), reverse=True)
        found = None
        for _, (text, modified) in newest_first:
            progress, written_ms = logged_progress(self._place, text), int(1000 * modified)
            if progress is None or (found is not None and progress.version < at_least):
                break
            found = progress.version, max(at_ms, written_ms)
            if written_ms < at_ms:
                break
        return found

    def _read(self, name: str) -> tuple[str, float] | None:
        """The text of a file and when it was written; None for one that its run has deleted meanwhile."""
        path = f"{self._folder}/{name}"
        head = self._store.head(path)
        with suppress(FileNotFoundError):
            return None if head is None else (self._store.read(path).decode(), head.modified)
        return None


def last_event(file: str, runs: Collection[tuple[str, str]]) -> dict[str, Any] | None:
    """The newest event of one of these runs, each a pipeline and a verb, among the last ones of an events file; None
    where there is none. Raises OSError for a file that is there and cannot be read."""
    try:
        with open(file, "rb") as opened:
            opened.seek(max(0, os.fstat(opened.fileno()).st_size - _TAIL_BYTES))
            lines = opened.read().splitlines()
    except FileNotFoundError:
        return None
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:  # a part of a line
            continue
        if isinstance(event, dict) and (event.get("pipeline"), event.get("verb")) in runs:
            return event
    return None
