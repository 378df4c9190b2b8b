"""Controls a headless Chromium over its debugging pipe, without a driver, a port or further packages."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_PLACE = """import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execvp(sys.argv[3], sys.argv[3:])"""
_PATIENCE_SECONDS = 90.0


def executable() -> str | None:
    """Returns CHROMIUM, or a Chromium on the PATH, or None."""
    return os.environ.get("CHROMIUM") or next((found for n in _NAMES if (found := shutil.which(n))), None)


class Browser:
    """One page of one browser. `events` are all events since the start, in order."""

    def __init__(self, program: str, profile: Path) -> None:
        pipes = [os.pipe(), os.pipe()]
        (theirs_in, self._out), (self._in, theirs_out) = pipes
        # Chromium reads from 3 and writes to 4; these must not be in use here.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (theirs_in, theirs_out)]

        self._process = subprocess.Popen(
            [sys.executable, "-c", _PLACE, *map(str, high), program, *_FLAGS, f"--user-data-dir={profile}"],
            pass_fds=high,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (*high, theirs_in, theirs_out):
            os.close(fd)
        self._text, self._count = b"", 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for fd in (self._out, self._in):
            os.close(fd)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a command and waits for its response."""
        self._count += 1
        command = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._out, json.dumps(command).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._count:
                assert "error" not in message, (method, message["error"])
                answer: dict[str, Any] = message["result"]
                return answer
            self.events.append(message)

    def open(self, url: str) -> None:
        """Loads a page and waits for it."""
        self.events.clear()
        self.ask("Page.navigate", url=url)
        while not self.events_of("Page.loadEventFired"):
            self.events.append(self._message())

    def events_of(self, method: str) -> list[dict[str, Any]]:
        """Returns the parameters of all events of one method."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def value(self, script: str) -> Any:
        """Returns the value of a JavaScript expression."""
        return self.ask("Runtime.evaluate", expression=script, returnByValue=True)["result"]["value"]

    def show(self, width: int, scheme: str) -> None:
        """Sets the window's width in CSS pixels and the preferred colour scheme."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def _message(self) -> dict[str, Any]:
        until = time.monotonic() + _PATIENCE_SECONDS
        while b"\0" not in self._text:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            more = os.read(self._in, 1 << 16)
            assert more, "the browser has ended"
            self._text += more
        text, _, self._text = self._text.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found
