"""What the lease tells and holds while a run is at work, and how it is given back or lost."""

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
from bridge.pipelines.runtime.lease import acquire_lease
from bridge.pipelines.runtime.lease_owner import LeaseOwner
from tests.pipelines.leases import FILE, Desk, at_work


@pytest.fixture
def desk(
    request: pytest.FixtureRequest, spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> Desk:
    return at_work(spark, lake, monkeypatch, getattr(request, "param", "local disk"))


both = pytest.mark.parametrize("desk", ["local disk", "another file system"], indirect=True)


@both
def test_it_names_this_run_and_is_given_back(desk: Desk) -> None:
    with acquire_lease(desk.spark, desk.definition, "ingest", verb="replay") as ours:
        found = desk.there()
        assert (found.pid, found.host, found.verb) == (os.getpid(), socket.gethostname(), "replay")
        deadline = time.monotonic() + 20
        while desk.there().beat < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert not found.released and ours.warning is None and not ours.lost
    assert desk.there().released
    assert desk.taken()[1] is None


def test_a_run_that_fails_gives_it_back(desk: Desk) -> None:
    with pytest.raises(RuntimeError, match="mine"), acquire_lease(desk.spark, desk.definition, "ingest"):
        raise RuntimeError("mine")
    assert desk.there().released


def test_two_sides_of_a_pipeline_run_at_once(desk: Desk) -> None:
    with (
        acquire_lease(desk.spark, desk.definition, "ingest"),
        acquire_lease(desk.spark, desk.definition, "publish") as ours,
    ):
        assert ours.warning is None


@both
def test_the_second_refuses_and_names_the_first(desk: Desk) -> None:
    with (
        acquire_lease(desk.spark, desk.definition, "ingest", verb="resync") as first,
        pytest.raises(ConcurrentRunError) as refused,
        acquire_lease(desk.spark, desk.definition, "ingest"),
    ):
        pass
    said = str(refused.value)
    assert f"`resync` of 'orders' in process {os.getpid()} on {socket.gethostname()}, since 20" in said
    assert "run.checkpoint: " in said and "Wait for its end or stop it" in said
    assert not first.lost


@both
def test_a_run_learns_that_another_has_taken_over(desk: Desk) -> None:
    with acquire_lease(desk.spark, desk.definition, "ingest") as ours:
        ours.check()
        other = desk.other()
        deadline = time.monotonic() + 20
        while not ours.lost:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with pytest.raises(
            ConcurrentRunError, match=f"another run has taken over: `ingest` .* {other.pid} on "
        ):
            ours.check()
    assert desk.there() == other, "what is another's is left alone"


def test_a_lease_that_was_deleted_is_written_again(desk: Desk) -> None:
    with acquire_lease(desk.spark, desk.definition, "ingest") as ours:
        desk.file.unlink()
        deadline = time.monotonic() + 20
        while not desk.file.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert not ours.lost


def test_a_beat_that_fails_is_no_end(desk: Desk) -> None:
    """A store that is away for a while, a disk that is full."""
    with acquire_lease(desk.spark, desk.definition, "ingest") as ours:
        write = ours._file.write
        failed: list[str] = []

        def full(text: str) -> None:
            if len(failed) < 2:
                failed.append(text)
                raise OSError(28, "No space left on device")
            write(text)

        ours._file.write = full  # type: ignore[method-assign]
        deadline = time.monotonic() + 20
        while desk.there().beat < 4:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert len(failed) == 2 and not ours.lost


def test_a_checkpoint_that_cannot_be_written_is_named(spark: SparkSession, lake: Path) -> None:
    (lake / "p.yaml").write_text(FILE)
    (lake / "checkpoint").write_text("a file")
    with pytest.raises(BridgeError, match=r"run\.checkpoint: \S+/ingest\.lease\.json cannot be written: "):
        acquire_lease(spark, config.load(lake / "p.yaml"), "ingest").__enter__()


def test_the_file_holds_no_more_than_it_must(desk: Desk) -> None:
    desk.taken()
    assert set(json.loads(desk.file.read_text())) == {"format", *LeaseOwner.__dataclass_fields__}
