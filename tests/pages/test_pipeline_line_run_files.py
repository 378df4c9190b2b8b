"""What runs leave behind is read from outside: leases, the publish log, events."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.bridge_folders import publish_log_file
from bridge.errors import BridgeError, DefinitionError, GapError
from bridge.lease_owner import LeaseOwner, current_process
from bridge.metrics import RunName, now_ms
from bridge.metrics.events import Events
from bridge.pages.pipeline_line import LeaseState, PublishLogReader, last_event, lease_state
from bridge.publish_progress import PublishProgress

PROGRESS = PublishProgress("orders", "the-table", version=7, batch=3)


def owner(**fields: object) -> LeaseOwner:
    here = current_process("orders", "ingest", "a-run", since="2026-01-01 00:00:00 UTC", every=2.0)
    return replace(here, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "silent_seconds", "wanted"),
    [
        (owner().to_json(), 1, LeaseState(True, True)),
        (owner().to_json(), 60, LeaseState(True, False)),
        (owner(host="elsewhere").to_json(), 5, LeaseState(True, True)),
        (owner(host="elsewhere").to_json(), 60, LeaseState(True, False)),
        (owner(pid=os.getppid(), started="0").to_json(), 1, LeaseState(True, False)),
        (owner(released=True).to_json(), 1, LeaseState(True, False)),
        ('{"format": 1, "pip', 1, LeaseState(True, False)),
    ],
    ids=["beats", "silent", "beats elsewhere", "silent elsewhere", "gone", "released", "half written"],
)
def test_a_lease(text: str, silent_seconds: int, wanted: LeaseState, tmp_path: Path) -> None:
    file = tmp_path / "ingest.lease.json"
    file.write_text(text)
    at = now_ms()
    os.utime(file, (at / 1000 - silent_seconds,) * 2)
    assert lease_state(str(tmp_path), "ingest", ["orders"], at) == wanted


def test_a_process_that_is_here_holds_its_lease_without_a_heartbeat(tmp_path: Path) -> None:
    """A machine may be too busy to beat."""
    from bridge.lease_owner import start_time

    parent = os.getppid()
    text = owner(pid=parent, started=start_time(parent)).to_json()
    (tmp_path / "publish.lease.json").write_text(text)
    assert lease_state(str(tmp_path), "publish", ["orders"], now_ms() + 3_600_000).is_held


def test_no_lease_and_one_of_another_pipeline(tmp_path: Path) -> None:
    assert lease_state(str(tmp_path / "nowhere"), "ingest", ["orders"], 0) == LeaseState(False, False)
    (tmp_path / "ingest.lease.json").write_text(owner().to_json())
    assert lease_state(str(tmp_path), "ingest", ["customers"], now_ms()) == LeaseState(False, False)


def write(folder: Path, progress: PublishProgress, at_ms: int) -> Path:
    file = folder / "publish" / publish_log_file(progress.batch)
    file.parent.mkdir(exist_ok=True)
    file.write_text(progress.to_json())
    os.utime(file, (at_ms / 1000,) * 2)
    return file


def test_a_publish_log_is_followed(tmp_path: Path) -> None:
    log = PublishLogReader(str(tmp_path), "orders")
    assert (log.last(), log.written_ms, log.version_at(0)) == (None, None, None)
    write(tmp_path, PROGRESS, 10_000)
    first = write(tmp_path, replace(PROGRESS, version=9, batch=4), 20_000)
    assert log.last() == replace(PROGRESS, version=9, batch=4)
    assert (log.written_ms, log.version_at(15_000), log.version_at(25_000)) == (
        20_000,
        (7, 15_000),
        (9, 25_000),
    )
    assert log.version_at(5_000) == (7, 10_000)
    first.unlink()
    half = write(tmp_path, replace(PROGRESS, version=12, batch=5), 30_000)
    whole = half.read_text()
    half.write_text(whole[:40])
    assert log.last() == PROGRESS
    half.write_text(whole)
    assert log.last() == replace(PROGRESS, version=12, batch=5)


def test_a_publish_log_that_is_not_its_own(tmp_path: Path) -> None:
    file = write(tmp_path, PROGRESS, 10_000)
    with pytest.raises(DefinitionError, match="belongs to pipeline 'orders', not 'customers'"):
        PublishLogReader(str(tmp_path), "customers").last()
    file.write_text("{}")
    with pytest.raises(GapError, match=r"none of the 1 files in .* can be read"):
        PublishLogReader(str(tmp_path), "orders").last()
    file.write_text(json.dumps({"bridge": {"format": 2}}))
    with pytest.raises(DefinitionError, match="was written by a newer bridge"):
        PublishLogReader(str(tmp_path), "orders").last()


def test_the_last_event_of_a_run(tmp_path: Path) -> None:
    file = str(tmp_path / "events.jsonl")
    runs = [("orders", "ingest")]
    assert last_event(file, runs) is None
    orders, customers = (Events(file, RunName(name, "ingest")) for name in ("orders", "customers"))
    orders.write("started")
    orders.failed(BridgeError("the topic is gone"))
    for _ in range(100):
        customers.write("batch")
    with open(file, "a") as opened:
        opened.write('{"pipeline": "orders", "ev')
    found = last_event(file, runs)
    assert found is not None
    assert (found["event"], found["message"]) == ("failed", "the topic is gone")
    assert last_event(file, [("orders", "publish")]) is None
