"""Jobs that never ran, for what only compares them."""

from __future__ import annotations

from typing import Any

from benchmarks.ground import Entry
from benchmarks.jobs import Commit, Ran
from benchmarks.topics import Load

__all__ = ["Ground"]


class Ground:
    """Says how long each job took: the recipe a second a batch, the bridge a fifth of that."""

    def __init__(self, *, wrong: str = "", flink: bool = True) -> None:
        self._flink = flink
        self.loads: dict[str, Load] = {}
        self.jobs: list[tuple[str, str, dict[str, Any]]] = []
        self._wrong = wrong

    def topic(self, name: str, load: Load) -> str:
        assert name not in self.loads
        self.loads[name] = load
        return name

    def recipe(self, what: str, topic: str, **options: Any) -> Entry:
        return self._ran(what, "recipe", topic, 1.0, options)

    def bridge(self, what: str, topic: str, **options: Any) -> Entry:
        given = [options.get(name) for name in ("engine", "master")]
        return self._ran(what, ", ".join(["bridge", *(x for x in given if x)]), topic, 0.2, options)

    def paimon(self, what: str, topic: str, **options: Any) -> Entry | None:
        if not self._flink:
            return None
        return self._ran(what, "Flink → Paimon", topic, 0.1, options)

    def _ran(self, what: str, system: str, topic: str, pace: float, options: dict[str, Any]) -> Entry:
        load = self.loads[topic]
        self.jobs.append((system, topic, options))
        batches = [Commit(n, n * pace, "MERGE", {}, "spark") for n in range(8)]
        ran = Ran(len(load) * pace / 1000, batches, [(1.0, 800.0)])
        return Entry(what, system, len(load), ran, "torn" if self._wrong and self._wrong in what else None)
