"""Defines the facts about a table's topic and history that expectations need beyond the table's rows.

An expectation names a fact; `pipelines.quality.facts` computes it, because only pipelines may join topic and table.
Plain Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.errors import BridgeError


@dataclass(frozen=True)
class RowDifferences:
    """A comparison of two sides. `differing` counts keys (rows, where there is no key); `examples` are some of them."""

    positions: str
    """The positions that were compared, as text."""
    rows: int
    other_rows: int
    checksum: str
    other_checksum: str
    differing: int
    examples: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class KeySplit:
    """How many of `keys` keys have records in more than one partition (`split`)."""

    keys: int
    split: int
    examples: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Ratio:
    """A part and its whole, as counts."""

    part: int
    whole: int


@dataclass(frozen=True)
class Moment:
    """A point in time in epoch milliseconds; None where there is none."""

    ms: int | None


@dataclass(frozen=True)
class Unknown:
    """A fact that could not be evaluated, with the reason; the expectation that needs it fails."""

    reason: str


FactProvider = Callable[[Mapping[str, Any]], object]
"""Computes a fact from the expectation's arguments."""


class Facts:
    """Computes each fact once, on first use. `base_folder`: where relative paths start, or None."""

    def __init__(
        self, providers: Mapping[str, FactProvider] | None = None, *, base_folder: str | None = None
    ) -> None:
        self._providers, self.base_folder = dict(providers or {}), base_folder
        self._values: dict[str, object] = {}

    def get(self, name: str, arguments: Mapping[str, Any]) -> object:
        """Returns one of the values above; `Unknown` without a provider, or when it failed. Never raises."""
        fact_id = json.dumps([name, dict(arguments)], sort_keys=True)
        if fact_id not in self._values:
            self._values[fact_id] = self._resolve(name, arguments)
        return self._values[fact_id]

    def _resolve(self, name: str, arguments: Mapping[str, Any]) -> object:
        provider = self._providers.get(name)
        if provider is None:
            return Unknown("it needs the pipeline's topic and table: run it with `bridge check`")
        try:
            return provider(arguments)
        except BridgeError as error:
            return Unknown(str(error).splitlines()[0])
        except Exception as error:
            # Messages of Spark and Kafka may quote a record.
            return Unknown(f"its fact could not be computed: {type(error).__name__}")


NO_FACTS = Facts()
"""The facts of a frame that belongs to no pipeline."""
