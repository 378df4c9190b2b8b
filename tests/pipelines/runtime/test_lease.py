"""A lease names its run while that is at work, and is released or lost.

A lease that exists already: of a process that is gone, that is elsewhere, or that starts at the same time.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import config, lease_owner
from bridge.bridge_folders import claim_file, scratch_name
from bridge.delta.file_state import FileState
from bridge.errors import BridgeError, ConcurrentRunError
from bridge.lease_owner import LeaseOwner
from bridge.pipelines.runtime.lease import LeaseTiming, acquire_lease
from tests.pipelines.leases import EVERY, FILE, Desk, at_work


@pytest.fixture
def desk(request: pytest.FixtureRequest, spark: SparkSession, lake: Path) -> Desk:
    return at_work(spark, lake, getattr(request, "param", "local disk"))


both = pytest.mark.parametrize("desk", ["local disk", "another file system"], indirect=True)


@both
def test_it_names_this_run_and_is_released(desk: Desk) -> None:
    with desk.acquire(verb="replay") as lease:
        owner = desk.owner()
        assert (owner.pid, owner.host, owner.verb) == (os.getpid(), socket.gethostname(), "replay")
        deadline = time.monotonic() + 20
        while desk.owner().beat < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert not owner.released and lease.warning is None and not lease.lost
    assert desk.owner().released
    assert desk.taken()[1] is None


def test_a_run_that_fails_releases_it(desk: Desk) -> None:
    with pytest.raises(RuntimeError, match="mine"), desk.acquire():
        raise RuntimeError("mine")
    assert desk.owner().released


def test_two_sides_of_a_pipeline_run_at_once(desk: Desk) -> None:
    with (
        desk.acquire(),
        desk.acquire("publish") as lease,
    ):
        assert lease.warning is None


@both
def test_the_second_refuses_and_names_the_first(desk: Desk) -> None:
    with (
        desk.acquire(verb="resync") as first,
        pytest.raises(ConcurrentRunError) as refused,
        desk.acquire(),
    ):
        pass
    message = str(refused.value)
    assert f"`resync` of 'orders' in process {os.getpid()} on {socket.gethostname()}, since 20" in message
    assert "run.checkpoint: " in message and "Wait for its end or stop it" in message
    assert not first.lost


@both
def test_a_run_learns_that_another_has_taken_over(desk: Desk) -> None:
    with desk.acquire() as lease:
        lease.check()
        other = desk.other()
        deadline = time.monotonic() + 20
        while not lease.lost:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with pytest.raises(
            ConcurrentRunError, match=f"another run has taken over: `ingest` .* {other.pid} on "
        ):
            lease.check()
    assert desk.owner() == other, "the lease of another run stays as it is"


def test_a_lease_that_was_deleted_is_written_again(desk: Desk) -> None:
    with desk.acquire() as lease:
        desk.file.unlink()
        deadline = time.monotonic() + 20
        while not desk.file.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert not lease.lost


def test_a_heartbeat_that_fails_is_tried_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that cannot be reached for a while, a disk that is full."""
    with desk.acquire() as lease:
        write = FileState.write
        failed: list[str] = []

        def full(state: FileState, name: str, text: str) -> None:
            if len(failed) < 2:
                failed.append(text)
                raise OSError(28, "No space left on device")
            write(state, name, text)

        monkeypatch.setattr(FileState, "write", full)
        deadline = time.monotonic() + 20
        while desk.owner().beat < 4:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert len(failed) == 2 and not lease.lost


def test_a_checkpoint_that_cannot_be_written_is_named(spark: SparkSession, lake: Path) -> None:
    (lake / "p.yaml").write_text(FILE)
    (lake / "checkpoint").write_text("a file")
    wanted = (
        r"run\.checkpoint: \S+/checkpoint: this folder cannot be made or written \(\S+/checkpoint is a file\)"
    )
    with pytest.raises(BridgeError, match=wanted):
        acquire_lease(spark, config.load(lake / "p.yaml"), "ingest").__enter__()


def test_the_file_contains_the_fields_of_its_owner(desk: Desk) -> None:
    desk.taken()
    assert set(json.loads(desk.file.read_text())) == {"format", *LeaseOwner.__dataclass_fields__}


@pytest.fixture(scope="module")
def dead() -> Iterator[int]:
    """The id of a process that has ended and is not reaped yet."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    yield process.pid
    process.wait()


@pytest.mark.parametrize("started", ["as it was", "later"])
def test_a_process_that_is_gone_costs_no_wait(desk: Desk, dead: int, started: str) -> None:
    """Killed and not reaped by its parent; or another process has its id now."""
    other = desk.other(**({"pid": dead} if started == "as it was" else {"started": "1"}), every=60.0)
    began = time.monotonic()
    with desk.acquire() as lease:
        assert time.monotonic() - began < 10 and lease.warning is None
        assert lease.died == str(other)
    with desk.acquire() as lease:
        assert lease.died is None


@pytest.mark.parametrize(
    "elsewhere",
    [{"host": "other-host"}, {"machine": "another boot, or a container"}, {"machine": ""}],
    ids=lambda e: "-".join(e.values()) or "unknown",
)
def test_a_process_that_we_cannot_see_is_watched(
    desk: Desk, dead: int, elsewhere: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process id of another machine means nothing here; neither does one of this machine without /proc."""
    if elsewhere == {"machine": ""}:
        monkeypatch.setattr(lease_owner, "machine_id", lambda: "")
    other = desk.other(pid=dead, **elsewhere)
    seconds, warning = desk.taken()
    assert seconds >= 3 * EVERY
    assert warning is not None and warning.startswith(f"taken over from {other}, which sends no heartbeats")


