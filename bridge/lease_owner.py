"""The owner of a lease: a process, identified so that another one can tell whether it is gone."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

_FORMAT = 1
_STATE, _START_TIME = 0, 19
"""Fields of /proc/PID/stat, counted from the state on (proc(5): fields 3 and 22)."""


@dataclass(frozen=True)
class LeaseOwner:
    """The content of a lease file."""

    pipeline: str
    verb: str
    run: str
    host: str
    machine: str
    """Changes with every boot and differs between containers, which may all have a process 7. Empty where it is not
    known: then no process is believed to be gone, its lease is watched."""
    pid: int
    started: str
    """The start time of the process in clock ticks since boot: a later process with the same id has another."""
    since: str
    """When the run began, for people."""
    every: float
    """Seconds between two heartbeats."""
    beat: int = 0
    released: bool = False

    def to_json(self) -> str:
        """The text of the file, as `from_json` reads it."""
        return json.dumps({"format": _FORMAT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str | None) -> LeaseOwner | None:
        """Parse a lease file; None for a missing or incomplete file, and for one of another format."""
        try:
            fields = json.loads(text or "")
            if fields.pop("format") != _FORMAT:
                return None
            return cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def __str__(self) -> str:
        return f"`{self.verb}` of {self.pipeline!r} in process {self.pid} on {self.host}, since {self.since}"

    def is_gone(self) -> bool:
        """True only if it is certain: the process was on this machine since its last boot, and has ended."""
        return self._is_here() and start_time(self.pid) != self.started

    def is_running(self) -> bool:
        """True only if it is certain: the process is another one on this machine, and it is not stopped.

        The owner may be an earlier run of this very process that could not release its lease: then False.
        """
        stat = None if self.pid == os.getpid() else _process_stat(self.pid)
        is_same = stat is not None and stat[_START_TIME] == self.started
        return self._is_here() and stat is not None and is_same and stat[_STATE] not in "TtZXx"

    def _is_here(self) -> bool:
        here = machine_id()
        return bool(here) and (self.host, self.machine) == (socket.gethostname(), here)


def current_process(pipeline: str, verb: str, run: str, *, since: str, every: float) -> LeaseOwner:
    """This process as the owner of a lease."""
    pid = os.getpid()
    return LeaseOwner(
        pipeline=pipeline,
        verb=verb,
        run=run,
        host=socket.gethostname(),
        machine=machine_id(),
        pid=pid,
        started=start_time(pid) or "",
        since=since,
        every=every,
    )


def machine_id() -> str:
    """The boot id of this machine and the namespace of its process ids; empty outside of Linux."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
    return f"{boot} {namespace}" if boot and namespace else ""


def start_time(pid: int) -> str | None:
    """The start time of a process; None if there is no such process, or if it has ended and is not reaped yet."""
    stat = _process_stat(pid)
    return None if stat is None or stat[_STATE] in "ZXx" else stat[_START_TIME]


def _process_stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
