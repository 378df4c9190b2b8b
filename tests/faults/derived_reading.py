"""Reads what a lane's script or job has sent, and the states of its source, without the bridge."""

from __future__ import annotations

import json
import time
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from tests.faults.checker import Verdict
from tests.faults.derived import SCRIPT, Output, Sent, final, judge_output
from tests.faults.documents import Documents
from tests.faults.history import Row, states
from tests.faults.lane import Lane
from tests.faults.parquet import Log
from tests.faults.reading import Observer, commit_of
from tests.reader import messages

_LOOK_SECONDS = 1.0


class DerivedObserver:
    """Follows the topics of a script or a job. `source` is the observer of its lane: a script reads the lane's topic
    into a table of its own, a job reads the lane's table."""

    def __init__(self, bootstrap: str, source: Observer, lane: Lane, kind: str, folder: Path) -> None:
        self.lane, self.kind = lane, kind
        self.outputs = lane.derived[kind]
        self._bootstrap, self._source, self._folder = bootstrap, source, folder
        self._documents = Documents(lane.key, "json")
        self._sent: dict[str, list[Sent]] = {output.topic: [] for output in self.outputs}
        self._next: dict[str, dict[int, int]] = {}
        self._looked = 0.0

    def is_final(self) -> bool:
        """Whether the topics hold what the last state of the source gives; looks about once a second."""
        if time.monotonic() < self._looked + _LOOK_SECONDS:
            return False
        source = self._states()
        last = source[-1] if source else {}
        self._read()
        self._looked = time.monotonic()
        return all(final(output, last, self._sent[output.topic]) for output in self.outputs)

    def judged(self) -> Verdict:
        """Checks a drained script or job."""
        verdict, source = Verdict(commits=0), self._states()
        self._read()
        for output in self.outputs:
            sent = self._sent[output.topic]
            judge_output(output, source, sent, verdict, exactly_once=self.lane.exactly_once)
        return verdict

    def _states(self) -> list[dict[int, Row]]:
        seen = self._source.look()
        if self.kind != SCRIPT:
            return [*states(seen.topic_in, seen.commits, seen.user_commits)]
        commits = []
        for log in self._state_logs():
            found = [commit_of(version, actions) for version, actions in log.commits()]
            commits += [commit for commit in found if commit is not None]
        return [*states(seen.topic_in, commits)]

    def _state_logs(self) -> list[Log]:
        """The log of the table into which the script reads its only source: of its tables the one with offsets."""
        logs = (self._folder / "bridge-state").rglob("_delta_log")
        return [Log(log.parent) for log in sorted(logs)]

    def _read(self) -> None:
        for output in self.outputs:
            for message in messages(self._bootstrap, output.topic, self._next.setdefault(output.topic, {})):
                key, value = message.key(), message.value()
                assert key is not None
                place = message.partition() or 0, message.offset() or 0
                self._sent[output.topic].append(Sent(*self._parsed(output, key, value), place))

    def _parsed(self, output: Output, key: bytes, value: bytes | None) -> tuple[Hashable, Hashable | None]:
        if not output.grouped:
            return self._documents.read(key, value)
        row: dict[str, Any] | None = None if value is None else json.loads(value)
        return json.loads(key)["writer"], None if row is None else (row["n"], row["total"])
