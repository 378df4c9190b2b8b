"""A scenario file, and what the oracle makes of it.

about:   what is shown
columns: the body of a CREATE TABLE             options: more WITH keys
publish: {start: snapshot | latest, after: n}   publishing begins after step n (0: before the first)
cut:     records per batch (one partition)      partitions: of both topics
steps:   each with `records` [[key, value]...] or `changes` [[kind, values...]...],
         then `table` (its rows) and `out` (the records it adds to the out topic, in order per key)
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bridge.definition import Definition, FormatSpec
from bridge.rows import Change, RowKind, compact, replay
from bridge.schema import DataType
from tests.cases import pipeline
from tests.cases.changelog import Shape
from tests.cases.values import comparable, from_case

Document = str | None
Record = tuple[Document, Document]
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Step:
    """What happens, and how things stand afterwards."""

    table: Sequence[Sequence[Any]]
    records: Sequence[Record] = ()
    changes: Sequence[Sequence[Any]] = ()
    out: Sequence[Record] = ()


@dataclass(frozen=True)
class Scenario:
    """One file."""

    name: str
    about: str
    columns: str
    steps: Sequence[Step]
    options: Mapping[str, str] = field(default_factory=dict)
    publish: Mapping[str, Any] = field(default_factory=lambda: {"start": "snapshot", "after": 0})
    partitions: int = 1
    cut: int | None = None

    def define(self, folder: Path, topic: str, name: str, bootstrap: str = "nowhere:9092") -> Definition:
        """The pipeline of this scenario over `folder/table`."""
        options = {
            "connector": "upsert-kafka",
            "topic": topic,
            "properties.bootstrap.servers": bootstrap,
            "key.format": "json",
            "value.format": "json",
            **self.options,
        }
        shown = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        statement = f"CREATE TABLE t ({self.columns}) WITH ({shown})"
        start = f"publish: {{start: {self.publish['start']}}}\n"
        return pipeline.write(folder, name, statement, cut=self.cut, sections=start)


def load(file: Path) -> Scenario:
    """Read a scenario; raises TypeError for a key that is none."""
    found = yaml.safe_load(file.read_text(encoding="utf-8"))
    steps = [
        Step(**{**step, **{k: [_record(r) for r in step[k]] for k in ("records", "out") if k in step}})
        for step in found.pop("steps")
    ]
    return Scenario(name=file.stem, steps=steps, **found)


def _record(pair: Sequence[Any]) -> Record:
    key, value = pair
    return _text(key), _text(value)


def _text(document: Any) -> Document:
    """A document as Flink writes it: fields in the order of the file, no spaces, escapes beyond 16 bits."""
    if document is None or isinstance(document, str):
        return document
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return re.sub(
        "[\U00010000-\U0010ffff]", lambda sign: json.dumps(sign[0])[1:-1].upper().replace("U", "u"), text
    )


class Model:
    """The scenario in plain Python: what a table and a topic hold, by `rows.replay` alone."""

    def __init__(self, scenario: Scenario, definition: Definition) -> None:
        self.scenario, self.topic = scenario, definition.topic
        self.shape: Shape = [(c.name, c.type) for c in self.topic.schema.physical]
        self.key = self.topic.schema.primary_key
        self.table: dict[Hashable, Mapping[str, Any]] = {}

    def row(self, values: Iterable[Any]) -> Row:
        """A row as written in the file, in comparable form."""
        return tuple(comparable(from_case(v, t), t) for v, (_, t) in zip(values, self.shape, strict=True))

    def rows(self) -> list[Row]:
        """The table as it stands."""
        return [tuple(row[name] for name, _ in self.shape) for row in self.table.values()]

    def values(self, row: Mapping[str, Any] | None) -> Row | None:
        """A row's values in column order; None for none."""
        return None if row is None else tuple(row[name] for name, _ in self.shape)

    def apply(self, step: Step) -> list[tuple[Hashable, Row | None]]:
        """Take a step; returns the records it must send: (key, row or None), in order inside each key."""
        if step.changes:
            changes = [self._change(at, kind, values) for at, (kind, *values) in enumerate(step.changes)]
            return [sent for commit in _commits(changes) for sent in self._commit(commit)]
        changes = [self.decoded(record, at) for at, record in enumerate(step.records)]
        size = self.scenario.cut or max(1, len(changes))
        return [sent for at in range(0, len(changes), size) for sent in self._commit(changes[at : at + size])]

    def decoded(self, record: Record, offset: int = 0) -> Change:
        """What an upsert record says."""
        key, value = record
        assert key is not None and self.topic.key is not None
        fields = self._fields(self.topic.key, key)
        identity = tuple(fields[name] for name in self.key)
        if value is None:
            return Change(RowKind.DELETE, identity, None, (offset,))
        row = {**self._fields(self.topic.value, value), **fields}
        return Change(RowKind.UPDATE_AFTER, identity, row, (offset,))

    def _commit(self, changes: Sequence[Change]) -> list[tuple[Hashable, Row | None]]:
        before = self.table
        self.table = replay(changes, before)
        assert self.table == replay(compact(changes), before)
        sent: list[tuple[Hashable, Row | None]] = []
        for change in compact(changes):
            row = self.table.get(change.key)
            if row != before.get(change.key):
                sent.append((change.key, self.values(row)))
        return sent

    def _change(self, at: int, kind: str, values: Sequence[Any]) -> Change:
        row = dict(zip([name for name, _ in self.shape], self.row(values), strict=True))
        return Change(RowKind(kind), tuple(row[name] for name in self.key), row, (at,))

    def _fields(self, spec: FormatSpec, text: str) -> dict[str, Any]:
        types: dict[str, DataType] = dict(self.shape)
        document = json.loads(text)
        fields = zip(spec.columns, spec.row.names, strict=True)
        return {c: comparable(from_case(document.get(name), types[c]), types[c]) for c, name in fields}


def _commits(changes: Sequence[Change]) -> list[list[Change]]:
    """One commit per change; -U and the +U after it are one, at one position."""
    commits: list[list[Change]] = []
    for change in changes:
        last = commits[-1] if commits else []
        if change.kind is RowKind.UPDATE_AFTER and [c.kind for c in last] == [RowKind.UPDATE_BEFORE]:
            last.append(Change(change.kind, change.key, change.row, last[0].position))
        else:
            commits.append([change])
    return commits
