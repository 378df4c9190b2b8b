"""Lineage of a run as events of OpenLineage, in a file or for a collector (docs/lineage.md).

A thread makes and sends them, so that batches do not wait. An event has the sums since the run began: one that does not
arrive is made up for by the next one, and none has to be kept.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

from bridge.errors import DefinitionError, QualityError
from bridge.metrics.datasets import Flow
from bridge.metrics.events import append
from bridge.metrics.observed_flow import ObservedFlow
from bridge.metrics.reports import BatchReport, Listener, RunName
from bridge.metrics.target_urls import (
    NextWarning,
    check_http_url,
    host_of,
    text_without_url,
    text_without_values,
)
from bridge.secret import Secret

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent

EVERY_SECONDS = 30.0
"""The time between two events of a run that goes on."""
TIMEOUT_SECONDS = 5.0
"""The longest time that a collector may take."""
_SILENT_SECONDS = 60.0
"""For how long a collector that took longer gets no events of this process."""


def check_lineage(text: str) -> str:
    """Returns a file or the URL of a collector. Raises ValueError for other URLs, which it does not repeat."""
    if "://" not in text:
        return text
    legal = "a file, and the URL of a collector that begins with https:// or http://"
    check_http_url(text, legal, has_query=True)
    if "?" in text or "#" in text:
        raise ValueError(
            "not legal: a collector gets no query; give its key in the environment, as OPENLINEAGE_API_KEY"
        )
    return text


def check_installed() -> None:
    """Raise DefinitionError with the command that installs it where openlineage-python is missing."""
    if find_spec("openlineage") is None or find_spec("openlineage.client") is None:
        raise DefinitionError("run.lineage needs openlineage-python: pip install 'changelog-bridge[lineage]'")


@contextmanager
def tracked(
    target: str | Secret | None,
    listener: Listener,
    run: RunName,
    flow: Callable[[], Flow],
    stop: threading.Event | None = None,
) -> Iterator[Listener]:
    """Around a run: yields a listener that counts each report, then calls `listener`. `flow` returns what the run reads
    and writes; it ends as aborted if `stop` is set then.

    Raises DefinitionError where openlineage-python is missing.
    """
    if target is None:
        yield listener
        return
    check_installed()
    lineage = _Lineage(target, run, flow)
    try:
        yield lineage.listen(listener)
    except (KeyboardInterrupt, SystemExit):
        lineage.close("ABORT")
        raise
    except BaseException as error:
        lineage.close("FAIL", error)
        raise
    else:
        lineage.close("ABORT" if stop is not None and stop.is_set() else "COMPLETE")


class _Lineage:
    """The events of one run, of which the first is sent when it is made."""

    _silent_until: ClassVar[dict[str, float]] = {}
    """time.monotonic() by target. Shared by threads, each of which sets one value."""

    def __init__(self, target: str | Secret, run: RunName, flow: Callable[[], Flow]) -> None:
        self._target = target.reveal() if isinstance(target, Secret) else target
        self._warning = NextWarning()
        self._run_id = ""
        self._observed = ObservedFlow(run, self._made(flow), datetime.now(timezone.utc))
        self._kind, self._ended = "START", threading.Event()
        self._has_changed = False
        # Shared by threads: what is observed, which has a lock, and values that are set in one assignment.
        self._thread = threading.Thread(target=self._send_all, daemon=True, name="bridge-lineage")
        self._thread.start()

    def listen(self, listener: Listener) -> Listener:
        """Returns a listener that counts each report, then calls `listener`; a failure is a warning of the report."""

        def heard(report: BatchReport) -> None:
            self._observed.add(report)
            self._has_changed = True
            listener(self._warning.onto(report))

        return heard

    def close(self, kind: str, error: BaseException | None = None) -> None:
        """Ends the run with COMPLETE, FAIL or ABORT; waits until that is sent, no longer than the bound."""
        if isinstance(error, QualityError):
            self._observed.fail_gate()
        self._observed.error = None if error is None else text_without_values(error)
        self._kind = kind
        self._ended.set()
        self._thread.join(TIMEOUT_SECONDS)
        if self._thread.is_alive():
            self._warning.say(
                f"lineage does not reach {self._place()}: it takes longer than {TIMEOUT_SECONDS:g} s"
            )
        self._warning.close()

    def _made(self, flow: Callable[[], Flow]) -> Flow:
        try:
            return flow()
        except Exception as error:  # of Spark or a broker; the run itself will say what is wrong
            self._warning.say(f"lineage has no datasets: {text_without_values(error)}")
            return Flow()

    def _send_all(self) -> None:
        began = ObservedFlow(self._observed.run, self._observed.flow, self._observed.since)
        self._send("START", began, began.since)
        while not self._ended.wait(EVERY_SECONDS):
            if self._has_changed:
                self._has_changed = False
                self._send("RUNNING", self._observed)
        self._send(self._kind, self._observed)

    def _send(self, kind: str, observed: ObservedFlow, at: datetime | None = None) -> None:
        begun = time.monotonic()
        if begun < self._silent_until.get(self._target, begun):
            return
        try:
            from bridge.metrics.openlineage_events import new_run_id, run_event  # they take long to load

            self._run_id = self._run_id or new_run_id()
            self._emit(run_event(kind, observed, self._run_id, at or datetime.now(timezone.utc)))
        except Exception as error:  # whatever a library raises here is not the pipeline's
            self._warning.say(f"lineage does not reach {self._place()}: {text_without_url(error)}")
        if time.monotonic() - begun >= TIMEOUT_SECONDS:
            self._silent_until[self._target] = time.monotonic() + _SILENT_SECONDS

    def _emit(self, event: RunEvent) -> None:
        from openlineage.client.serde import Serde
        from openlineage.client.transport.http import HttpConfig, HttpTransport

        if "://" not in self._target:
            append(self._target, Serde.to_json(event) + "\n")
            return
        options = {"url": f"{self._target.rstrip('/')}/", "timeout": TIMEOUT_SECONDS, "retry": {"total": 0}}
        if endpoint := os.environ.get("OPENLINEAGE_ENDPOINT"):
            options["endpoint"] = endpoint
        if key := os.environ.get("OPENLINEAGE_API_KEY"):
            options["auth"] = {"type": "api_key", "apiKey": key}
        transport = HttpTransport(HttpConfig.from_dict(options))
        try:
            transport.emit(event)
        finally:
            transport.close()

    def _place(self) -> str:
        """The host of a collector, whose URL may hold a password, or the file."""
        return host_of(self._target) or self._target
