"""Case files as data, and the memory of which of their keys a run has looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Case", "Part", "load"]

DOCUMENTATION = frozenset(
    {"id", "name", "kind", "source", "licence", "derived", "notes", "note", "why", "formats_upstream"}
    | {"changes_note", "divergence", "role", "partition_keys"}
)
"""Keys that tell people something (partition keys: how a table's files lie, which no row shows); every other key of a
case asks something of the bridge."""


class Part:
    """A JSON object that remembers which keys were taken. A vector or step falls back on its case."""

    def __init__(self, data: Mapping[str, Any], parent: Part | None = None) -> None:
        self.data, self.parent = dict(data), parent
        self.parts: list[Part] = []
        self._taken: set[str] = set()

    def take(self, key: str, default: Any = None) -> Any:
        """The value of `key` here, else in the parent, else `default`."""
        above = self.parent.take(key, default) if self.parent else default
        self._taken.add(key)
        return self.data.get(key, above)

    def own(self, key: str, default: Any = None) -> Any:
        """The value of `key` here, without the parent."""
        self._taken.add(key)
        return self.data.get(key, default)

    def has(self, key: str) -> bool:
        """Whether `take` would find `key`; counts as no look at it."""
        return key in self.data or (self.parent is not None and self.parent.has(key))

    def merged(self, key: str) -> dict[str, Any]:
        """The objects under `key` of parent and here in one; a key here wins."""
        above = self.parent.merged(key) if self.parent else {}
        return {**above, **(self.own(key) or {})}

    def unread(self) -> list[str]:
        """Keys that nobody took and that are not documentation, those of steps included."""
        own = [k for k in self.data if k not in self._taken and k not in DOCUMENTATION]
        return own + sorted({f"steps.{k}" for part in self.parts for k in part.unread()})

    def steps(self) -> list[Part]:
        """The case's steps as parts of it; none where it has no steps."""
        self.parts = [Part(item, self) for item in self.own("steps") or []]
        return self.parts

    def vectors(self) -> list[Part]:
        """The case's vectors, each a part of it with keys of its own to be read."""
        return [Part(item, self) for item in self.own("vectors") or []]


@dataclass(frozen=True)
class Case:
    """One file. `problem` says why it is no case, when it is none."""

    id: str
    name: str
    kind: str
    data: Mapping[str, Any]
    problem: str = ""

    @property
    def vectors(self) -> int:
        """How many vectors there are; 0 for a case without."""
        return len(self.data.get("vectors") or [])

    def changed(self, vector: int | None, drop: list[str], instead: Mapping[str, Any]) -> Case:
        """The case with keys dropped and replaced, in itself or in a vector; `steps.2.x` is in the third step."""
        data = dict(self.data)
        place: dict[str, Any] = data
        if vector is not None:
            data["vectors"] = [dict(v) for v in data["vectors"]]
            place = data["vectors"][vector]
        for key in drop:
            at, name = _inside(place, key)
            at.pop(name, None)
        for key, value in instead.items():
            at, name = _inside(place, key)
            at[name] = value
        return Case(self.id, self.name, self.kind, data, self.problem)


def _inside(place: dict[str, Any], key: str) -> tuple[dict[str, Any], str]:
    if not key.startswith("steps."):
        return place, key
    _, number, name = key.split(".", 2)
    place["steps"] = [dict(step) for step in place["steps"]]
    return place["steps"][int(number)], name


def load(folder: Path) -> Iterator[Case]:
    """Every `*.json` file of `folder`, by file name; a file that is no case comes with its problem."""
    for file in sorted(folder.glob("*.json")):
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            yield Case(data["id"], data["name"], data["kind"], data)
        except (ValueError, KeyError, TypeError) as error:
            yield Case(file.stem, "", "", {}, f"not a case file: {type(error).__name__}: {error}")