def test_a_process_that_is_too_busy_to_beat_keeps_its_lease_and_a_stopped_one_does_not(desk: Desk) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as busy:
        try:
            other = desk.other(pid=busy.pid, started=lease_owner.start_time(busy.pid))
            with pytest.raises(
                ConcurrentRunError, match=f"another run is at work, {other}. Wait for its end"
            ):
                desk.taken()
            busy.send_signal(signal.SIGSTOP)
            seconds, warning = desk.taken()
            assert seconds >= 3 * EVERY
            assert warning is not None and warning.startswith(
                f"taken over from {other}, which sends no heartbeats"
            )
        finally:
            busy.kill()


def test_one_that_was_released_meanwhile_is_taken(desk: Desk) -> None:
    other = desk.other(every=30.0)
    with subprocess.Popen(
        [sys.executable, "-c", _LATER, str(desk.file), replace(other, released=True).to_json()]
    ):
        seconds, warning = desk.taken()
    assert seconds < 30 and warning is None


_LATER = "import os, sys, time; time.sleep(0.5); n = sys.argv[1] + '.n'; open(n, 'w').write(sys.argv[2]); \
os.rename(n, sys.argv[1])"


@pytest.mark.parametrize(
    ("desk", "before"),
    [
        ("local disk", "nobody"),
        ("local disk", "released"),
        ("local disk", "gone"),
        ("another file system", "released"),
    ],
    indirect=["desk"],
)
def test_of_many_that_start_at_once_one_works(
    desk: Desk, dead: int, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a loaded machine the winner may miss a heartbeat, but not three of them.
    desk.timing = LeaseTiming(heartbeat_seconds=1.0, remote_heartbeat_seconds=1.0)
    if before != "nobody":
        desk.other(**({"released": True} if before == "released" else {"pid": dead}))
    looked, others, worked = threading.Barrier(_MANY), threading.Semaphore(0), list[str | None]()
    read, thread = FileState.read, threading.local()

    def read_first(state: FileState, name: str) -> str | None:
        text = read(state, name)
        if getattr(thread, "is_first", False):  # not in the threads of heartbeats
            thread.is_first = False
            looked.wait(60)
        return text

    # All of them read the same text before any of them continues.
    monkeypatch.setattr(FileState, "read", read_first)

    def start() -> bool:
        thread.is_first = True
        try:
            with desk.acquire() as lease:
                worked.append(lease.warning)
                for _ in range(_MANY - 1):
                    assert others.acquire(timeout=60)
            return True
        except ConcurrentRunError:
            others.release()
            return False

    with ThreadPoolExecutor(_MANY) as pool:
        runs = [pool.submit(start) for _ in range(_MANY)]
        assert [run.result() for run in runs].count(True) == 1
    assert worked == [None]
    assert not [name for name in os.listdir(desk.file.parent) if name.endswith(".claim")]


_MANY = 60


def test_one_that_died_while_it_took_the_lease_is_waited_for_in_vain(desk: Desk) -> None:
    found = desk.other(released=True).to_json()
    name = hashlib.sha256(found.encode()).hexdigest()[:16]
    desk.file.with_name(f"ingest.lease.{name}.0.claim").write_text("{}")
    seconds, _ = desk.taken()
    assert seconds >= 3 * EVERY
    assert desk.taken()[0] < seconds
    assert not list(desk.file.parent.glob("*.claim"))


def test_what_runs_left_that_were_killed_while_they_took_it_is_deleted(desk: Desk) -> None:
    with desk.acquire():
        pass
    folder, claim = desk.file.parent, claim_file("ingest.lease.json", "a1", 0)
    *own, other = (folder / scratch_name(name) for name in (claim, "ingest.lease.json", "publish.lease.json"))
    for left in (*own, other):
        left.write_text("{")
    with desk.acquire():
        assert list(folder.glob(".*.tmp")) == [other]


@pytest.mark.slow
def test_one_at_a_time_for_a_minute(desk: Desk) -> None:
    """Threads take and release it all the time; each has a heartbeat, which writes the file that the others read."""
    desk.timing, until = LeaseTiming(1.0, 1.0, 0.005), time.monotonic() + 60
    held, draw, refused = threading.Semaphore(1), random.Random(1), list[str]()

    def work(_: int) -> int:
        done = 0
        while time.monotonic() < until:
            try:
                with desk.acquire() as lease:
                    assert held.acquire(blocking=False), "two of them own it"
                    time.sleep(draw.choice((0.0, 0.05, 1.2)))
                    held.release()
                    lease.check()
                    done += lease.warning is None
            except ConcurrentRunError as error:
                refused.append(str(error))
        return done

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) > 20
    assert all("another run is at work" in message for message in refused)


@pytest.mark.parametrize("text", ["", '{"format": 1, "pid"', "[]", '{"format": 2}'])
def test_a_file_that_says_nothing_is_watched_too(desk: Desk, text: str) -> None:
    desk.put(text)
    seconds, warning = desk.taken()
    assert seconds >= 3 * EVERY and warning is not None and "a run that cannot be identified" in warning
