"""Who may run: the lease as seen by two runs, by processes that are gone, and by those that only seem to be."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge import config
from bridge.definition import Definition
from bridge.errors import BridgeError, ConcurrentRunError
from bridge.pipelines import holder, lease
from bridge.pipelines.holder import Holder, myself
from bridge.pipelines.lease import held

_EVERY = 0.2
_FILE = """\
version: 1
name: orders
topic:
  ddl: |
    CREATE TABLE t (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9',
      'key.format' = 'json', 'value.format' = 'json')
delta: {path: table}
run: {checkpoint: checkpoint}
"""


@dataclass
class Desk:
    """A pipeline, and its lease file in our hands."""

    spark: SparkSession
    definition: Definition
    file: Path

    def other(self, **told: Any) -> Holder:
        """Write a lease of somebody else; by default of this very process, which lives."""
        mine = myself("orders", "ingest", "other-run", since="2026-01-01 00:00:00 UTC", every=_EVERY)
        found = replace(mine, **told)
        self.put(found.to_json())
        return found

    def put(self, text: str) -> None:
        self.file.parent.mkdir(exist_ok=True)
        scratch = self.file.with_suffix(".new")
        scratch.write_text(text)
        scratch.rename(self.file)
        self.file.with_name(f".{self.file.name}.crc").unlink(missing_ok=True)  # Hadoop's, of what was there

    def there(self) -> Holder:
        deadline = time.monotonic() + 20
        while (found := Holder.from_json(self.file.read_text())) is None:  # half of a write
            assert time.monotonic() < deadline
        return found

    def taken(self) -> tuple[float, str | None]:
        """Take and give back: how long it took, and the warning."""
        began = time.monotonic()
        with held(self.spark, self.definition, "ingest") as ours:
            assert self.there().run != "other-run"
            return time.monotonic() - began, ours.warning


both = pytest.mark.parametrize("desk", ["local disk", "another file system"], indirect=True)


@pytest.fixture
def desk(
    request: pytest.FixtureRequest, spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> Desk:
    monkeypatch.setattr(lease, "_EVERY_SECONDS", _EVERY)
    monkeypatch.setattr(lease, "_EVERY_SECONDS_REMOTE", _EVERY)
    monkeypatch.setattr(lease, "_LOOK_SECONDS", 0.02)
    (lake / "p.yaml").write_text(_FILE)
    definition = config.load(lake / "p.yaml")
    if getattr(request, "param", "local disk") != "local disk":
        spark.conf.set("fs.viewfs.impl.disable.cache", "true")
        spark.conf.set("fs.viewfs.mounttable.default.link./lake", lake.as_uri())
        run = replace(definition.run, checkpoint="viewfs:///lake/checkpoint/")
        definition = replace(definition, run=run)
    return Desk(spark, definition, lake / "checkpoint" / "ingest.lease.json")


@pytest.fixture(scope="module")
def dead() -> Iterator[int]:
    """The number of a process that is gone, and that nobody has waited for yet."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    yield process.pid
    process.wait()


@both
def test_it_names_this_run_and_is_given_back(desk: Desk) -> None:
    with held(desk.spark, desk.definition, "ingest", verb="replay") as ours:
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
    with pytest.raises(RuntimeError, match="mine"), held(desk.spark, desk.definition, "ingest"):
        raise RuntimeError("mine")
    assert desk.there().released


def test_two_sides_of_a_pipeline_run_at_once(desk: Desk) -> None:
    with held(desk.spark, desk.definition, "ingest"), held(desk.spark, desk.definition, "publish") as ours:
        assert ours.warning is None


@both
def test_the_second_refuses_and_names_the_first(desk: Desk) -> None:
    with (
        held(desk.spark, desk.definition, "ingest", verb="resync") as first,
        pytest.raises(ConcurrentRunError) as refused,
        held(desk.spark, desk.definition, "ingest"),
    ):
        pass
    said = str(refused.value)
    assert f"`resync` of 'orders' in process {os.getpid()} on {socket.gethostname()}, since 20" in said
    assert "run.checkpoint: " in said and "Wait for its end or stop it" in said
    assert not first.lost


@pytest.mark.parametrize("started", ["as it was", "later"])
def test_a_process_that_is_gone_costs_no_wait(desk: Desk, dead: int, started: str) -> None:
    """Killed, and not even waited for by its parent; or its number is another process's by now."""
    desk.other(**({"pid": dead} if started == "as it was" else {"started": "1"}), every=60.0)
    seconds, warning = desk.taken()
    assert seconds < 10 and warning is None


