"""Who holds a lease: a process, named so that another one can tell whether it is gone."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["LeaseOwner", "current_process"]

_FORMAT = 1


@dataclass(frozen=True)
class LeaseOwner:
    """What a lease file says."""

    pipeline: str
    verb: str
    run: str
    host: str
    machine: str
    """Changes with every start of the machine and differs between containers, which may all have a process 7; empty
    where that cannot be told: then no process is believed to be gone, it is only watched."""
    pid: int
    started: str
    """When the process began, in the machine's own clock ticks: a later process with its number began at another."""
    since: str
    """When the run began, for people."""
    every: float
    """Seconds between two beats."""
    beat: int = 0
    released: bool = False

    def to_json(self) -> str:
        """As `from_json` reads it."""
        return json.dumps({"format": _FORMAT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str | None) -> LeaseOwner | None:
        """None for whatever is no lease: no file, half a file, one of another bridge."""
        try:
            found = json.loads(text or "")
            if found.pop("format") != _FORMAT:
                return None
            return cls(**found)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def __str__(self) -> str:
        return f"`{self.verb}` of {self.pipeline!r} in process {self.pid} on {self.host}, since {self.since}"

    def is_gone(self) -> bool:
        """True only when it is certain: the process was on this machine, as it runs now, and is there no more."""
        return self._is_here() and start_time(self.pid) != self.started

    def is_running(self) -> bool:
        """True only when it is certain: another process, on this machine, that is not stopped. (Of this very process an
        earlier run may be meant, which could not give its lease back.)"""
        found = None if self.pid == os.getpid() else _process_stat(self.pid)
        return self._is_here() and found is not None and found[19] == self.started and found[0] not in "TtZXx"

    def _is_here(self) -> bool:
        here = machine_id()
        return bool(here) and (self.host, self.machine) == (socket.gethostname(), here)


def current_process(pipeline: str, verb: str, run: str, *, since: str, every: float) -> LeaseOwner:
    """This process."""
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
    """The boot of this machine and the space that its process numbers belong to; empty outside of Linux."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
    return f"{boot} {space}" if boot and space else ""


def start_time(pid: int) -> str | None:
    """When the process began; None when there is none of that number, or one that is dead and waits for its parent."""
    found = _process_stat(pid)
    return None if found is None or found[0] in "ZXx" else found[19]


def _process_stat(pid: int) -> list[str] | None:
    """What Linux says of a process, from its state on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
