"""The process that watches the steps of another one. See `watchdog`, which starts it with this text alone."""

from __future__ import annotations

import mmap
import os
import signal
import struct
import sys
import time
from contextlib import suppress

SLOT_BYTES = 256
"""The memory begins with the process id of the JVM; each thread of the watched process has a slot after it."""
HEAD = struct.Struct("<Q")
SLOT = struct.Struct("<Qd")
"""A number that is another one for each step, and how many seconds it may take, 0 without a bound. Its name follows."""
_EVERY_SECONDS = 0.5
_EXIT_SECONDS = 10.0
"""How long the watched process may take to write its stacks and exit."""


def main(parent: int, memory: int, log: str) -> None:
    """Watch until the parent has ended. End it when a step has not ended within its bound.

    Time is counted in looks, so none passes while this process or the parent is stopped, or the machine sleeps.
    """
    page = mmap.mmap(memory, 0, prot=mmap.PROT_READ)
    looks: dict[int, tuple[bytes, int]] = {}
    while os.getppid() == parent:
        time.sleep(_EVERY_SECONDS)
        if _is_stopped(parent):
            continue
        for begin in range(SLOT_BYTES, len(page), SLOT_BYTES):
            slot = page[begin : begin + SLOT_BYTES]
            number, seconds = SLOT.unpack_from(slot)
            if not number:  # neither this slot nor one after it was ever used
                break
            before, count = looks.get(begin, (b"", 0))
            looks[begin] = slot, count + 1 if slot == before else 0
            if seconds and looks[begin][1] * _EVERY_SECONDS >= seconds:
                _end(parent, HEAD.unpack_from(page)[0], slot[SLOT.size :], seconds, log)
                return


def _end(parent: int, jvm: int, name: bytes, seconds: float, log: str) -> None:
    run, _, step = name.rstrip(b"\0").decode(errors="replace").partition(": ")
    minutes = f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
    said = f"stalled: {run} has not ended this step within {minutes}: {step}."
    _write(log, f"{time.strftime('%Y-%m-%d %H:%M:%S')} ERROR {said} The stacks of process {parent} follow\n")
    _write(
        "",
        f"{said} The process ends with 5, its stacks are in {log or 'this output'}. Run it again: it continues after "
        "its last commit. If such a step may take longer, raise run.step-timeout (in a script SET "
        "'bridge.step-timeout', in a job of Flink CDC pipeline: {bridge.step-timeout: ...})\n",
    )
    if jvm:
        _send(jvm, signal.SIGSTOP)  # it writes nothing more
    _send(parent, signal.SIGTRAP)
    until = time.monotonic() + _EXIT_SECONDS
    while os.getppid() == parent and time.monotonic() < until:
        time.sleep(0.05)
    if os.getppid() == parent:
        _send(parent, signal.SIGKILL)
    if jvm:
        _send(jvm, signal.SIGKILL)


def _write(log: str, text: str) -> None:
    with suppress(OSError):
        to = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644) if log else 2
        os.write(to, text.encode())


def _send(process: int, number: int) -> None:
    with suppress(OSError):
        os.kill(process, number)


def _is_stopped(process: int) -> bool:
    """Whether a person has stopped the process, or debugs it; False where nothing says so."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "Tt"
    except (OSError, IndexError):
        return False


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
