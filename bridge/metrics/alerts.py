"""Posts alerts to a webhook: causes and counts, no keys and no values.

Causes are a failed run or check, bad records, rows that fail the gate, lost records, and a topic that differs from its
table. A pipeline tells a cause once in ten minutes, also by processes that start again and again on this machine. A
thread sends it; the pipeline does not wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bridge.errors import BadRecordError, DifferenceError, QualityError
from bridge.metrics.reports import BatchReport, Listener, RunName
from bridge.metrics.target_urls import (
    NextWarning,
    check_http_url,
    host_of,
    split_login,
    text_without_url,
    text_without_values,
)
from bridge.secret import Secret

SCHEMA = "changelog-bridge/alert/1"
_AGAIN_SECONDS = 600.0
TIMEOUT_SECONDS = 5.0
"""The longest time that a webhook may take."""
RETRY_SECONDS = 1.0
"""How long after a failure it is asked once more."""
_LONGEST = 500
_COUNTED: Mapping[str, tuple[str, str]] = {
    "bad_records": ("bad-records", "records could not be applied"),
    "unexpected_rows": ("gate", "rows fail the gate"),
    "lost": ("lost-records", "records were not acknowledged by the broker"),
    "failed_expectations": ("check", "expectations failed"),
    "differing_keys": ("different", "keys differ between topic and table"),
}
"""Counts of a report, the cause and what is said of them."""
_OF_VERSIONS = ("check", "verify")
"""Verbs that look at versions and make no batches."""


def check_alert(text: str) -> str:
    """Return the URL of a webhook. Raises ValueError for what is none; it does not repeat it, as it may be a secret."""
    return check_http_url(text, "URLs that begin with https:// or http://", has_query=True)


class Alerts:
    """The alerts of one run, or of one check. Only the host of `url` is ever shown."""

    def __init__(self, url: Secret, run: RunName) -> None:
        self._url, self._run = url.reveal(), run
        self._warning = NextWarning()
        self._threads: list[threading.Thread] = []

    def listen(self, listener: Listener) -> Listener:
        """Return a listener that looks at each report, then calls `listener`; a failure is a warning of the report."""

        def heard(report: BatchReport) -> None:
            for name, (cause, text) in _COUNTED.items():
                if count := getattr(report, name):
                    self.send(cause, f"{_place(report)}: {count:,} {text}")
            listener(self._warning.onto(report))

        return heard

    def failed(self, error: BaseException) -> None:
        """Tell the error that ended the run, unless the user ended it."""
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            return
        causes: dict[type, str] = {
            QualityError: "gate",
            BadRecordError: "bad-records",
            DifferenceError: "different",
        }
        cause = causes.get(type(error), "failed")
        self.send(cause, f"it failed: {text_without_values(error)[:_LONGEST]}")

    def send(self, cause: str, text: str) -> None:
        """Tell a cause, unless it was told within ten minutes. Raises nothing."""
        data = json.dumps(body(self._url, self._run, cause, text)).encode()
        with ExitStack() as held:
            try:
                told = self._claimed(cause, held)
            except BlockingIOError:  # another run tells it
                return
            except OSError:  # better twice than never
                told = None
            if told is not None and _is_recent(told):
                return
            # Shared by threads: the warning, which is one assignment.
            thread = threading.Thread(
                target=self._post, args=(data, told, held.pop_all()), daemon=True, name="bridge-alert"
            )
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """Wait for what is being sent, no longer than its bound, and log what went wrong."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            self._warning.say(
                f"the alert did not reach {host_of(self._url)}: it takes longer than {TIMEOUT_SECONDS:g} s"
            )
        self._warning.close()

    def _claimed(self, cause: str, held: ExitStack) -> int:
        """Open the file that says when a cause was told, and keep others from telling it as long as it is held, which a
        process that is killed does not. Raises BlockingIOError where others hold it, OSError where there is none."""
        digest = hashlib.sha256("\0".join((self._url, *self._run, cause)).encode()).hexdigest()[:32]
        path = Path(tempfile.gettempdir()) / f"changelog-bridge-alert-{os.getuid()}-{digest}"
        told = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        held.callback(os.close, told)
        fcntl.flock(told, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return told

    def _post(self, data: bytes, told: int | None, held: ExitStack) -> None:
        with held:
            if reason := self._refusal(data):
                time.sleep(RETRY_SECONDS)
                reason = self._refusal(data)
            if reason:
                self._warning.say(f"the alert did not reach {host_of(self._url)}: {reason}")
            elif told is not None:
                with suppress(OSError):  # a full disk; it will be told again
                    os.pwrite(told, b"told\n", 0)

    def _refusal(self, data: bytes) -> str | None:
        """Post once. Return why it did not arrive."""
        from urllib.request import Request, urlopen  # most commands post nothing, and it takes long to load

        try:
            url, login = split_login(self._url)
            asked = Request(url, data, {"Content-Type": "application/json"}, method="POST")
            if login:
                basic = b64encode(":".join(login).encode()).decode()
                asked.add_unredirected_header("Authorization", f"Basic {basic}")
            with urlopen(asked, timeout=TIMEOUT_SECONDS) as answer:
                # What urllib asks after a redirection is a GET, without the alert.
                return None if answer.url == asked.full_url else "it redirects"
        except (
            Exception
        ) as error:  # a library may raise anything here, and print the URL if nobody catches it
            return text_without_url(error)


def _is_recent(told: int) -> bool:
    """Whether the file says that a cause was told, and was written within ten minutes: an empty one was only opened."""
    state = os.fstat(told)
    return state.st_size > 0 and time.time() - state.st_mtime < _AGAIN_SECONDS


def _place(report: BatchReport) -> str:
    return f"version {report.version}" if report.verb in _OF_VERSIONS else f"batch {report.batch}"


def body(url: str, run: RunName, cause: str, text: str) -> dict[str, Any]:
    """Return what is posted: for Slack and Teams, by the host of `url`, their messages, else all fields."""
    host = host_of(url)
    title = f"{run.verb} {run.pipeline}"
    if host == "hooks.slack.com":
        return {"text": f"*{title}*: {text}"}
    if host.endswith((".webhook.office.com", ".logic.azure.com", ".api.powerplatform.com")):
        parts = [
            {"type": "TextBlock", "text": title, "weight": "bolder"},
            {"type": "TextBlock", "text": text, "wrap": True},
        ]
        card = {"type": "AdaptiveCard", "version": "1.4", "body": parts}
        attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
        return {"type": "message", "attachments": [attachment]}
    at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"schema": SCHEMA, "at": at, "cause": cause, **run._asdict(), "text": text}
