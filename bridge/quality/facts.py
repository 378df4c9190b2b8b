"""What an expectation must know that the table alone does not tell: about its topic, its history, another side.

Expectations ask by name; the pipelines answer (pipelines.facts), for only they may join topic and table. Plain Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError

__all__ = ["NO_FACTS", "FactProvider", "Facts", "KeySplit", "Moment", "Ratio", "RowDifferences", "Unknown"]


@dataclass(frozen=True)
class RowDifferences:
    """Two sides of rows. `differing` counts keys, or rows where there are no keys; `examples` are such keys."""

    positions: str
    """Between which positions, in words."""
    rows: int
    other_rows: int
    checksum: str
    other_checksum: str
    differing: int
    examples: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class KeySplit:
    """How many of `keys` have records in more than one partition."""

    keys: int
    split: int
    examples: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Ratio:
    """A part of a whole."""

    part: int
    whole: int


@dataclass(frozen=True)
class Moment:
    """A point in time in epoch milliseconds; None where there was nothing."""

    ms: int | None


@dataclass(frozen=True)
class Unknown:
    """A fact that cannot be had, and why: whoever asked has failed."""

    reason: str


FactProvider = Callable[[Mapping[str, Any]], object]
"""Works a fact out from the expectation's arguments."""


class Facts:
    """Each fact is worked out when an expectation first asks for it, and once. `base`: the folder of relative paths."""

    def __init__(
        self, answers: Mapping[str, FactProvider] | None = None, *, base: Path | None = None
    ) -> None:
        self._providers, self.base_folder = dict(answers or {}), base
        self._known: dict[str, object] = {}

    def get(self, name: str, arguments: Mapping[str, Any]) -> object:
        """One of the values above. `Unknown` where nobody can answer, and where answering failed; it never raises."""
        question = json.dumps([name, dict(arguments)], sort_keys=True)
        if question not in self._known:
            self._known[question] = self._resolve(name, arguments)
        return self._known[question]

    def _resolve(self, name: str, arguments: Mapping[str, Any]) -> object:
        answer = self._providers.get(name)
        if answer is None:
            return Unknown("it needs to know the pipeline: run it by `bridge check`")
        try:
            return answer(arguments)
        except BridgeError as error:
            return Unknown(str(error).splitlines()[0])
        except Exception as error:
            # Spark's and Kafka's texts may quote a record.
            return Unknown(f"it could not be found out: {type(error).__name__}")


NO_FACTS = Facts()
"""For a frame that belongs to no pipeline."""