@pytest.mark.parametrize(
    "elsewhere",
    [{"host": "other-host"}, {"machine": "another boot, or a container"}, {"machine": ""}],
    ids=lambda e: "-".join(e.values()) or "not told",
)
def test_a_process_that_we_cannot_see_is_watched(
    desk: Desk, dead: int, elsewhere: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine's process number says nothing here; nor does ours where there is no /proc."""
    if elsewhere == {"machine": ""}:
        monkeypatch.setattr(holder, "machine", lambda: "")
    other = desk.other(pid=dead, **elsewhere)
    seconds, warning = desk.taken()
    assert seconds >= 3 * _EVERY
    assert warning is not None and warning.startswith(f"taken over from {other}, which shows no life")


def test_a_process_that_is_too_busy_to_beat_keeps_its_lease_and_a_stopped_one_does_not(desk: Desk) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as busy:
        try:
            other = desk.other(pid=busy.pid, started=holder.start_of(busy.pid))
            with pytest.raises(
                ConcurrentRunError, match=f"another run is at work, {other}. Wait for its end"
            ):
                desk.taken()
            busy.send_signal(signal.SIGSTOP)
            seconds, warning = desk.taken()
            assert seconds >= 3 * _EVERY
            assert warning is not None and warning.startswith(f"taken over from {other}, which shows no life")
        finally:
            busy.kill()


def test_one_that_was_given_back_meanwhile_is_taken(desk: Desk) -> None:
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
        ("local disk", "given back"),
        ("local disk", "gone"),
        ("another file system", "given back"),
    ],
    indirect=["desk"],
)
def test_of_many_that_start_at_once_one_works(
    desk: Desk, dead: int, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "_EVERY_SECONDS",
        "_EVERY_SECONDS_REMOTE",
    ):  # a loaded machine must not stop the one for three beats
        monkeypatch.setattr(lease, name, 1.0)
    monkeypatch.setattr(lease, "_LOOK_SECONDS", 0.2)
    if before != "nobody":
        desk.other(**({"released": True} if before == "given back" else {"pid": dead}))
    looked, others, worked = threading.Barrier(_MANY), threading.Semaphore(0), list[str | None]()
    read, first = lease.Lease._read, threading.local()

    def read_first(of: lease.Lease) -> str | None:
        found = read(of)
        if not getattr(first, "over", False):
            first.over = True
            looked.wait(60)
        return found

    # All of them see the same before any of them goes on.
    monkeypatch.setattr(lease.Lease, "_read", read_first)

    def start() -> bool:
        try:
            with held(desk.spark, desk.definition, "ingest") as ours:
                worked.append(ours.warning)
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
    assert seconds >= 3 * _EVERY
    assert desk.taken()[0] < seconds
    assert not list(desk.file.parent.glob("*.claim"))


@both
def test_a_run_learns_that_another_has_taken_over(desk: Desk) -> None:
    with held(desk.spark, desk.definition, "ingest") as ours:
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


@pytest.mark.parametrize("text", ["", '{"format": 1, "pid"', "[]", '{"format": 2}'])
def test_a_file_that_says_nothing_is_watched_too(desk: Desk, text: str) -> None:
    desk.put(text)
    seconds, warning = desk.taken()
    assert seconds >= 3 * _EVERY and warning is not None and "a run that cannot be read" in warning


def test_a_lease_that_was_deleted_is_written_again(desk: Desk) -> None:
    with held(desk.spark, desk.definition, "ingest") as ours:
        desk.file.unlink()
        deadline = time.monotonic() + 20
        while not desk.file.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert not ours.lost


def test_a_beat_that_fails_is_no_end(desk: Desk) -> None:
    """A store that is away for a while, a disk that is full."""
    with held(desk.spark, desk.definition, "ingest") as ours:
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
    (lake / "p.yaml").write_text(_FILE)
    (lake / "checkpoint").write_text("a file")
    with pytest.raises(BridgeError, match=r"run\.checkpoint: \S+/ingest\.lease\.json cannot be written: "):
        held(spark, config.load(lake / "p.yaml"), "ingest").__enter__()


def test_the_file_holds_no_more_than_it_must(desk: Desk) -> None:
    desk.taken()
    assert set(json.loads(desk.file.read_text())) == {"format", *Holder.__dataclass_fields__}
