"""Loads known differences from upstream, each for one case by id and name, with a decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.cases.case import Case

FILE = Path(__file__).parent / "divergences.yaml"


@dataclass(frozen=True)
class Divergence:
    """The expectation of the bridge, in place of that of the case (or its vector)."""

    case: str
    name: str
    decision: int | str
    why: str
    vector: int | None = None
    drop: list[str] = field(default_factory=list)
    instead: Mapping[str, Any] = field(default_factory=dict)

    def applied(self, case: Case) -> Case:
        """Returns the case with the decision as its expectation."""
        return case.changed(self.vector, self.drop, self.instead)

    @property
    def words(self) -> str:
        """The decision: a rule of ADR 028, or another ADR."""
        number = f"ADR 028, rule {self.decision}" if isinstance(self.decision, int) else self.decision
        return f"{number}: {self.why}"


def read(file: Path = FILE) -> list[Divergence]:
    """Loads all entries; raises TypeError for an unknown key."""
    return [Divergence(**entry) for entry in yaml.safe_load(file.read_text(encoding="utf-8"))]


def find(known: list[Divergence], case: Case, vector: int | None) -> Divergence | None:
    """Returns the entry for exactly this case (id and name) and vector."""
    matching = (d for d in known if (d.case, d.name, d.vector) == (case.id, case.name, vector))
    return next(matching, None)
