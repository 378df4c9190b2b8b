"""Free ports, and server processes that never outlive this process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess

HOST = "127.0.0.1"


def start_watchdog(pid: int) -> subprocess.Popen[bytes]:
    """Start a shell that ends process `pid` when this process ends, in whatever way, and so closes the shell's input.

    PR_SET_PDEATHSIG needs no process, but fires when the *thread* that started the server ends.
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
    """Stop a server and its watchdog, by force after `seconds`. Does nothing when both have ended."""
    if watchdog is not None:
        # Before the server, whose process id may be reused as soon as its end is known.
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
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_port_free(port: int) -> bool:
    """Return whether a server can bind the port."""
    with socket.socket() as probe:
        # As servers do: a port in TIME_WAIT after a restart is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
