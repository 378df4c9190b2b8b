"""CPU seconds from /proc: of one job's processes, and of everything else on the machine meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


class Cpu:
    """The CPU seconds of processes that come and go: `sample` them often, each counts with the most it ever had."""

    def __init__(self) -> None:
        self._most: dict[tuple[int, str], float] = {}

    def sample(self, pids: Iterable[int]) -> None:
        """Look at these processes; one that has ended meanwhile keeps what it had."""
        for pid in pids:
            fields = _stat(pid)
            if fields:
                # A number may be given out again; with the start time it names one process.
                self._most[pid, fields[19]] = (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def seconds(self) -> float:
        return sum(self._most.values())


class Others:
    """What others use of the machine from now on: neither this job nor the sessions of `beside`, which serve it."""

    def __init__(self, beside: Iterable[int]) -> None:
        self._beside, self._served = list(beside), Cpu()
        self._busy, self._had = busy(), self._serving()

    def seconds(self, own: float = 0.0) -> float:
        """Their CPU seconds; `own` are those of the job."""
        return max(0.0, busy() - self._busy - own - self.served)

    @property
    def served(self) -> float:
        """The CPU seconds of `beside` meanwhile."""
        return self._serving() - self._had

    def _serving(self) -> float:
        self._served.sample(sessions(self._beside))
        return self._served.seconds


def busy() -> float:
    """CPU seconds of the whole machine since it was started, idle and stolen time left out; nan without /proc."""
    try:
        user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    except (OSError, ValueError):
        return float("nan")
    return (user + nice + system + irq + softirq) / _TICKS


def sessions(leaders: Iterable[int]) -> list[int]:
    """The processes of the sessions that `leaders` have opened."""
    wanted, pids = set(leaders), []
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(folder.name))
        if fields and int(fields[3]) in wanted and fields[0] != "Z":
            pids.append(int(folder.name))
    return pids


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name; empty for a process that has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()
