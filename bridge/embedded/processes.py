"""Free ports, and server processes that never outlive this process."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from bridge.errors import KafkaError

HOST = "127.0.0.1"
_S = TypeVar("_S", bound="Server")


class Server(ABC):
    """A server process on 127.0.0.1 that ends with this process, however that ends.

    Use it as a context manager, or call start() and stop().
    """

    title: str
    """What errors call it."""
    start_seconds: float
    stop_seconds: float
    pause = 0.1
    """How long is waited between two questions whether it is up."""
    errors = r"ERROR|FATAL|Error|Exception"
    """The lines of its log that tell why it has ended."""
    home: Path | None = None
    """The folder in which its command runs; None for that of this process."""

    def __init__(self, log: Path, port: int | None = None) -> None:
        self.log = log
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        """Raises KafkaError before the first start() of a server that chooses its port then."""
        if self._port is None:
            raise KafkaError(f"the {self.title} has no address before it is started")
        return self._port

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The server's process id, while it runs."""
        return self._process.pid if self._process and self.running else None

    @property
    @abstractmethod
    def address(self) -> str:
        """What clients are given; raises as `port` does."""

    @abstractmethod
    def prepare(self) -> Sequence[str | Path]:
        """Return the command that starts it, after what it needs is there. Raises KafkaError."""

    @abstractmethod
    def is_up(self) -> bool:
        """Whether the process answers; an OSError means that it does not."""

    def start(self: _S) -> _S:
        """Start the server unless it runs; returns when it answers.

        Raises KafkaError with the log file and its last error when it does not answer within `start_seconds`.
        """
        if self.running:
            return self
        self.log.parent.mkdir(parents=True, exist_ok=True)
        command = self.prepare()
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                command,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C in a terminal ends this process, which then stops the server
            )
        self._watchdog = start_watchdog(self._process.pid)
        try:
            self._wait_until_up(self._process)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the server, by force after `stop_seconds`. May be called again."""
        process, self._process = self._process, None
        watchdog, self._watchdog = self._watchdog, None
        stop_process(process, watchdog, self.stop_seconds)

    def __enter__(self: _S) -> _S:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _wait_until_up(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self.start_seconds
        while process.poll() is None:
            try:
                if self.is_up():
                    return
            except OSError:
                pass  # not up yet; the deadline decides
            if time.monotonic() > deadline:
                raise self.failed(f"did not answer within {self.start_seconds:.0f} s")
            time.sleep(self.pause)
        raise self.failed(f"ended with code {process.returncode} while starting")

    def failed(self, what: str) -> KafkaError:
        """Return the error with the last error in the log."""
        lines = [x for x in self.log.read_text(errors="replace").splitlines() if x.strip()]
        errors = [x for x in lines if re.search(self.errors, x) and not x.startswith("\t")]
        last = (errors or lines or ["(the log is empty)"])[-1].strip()
        return KafkaError(f"the {self.title} on {self.address} {what}: {last}\nits log is {self.log}")


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
