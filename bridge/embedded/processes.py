"""Servers of our own on this machine: ports that are free, and processes that never outlive us."""

from __future__ import annotations

import os
import signal
import socket
import subprocess

__all__ = ["HOST", "free_port", "is_port_free", "start_watchdog", "stop_process"]

HOST = "127.0.0.1"


def start_watchdog(pid: int) -> subprocess.Popen[bytes]:
    """A shell that ends `pid` when our end of its standard input closes: no way of dying can prevent that.

    PR_SET_PDEATHSIG would do it without a process, but fires when the *thread* that started the server ends.
    """
    script = "cat >/dev/null; kill -TERM $0; sleep 5; kill -KILL $0"
    return subprocess.Popen(
        ["sh", "-c", script, str(pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def stop_process(
    process: subprocess.Popen[bytes] | None, watchdog: subprocess.Popen[bytes] | None, seconds: float
) -> None:
    """End a server and its watchdog in good order, by force after `seconds`. Harmless when both are gone."""
    if watchdog is not None:
        # Before the server: its process id may be another's as soon as we have waited for it.
        os.killpg(watchdog.pid, signal.SIGKILL)
        watchdog.communicate()
    if process is None:
        return
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port that nobody had a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_port_free(port: int) -> bool:
    """Whether a server could have the port."""
    with socket.socket() as probe:
        # As servers bind: a port in TIME_WAIT after a restart is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
