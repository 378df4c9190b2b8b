"""Loads case files, and tracks which of their keys a run has read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCUMENTATION = frozenset(
    {"id", "name", "kind", "source", "licence", "derived", "notes", "note", "why", "formats_upstream"}
    | {"changes_note", "divergence", "role", "partition_keys"}
)
"""Keys that only document a case (partition keys: the layout of files, which rows do not show). Every other key is a
requirement."""


class Part:
    """A JSON object that tracks which keys were read. A vector or step inherits from its case."""

    def __init__(self, data: Mapping[str, Any], parent: Part | None = None) -> None:
        self.data, self.parent = dict(data), parent
        self.parts: list[Part] = []
        self._taken: set[str] = set()

    def take(self, key: str, default: Any = None) -> Any:
        """Returns the value of `key` here, else in the parent, else `default`."""
        above = self.parent.take(key, default) if self.parent else default
        self._taken.add(key)
        return self.data.get(key, above)

    def own(self, key: str, default: Any = None) -> Any:
        """Returns the value of `key` here, without the parent."""
        self._taken.add(key)
        return self.data.get(key, default)

    def has(self, key: str) -> bool:
        """Whether `take` would find `key`; does not mark it as read."""
        return key in self.data or (self.parent is not None and self.parent.has(key))

    def merged(self, key: str) -> dict[str, Any]:
        """Merges the objects under `key` of the parent and here; a key here takes precedence."""
        above = self.parent.merged(key) if self.parent else {}
        return {**above, **(self.own(key) or {})}

    def unread(self) -> list[str]:
        """Returns the keys that were not read and are not documentation, including those of steps."""
        own = [k for k in self.data if k not in self._taken and k not in DOCUMENTATION]
        return own + sorted({f"steps.{k}" for part in self.parts for k in part.unread()})

    def steps(self) -> list[Part]:
        """Returns the case's steps as parts of it."""
        self.parts = [Part(item, self) for item in self.own("steps") or []]
        return self.parts

    def vectors(self) -> list[Part]:
        """Returns the case's vectors, each a part with keys of its own."""
        return [Part(item, self) for item in self.own("vectors") or []]


@dataclass(frozen=True)
class Case:
    """A case file. `problem` is the reason why it is not a valid case."""

    id: str
    name: str
    kind: str
    data: Mapping[str, Any]
    problem: str = ""

    @property
    def vectors(self) -> int:
        """The number of vectors; 0 for a case without vectors."""
        return len(self.data.get("vectors") or [])

    def changed(self, vector: int | None, drop: list[str], instead: Mapping[str, Any]) -> Case:
        """Returns the case with keys dropped and replaced, at the top or in a vector; `steps.2.x` in the third step."""
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
    """Yields every `*.json` file of `folder` by file name; an invalid file has a `problem`."""
    for file in sorted(folder.glob("*.json")):
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            yield Case(data["id"], data["name"], data["kind"], data)
        except (ValueError, KeyError, TypeError) as error:
            yield Case(file.stem, "", "", {}, f"not a case file: {type(error).__name__}: {error}")
