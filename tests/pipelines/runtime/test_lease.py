"""A lease names its run while that is at work, and is released or lost."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import config
from bridge.errors import BridgeError, ConcurrentRunError
from bridge.lease_owner import LeaseOwner
from bridge.pipelines.runtime.lease import acquire_lease
from bridge.small_files import TextFile
from tests.pipelines.leases import FILE, Desk, at_work


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
        write = TextFile.write
        failed: list[str] = []

        def full(file: TextFile, text: str) -> None:
            if len(failed) < 2:
                failed.append(text)
                raise OSError(28, "No space left on device")
            write(file, text)

        monkeypatch.setattr(TextFile, "write", full)
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
