"""One run at a time: a file in `run.checkpoint` says who is at work, and beats while it is.

So a run started twice ends at once and says why; of any number that start in the same instant one begins, where the
storage can create a file that is not there (see write_once). What keeps table and topic right does not rest on it: of
two runs that commit the same batch Delta lets one through; a younger exactly-once publish fences the older one, and an
at-least-once publish mends what the older one wrote (`overlap`).
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from bridge import storage
from bridge.bridge_folders import claim_file, lease_file
from bridge.definition import Definition
from bridge.delta.write_once import write_once
from bridge.errors import BridgeError, ConcurrentRunError
from bridge.pipelines.runtime.lease_owner import LeaseOwner, current_process
from bridge.pipelines.runtime.storage_checks import check_storage_locations
from bridge.storage import TextFile

__all__ = ["Lease", "acquire_lease"]

_HEARTBEAT_SECONDS = 2.0
_HEARTBEAT_SECONDS_REMOTE = 10.0
"""A beat in an object store is a request or two, and each costs money."""

_MISSED_HEARTBEATS = 3
_POLL_SECONDS = 0.2


@contextmanager
def acquire_lease(
    spark: SparkSession, definition: Definition, side: str, *, verb: str | None = None
) -> Iterator[Lease]:
    """Hold the lease of one side of a pipeline, `ingest` (whatever writes its table) or `publish` (whatever writes its
    topic), inside the block. `verb` is what people call the run where that is not `side`.

    Of several that take it in the same instant one gets it, the others see that one at work. A lease that was given
    back, or whose process is known to be gone, is taken at once. Any other is watched for three
    beats: one that beats, or whose process is here and not stopped, raises ConcurrentRunError naming who holds it; one
    that does not (its process is stopped, its machine is off) is taken over, and `warning` says so. BridgeError when
    the file cannot be written.

    Before anything is written, DefinitionError when two places of the pipeline lie in one another (`places`).

    Call `check` of the lease before each batch. It is not held twice: no block inside a block of the same side.
    """
    check_storage_locations(spark, definition)
    lease = Lease(spark, definition, side, verb or side)
    lease.take()
    try:
        yield lease
    finally:
        lease.release()


class Lease:
    """See `held`."""

    warning: str | None = None
    """Whose lease this was, when it was taken from somebody who may not be gone."""

    def __init__(self, spark: SparkSession, definition: Definition, side: str, verb: str) -> None:
        self._spark = spark
        self._checkpoint, self._side = definition.run.checkpoint, side
        self._file = TextFile(spark, lease_file(self._checkpoint, side))
        every = _HEARTBEAT_SECONDS if self._file.local else _HEARTBEAT_SECONDS_REMOTE
        since = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
        self._owner = current_process(definition.name, verb, uuid.uuid4().hex[:12], since=since, every=every)
        self._successor: LeaseOwner | None = None
        self._ended = threading.Event()
        self._heartbeat = threading.Thread(
            target=self._send_heartbeats, name=f"lease {self._file.name}", daemon=True
        )

    def take(self) -> None:
        """Wait for it as `held` says, then begin to beat."""
        found, tries = self._wait_until_free(self._read()), 0
        while not self._try_take(found, tries):
            if self._is_replaced(found):
                found, tries = self._wait_until_free(self._read()), 0
            else:  # whoever was about to take it has died
                tries += 1
        self._heartbeat.start()

    def _try_take(self, found: str | None, tries: int) -> bool:
        """Put ours in the place of `found`, if nobody else is about to: a file named after that text is created first,
        which only one can."""
        name = hashlib.sha256((found or "").encode()).hexdigest()[:16]
        claim = claim_file(self._checkpoint, self._side, name, tries)
        try:
            if not write_once(self._spark, claim, self._owner.to_json()):
                return False
            # Who was slow to create it may have been given the name anew, after another had taken the lease.
            ours = self._read() == found
            if ours:
                self._file.write(self._owner.to_json())
        except Exception as failed:
            first = (str(failed).splitlines() or [""])[0][:300]
            raise BridgeError(
                f"run.checkpoint: {self._file.name} cannot be written: {type(failed).__name__}: {first}"
            ) from failed
        for number in range(tries + 1):
            with suppress(Exception):
                storage.delete_file(self._spark, claim_file(self._checkpoint, self._side, name, number))
        return ours

    def _is_replaced(self, found: str | None) -> bool:
        """Whether the file says something else within three beats."""
        deadline = time.monotonic() + _MISSED_HEARTBEATS * self._owner.every
        while self._read() == found:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    @property
    def lost(self) -> bool:
        """Whether `check` would raise."""
        return self._successor is not None

    def check(self) -> None:
        """Raise ConcurrentRunError when somebody has taken the lease from us; looks at no file."""
        if self._successor is not None:
            raise ConcurrentRunError(
                f"another run has taken over: {self._successor}. This one missed "
                f"{_MISSED_HEARTBEATS} heartbeats of {self._owner.every:g} s (was it stopped?) and ends before its "
                "next batch. Let only one of them run"
            )

    def refresh(self) -> None:
        """`check`, with a look at the file first. A file that cannot be read says nothing."""
        with suppress(Exception):
            self._still_owned()
        self.check()

    def release(self) -> None:
        """Stop beating and say so in the file. A file that cannot be written is left: the process will be gone."""
        self._ended.set()
        self._heartbeat.join(self._owner.every)
        with suppress(Exception):
            if self._successor is None and self._still_owned():
                self._file.write(replace(self._owner, released=True).to_json())

    def _wait_until_free(self, found: str | None) -> str | None:
        """The file's text when it may be taken, which is `found` or a later one. Raises ConcurrentRunError."""
        self.warning = None
        other = LeaseOwner.from_json(found)
        if found is None or (other and (other.released or other.is_gone())):
            return found
        return self._watch(found, other)

    def _watch(self, found: str, other: LeaseOwner | None) -> str | None:
        every = other.every if other else self._owner.every
        deadline = time.monotonic() + _MISSED_HEARTBEATS * every
        while time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            if other is not None and other.is_gone():  # it was about to end when we came
                return self._wait_until_free(self._read())
            now = self._read()
            if now == found:
                continue
            there = LeaseOwner.from_json(now)
            if now is None or (there is not None and there.released):
                return now
            if there is None:  # half of a write
                continue
            if other is None:  # read whole for the first time
                return self._wait_until_free(now)
            raise self._already_running(there)
        if (
            other is not None and other.is_running()
        ):  # too busy to beat, or its disk is: it is at work all the same
            raise self._already_running(other)
        self.warning = (
            f"taken over from {other or 'a run that cannot be read'}, which shows no life: if it is only stopped, it "
            "will end by itself when it goes on"
        )
        return found

    def _already_running(self, other: LeaseOwner) -> ConcurrentRunError:
        return ConcurrentRunError(
            f"run.checkpoint: {self._file.name}: another run is at work, {other}. Wait for its end or stop it; a "
            "run whose process is gone is taken over at once"
        )

    def _send_heartbeats(self) -> None:
        while not self._ended.wait(self._owner.every):
            with suppress(Exception):  # a full disk, a store that is away: the next beat tries again
                if not self._still_owned():
                    return
                self._owner = replace(self._owner, beat=self._owner.beat + 1)
                self._file.write(self._owner.to_json())

    def _still_owned(self) -> bool:
        """Whether the file is still ours, or nobody's: one that was deleted is written anew."""
        found = self._file.read()
        other = LeaseOwner.from_json(found)
        if other is None or other.run == self._owner.run:
            return True
        self._successor = other
        return False

    def _read(self) -> str | None:
        """The file's text, empty where it cannot be read: that is watched, and told when it cannot be written."""
        try:
            return self._file.read()
        except Exception:
            return ""
