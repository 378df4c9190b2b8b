"""One job of one system over one topic, and its verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from benchmarks.jobs import Ran

Say = Callable[[str], None]
RECIPE = "recipe"
PAIMON = "Flink → Paimon"
TOLERANCE = 0.1
"""A job does not count when others have spent more than this share of its own CPU seconds meanwhile."""


@dataclass(frozen=True)
class Entry:
    """One job of one system over one topic."""

    what: str
    system: str
    records: int
    ran: Ran | None
    wrong: str | None
    tolerance: float = TOLERANCE
    measured: Mapping[str, float] = field(default_factory=dict)
    """What else was measured, by name."""

    @property
    def seconds(self) -> float:
        """Seconds of the whole process; nan for a job that failed."""
        return self.ran.seconds if self.ran else float("nan")

    @property
    def rate(self) -> float:
        """Records per second including the cold start; nan for a job that failed."""
        return self.records / self.seconds

    @property
    def warm(self) -> float:
        """The duration of a warm batch in seconds."""
        return self.ran.warm if self.ran else float("nan")

    @property
    def peak_mb(self) -> float:
        return self.ran.peak_mb if self.ran else float("nan")

    @property
    def cpu(self) -> float:
        """CPU seconds a million records."""
        return self.ran.cpu / self.records * 1e6 if self.ran and self.records else float("nan")

    def number(self, name: str) -> float:
        """What was measured under this name; nan for a job that failed."""
        return self.measured.get(name, float("nan"))

    @property
    def disturbed(self) -> bool:
        """Whether others used the machine meanwhile, so that its time says nothing."""
        return self.ran is not None and self.ran.foreign > self.tolerance * self.ran.cpu
