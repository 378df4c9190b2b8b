"""Lets one run at a time own one side of a pipeline, a script or a job: a text with a heartbeat names this run.

It is in the state of the pipeline (`run.checkpoint` or `run.state`), that of a script or job in the folder of its
state. A second run ends at once and names the first. Of several that start at the same moment, one gets the lease (see
`StateStore.swap`). The correctness of table and topic does not depend on the lease: of two runs that commit
the same batch, Delta lets one through; a newer exactly-once publish fences the older one, and an at-least-once publish
repairs what the older one wrote (`foreign_writes`).
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from bridge.bridge_folders import is_scratch, lease_name
from bridge.definition import Definition
from bridge.delta.state_choice import state_of
from bridge.delta.state_store import Medium, StateStore
from bridge.errors import BridgeError, ConcurrentRunError
from bridge.lease_owner import LeaseOwner, current_process
from bridge.pipelines.runtime.storage_checks import check_storage_locations

_MISSED_HEARTBEATS = 3
_LONGEST_HEARTBEAT_SECONDS = 30.0


@dataclass(frozen=True)
class LeaseTiming:
    """Seconds between two heartbeats, and between two looks at the lease of another run."""

    heartbeat_seconds: float = 2.0
    remote_heartbeat_seconds: float = 10.0
    """On an object store, where a heartbeat is one or two requests, and each costs money."""
    poll_seconds: float = 0.2
    table_heartbeat_seconds: float = 60.0
    """In a table, where a heartbeat is two jobs of Spark, which wait for free cores beside those of a batch."""
    table_poll_seconds: float = 2.0

    def of(self, medium: Medium) -> tuple[float, float]:
        """The seconds between two heartbeats, and between two looks."""
        every = {
            Medium.DISK: self.heartbeat_seconds,
            Medium.STORE: self.remote_heartbeat_seconds,
            Medium.TABLE: self.table_heartbeat_seconds,
        }
        return every[medium], self.table_poll_seconds if medium is Medium.TABLE else self.poll_seconds


@contextmanager
def acquire_lease(
    spark: SparkSession,
    definition: Definition,
    side: str,
    *,
    verb: str | None = None,
    timing: LeaseTiming | None = None,
) -> Iterator[Lease]:
    """Own the lease of one side of a pipeline inside the block.

    `side` is `ingest` for every verb that writes the table, `publish` for every verb that writes the topic. `verb`
    names the run in messages where it differs from `side`.

    Of several runs that take the lease at the same moment one gets it; the others treat that one as running. A lease
    that was released, or whose process is known to be gone, is taken at once. Any other lease is watched for three
    heartbeats. If it beats, or if its process is on this machine and is not stopped, ConcurrentRunError is raised and
    names its owner. If it does not beat (its process is stopped, its machine is off), it is taken over, and `warning`
    says so.

    Raises BridgeError if the state cannot be written; before anything is written, DefinitionError if two locations of
    the pipeline overlap (`check_storage_locations`).

    Call `Lease.check` before each batch. The lease is not reentrant: do not nest two blocks of one side.
    """
    check_storage_locations(spark, definition)
    with acquire_lease_in(
        state_of(spark, definition), side, name=definition.name, verb=verb, timing=timing
    ) as lease:
        yield lease


@contextmanager
def acquire_lease_in(
    state: StateStore,
    side: str,
    *,
    name: str,
    verb: str | None = None,
    timing: LeaseTiming | None = None,
) -> Iterator[Lease]:
    """Own the lease `side` in a state, for the run `name`, as `acquire_lease` describes; nothing else is checked."""
    lease = Lease(state, side, name, verb or side, timing or LeaseTiming())
    lease.take()
    try:
        yield lease
    finally:
        lease.release()


class Lease:
    """The lease of one side of a pipeline. See `acquire_lease`."""

    warning: str | None = None
    """Names the previous owner if the lease was taken over from a run that may still exist."""
    died: str | None = None
    """The previous owner, if it has not released the lease: it was killed, crashed or stalled."""

    def __init__(self, state: StateStore, side: str, name: str, verb: str, timing: LeaseTiming) -> None:
        self._state, self._name = state, lease_name(side)
        self._place = state.place(self._name)
        every, self._poll_seconds = timing.of(state.medium)
        since = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
        self._owner = current_process(name, verb, uuid.uuid4().hex[:12], since=since, every=every)
        self._successor: LeaseOwner | None = None
        self._ended = threading.Event()
        # Shared by threads: the state, which any thread may use, and of which only this thread writes the lease between
        # `take` and `release`. No object of Arrow, delta-rs or librdkafka.
        self._heartbeat = threading.Thread(
            target=self._send_heartbeats, name=f"lease {self._place}", daemon=True
        )

    def take(self) -> None:
        """Wait until the lease is free as `acquire_lease` describes, take it, and start the heartbeat."""
        text, attempt = self._wait_until_free(self._read()), 0
        while not self._try_take(text, attempt):
            if self._is_replaced(text):
                text, attempt = self._wait_until_free(self._read()), 0
            else:  # the run that was about to take the lease has died
                attempt += 1
        before = LeaseOwner.from_json(text)
        self.died = str(before) if before is not None and not before.released else None
        if self.died or attempt or self._state.medium is Medium.DISK:
            self._delete_scratch_files()
        self._heartbeat.start()

    def _try_take(self, text: str | None, attempt: int) -> bool:
        """Replace `text` unless another run is about to do so."""
        try:
            return self._state.swap(self._name, text, self._owner.to_json(), attempt=attempt)
        except BridgeError as failed:
            raise self._named(failed) from failed
        except Exception as failed:
            raise self._named(self._unwritable(failed)) from failed

    def _delete_scratch_files(self) -> None:
        """Delete what runs left that were killed while they wrote the lease or its claim."""
        stem = self._name.removesuffix(".json")
        with suppress(Exception):
            self._state.delete(*(name for name in self._state.names("") if is_scratch(name, f"{stem}.")))

    def _unwritable(self, failed: Exception) -> BridgeError:
        first = (str(failed).splitlines() or [""])[0][:300]
        return BridgeError(f"{self._place} cannot be written: {type(failed).__name__}: {first}")

    def _named(self, failed: BridgeError) -> BridgeError:
        """The error with the option that names the state."""
        return BridgeError(f"{self._state.key}: {str(failed).removeprefix(f'{self._state.key}: ')}")

    def _is_replaced(self, text: str | None) -> bool:
        """Whether the text changes within three heartbeats."""
        deadline = time.monotonic() + _MISSED_HEARTBEATS * self._owner.every
        while self._read() == text:
            if time.monotonic() > deadline:
                return False
            time.sleep(self._poll_seconds)
        return True

    @property
    def owner(self) -> str:
        """The process that has the lease, as host/id."""
        return f"{self._owner.host}/{self._owner.pid}"

    @property
    def lost(self) -> bool:
        """Whether `check` would raise."""
        return self._successor is not None

    def check(self) -> None:
        """Raise ConcurrentRunError if the heartbeat has found another owner; reads nothing itself."""
        if self._successor is not None:
            raise ConcurrentRunError(
                f"another run has taken over: {self._successor}. This one missed "
                f"{_MISSED_HEARTBEATS} heartbeats of {self._owner.every:g} s (was it stopped?) and ends before its "
                "next batch. Let only one of them run"
            )

    def refresh(self) -> None:
        """Read the lease, then `check`. One that cannot be read changes nothing."""
        with suppress(Exception):
            self._still_owned()
        self.check()

    def release(self) -> None:
        """Stop the heartbeat and mark the lease as released.

        One that cannot be written stays as it is: the next run finds that the process is gone.
        """
        self._ended.set()
        # A heartbeat that is still being written would come after the release.
        self._heartbeat.join(max(self._owner.every, _LONGEST_HEARTBEAT_SECONDS))
        with suppress(Exception):
            if self._successor is None and self._still_owned():
                self._state.write(self._name, replace(self._owner, released=True).to_json())

    def _wait_until_free(self, text: str | None) -> str | None:
        """Return the text once the lease may be taken: `text` or a later one. Raises ConcurrentRunError."""
        self.warning = None
        owner = LeaseOwner.from_json(text)
        if text is None or (owner and (owner.released or owner.is_gone())):
            return text
        return self._watch(text, owner)

    def _watch(self, text: str, owner: LeaseOwner | None) -> str | None:
        every = owner.every if owner else self._owner.every
        deadline = time.monotonic() + _MISSED_HEARTBEATS * every
        while time.monotonic() < deadline:
            time.sleep(self._poll_seconds)
            if owner is not None and owner.is_gone():  # it has ended meanwhile
                return self._wait_until_free(self._read())
            current_text = self._read()
            if current_text == text:
                continue
            current_owner = LeaseOwner.from_json(current_text)
            if current_text is None or (current_owner is not None and current_owner.released):
                return current_text
            if current_owner is None:  # a write that is not complete
                continue
            if owner is None:  # the first text that can be parsed
                return self._wait_until_free(current_text)
            raise self._already_running(current_owner)
        # A process that is here and not stopped may be too busy to beat, or its disk may be.
        if owner is not None and owner.is_running():
            raise self._already_running(owner)
        self.warning = (
            f"taken over from {owner or 'a run that cannot be identified'}, which sends no heartbeats: if it is only "
            "stopped, it ends by itself when it continues"
        )
        return text

    def _already_running(self, owner: LeaseOwner) -> ConcurrentRunError:
        return ConcurrentRunError(
            f"{self._state.key}: {self._place}: another run is at work, {owner}. Wait for its end or stop it; a "
            "run whose process is gone is taken over at once"
        )

    def _send_heartbeats(self) -> None:
        while not self._ended.wait(self._owner.every):
            with suppress(Exception):  # a full disk, an unreachable store: the next heartbeat tries again
                if not self._still_owned():
                    return
                self._owner = replace(self._owner, beat=self._owner.beat + 1)
                self._state.write(self._name, self._owner.to_json())

    def _still_owned(self) -> bool:
        """Whether the lease names this run, or no run: one that was deleted is written again."""
        owner = LeaseOwner.from_json(self._state.read(self._name))
        if owner is None or owner.run == self._owner.run:
            return True
        self._successor = owner
        return False

    def _read(self) -> str | None:
        """The text; empty if it cannot be read. Such a lease is watched; writing it raises the error.

        A table that cannot be read is an error at once: it would be watched for minutes."""
        try:
            return self._state.read(self._name)
        except BridgeError as failed:
            if self._state.medium is Medium.TABLE:
                raise self._named(failed) from failed
        except Exception as failed:
            if self._state.medium is Medium.TABLE:
                raise self._named(self._unwritable(failed)) from failed
        return ""
