"""Jobs that never ran, for what only compares them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.jobs import Commit, Ran
from benchmarks.results import Entry
from benchmarks.topics import Load


class Ground:
    """Says how long each job took: the recipe a second a batch, the bridge a fifth of that, Flink a tenth."""

    def __init__(self, *, wrong: str = "", flink: bool = True, slow_conf: str | None = None) -> None:
        self._flink, self._wrong, self._slow = flink, wrong, slow_conf
        self.loads: dict[str, Load] = {}
        self.jobs: list[tuple[str, str, dict[str, Any]]] = []
        self.said: list[str] = []
        self.folder = Path("unused")

    def say(self, text: str) -> None:
        self.said.append(text)

    def topic(self, name: str, load: Load, **_: Any) -> str:
        assert name not in self.loads
        self.loads[name] = load
        return name

    def recipe(self, what: str, topic: str, **options: Any) -> Entry:
        pace = 2.0 if options.get("conf") == self._slow else 1.0
        return self._ran(what, "recipe", topic, pace, options)

    def bridge(self, what: str, topic: str, **options: Any) -> Entry:
        reader = options.get("reader")
        ways = (reader and f"read by {reader}", options.get("engine"))
        return self._ran(what, ", ".join(["bridge", *filter(None, ways)]), topic, 0.2, options)

    def paimon(self, what: str, topic: str, **options: Any) -> Entry | None:
        return self._ran(what, "Flink → Paimon", topic, 0.1, options) if self._flink else None

    def paimon_steps(self, what: str, topics: Sequence[str], **options: Any) -> Entry | None:
        return self._ran(what, "Flink → Paimon", topics[0], 0.1, options) if self._flink else None

    def _ran(self, what: str, system: str, topic: str, pace: float, options: dict[str, Any]) -> Entry:
        load = self.loads[topic]
        self.jobs.append((system, topic, options))
        batches = [Commit(n, n * pace, "MERGE", {}, "spark") for n in range(8)]
        said = "".join(f"INSERT {9 if n < 3 else pace:.3f}\n" for n in range(8))
        ran = Ran(len(load) * pace / 1000, batches, [(1.0, 800.0)], None, pace * 10, 0.0, said)
        return Entry(what, system, len(load), ran, "torn" if self._wrong and self._wrong in what else None)
