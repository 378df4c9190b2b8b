"""Named places where a test can stop, delay or kill the process. Off unless BRIDGE_FAILPOINTS names a folder.

A file in that folder arms the failpoint of its name. It contains an action, and optionally `after N` to ignore N hits:

    kill     the process dies at once, as by kill -9
    raise    the call raises RuntimeError
    pause    the call waits while `<name>.hit` exists
    freeze   the call never ends and keeps Python's lock, as native code that hangs may do

A failpoint that fires renames the file to `<name>.hit`, so one of many processes fires, once.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections import Counter
from pathlib import Path

_VARIABLE = "BRIDGE_FAILPOINTS"
_hits: Counter[tuple[str, int]] = Counter()
"""Hits by failpoint and its file's modification time: a file that is written again starts to count at 0."""


def ignore(name: str) -> None:
    """Do nothing: `hit` in production."""


def _hit(name: str) -> None:
    armed = Path(os.environ[_VARIABLE]) / name
    try:
        action, _, after = armed.read_text().strip().partition(" after ")
        arming = name, armed.stat().st_mtime_ns
    except OSError:
        return
    _hits[arming] += 1
    if _hits[arming] <= int(after or 0):
        return
    fired = armed.with_name(f"{name}.hit")
    try:
        armed.rename(fired)
    except OSError:  # another process has fired it
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "raise":
        raise RuntimeError(f"failpoint {name}")
    elif action == "pause":
        while fired.exists():
            time.sleep(0.02)
    elif action == "freeze":
        ctypes.PyDLL(None).sleep(1 << 30)
    else:
        raise ValueError(f"failpoint {name}: {action!r} is unknown; legal are kill, raise, pause, freeze")


hit = _hit if os.environ.get(_VARIABLE) else ignore
"""Call it with the failpoint's name at the failpoint."""
