"""Named places where a test may stop, delay or kill the process. Off unless BRIDGE_FAILPOINTS names a folder.

A file in that folder arms the failpoint of its name; it holds one word, and `after N` to let N hits pass first:

    kill     the process dies at once, as by kill -9
    raise    the call raises RuntimeError
    pause    the call waits for as long as `<name>.hit` exists

Whoever fires it renames the file to `<name>.hit`, so of many processes one fires, once.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

__all__ = ["hit"]

_FOLDER = os.environ.get("BRIDGE_FAILPOINTS")
_passed: Counter[tuple[str, int]] = Counter()
"""Hits that each arming let pass. An arming is told by its file's time: it starts to count at 0."""


def _off(name: str) -> None:
    """Nothing is armed, ever: production."""


def _hit(name: str) -> None:
    armed = Path(_FOLDER or "") / name
    try:
        action, _, after = armed.read_text().strip().partition(" after ")
        arming = name, armed.stat().st_mtime_ns
    except OSError:
        return
    _passed[arming] += 1
    if _passed[arming] <= int(after or 0):
        return
    fired = armed.with_name(f"{name}.hit")
    try:
        armed.rename(fired)
    except OSError:  # another process was faster
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "raise":
        raise RuntimeError(f"failpoint {name}")
    elif action == "pause":
        while fired.exists():
            time.sleep(0.02)
    else:
        raise ValueError(f"failpoint {name}: {action!r} is unknown; legal are kill, raise, pause")


hit = _hit if _FOLDER else _off
"""Call it with the failpoint's name, at the place it stands for."""
