"""What the harness measures of a job: its time, its memory, its commits, and where its time went."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import jobs, steps
from benchmarks.cpu import sessions
from benchmarks.ground import engines
from benchmarks.jobs import Commit, JobError, Ran, commits, run, started

LOG = """
import json, pathlib, sys
held = bytearray(150_000_000)
held[::4096] = b"x" * len(held[::4096])
log = pathlib.Path(sys.argv[1]) / "_delta_log"
log.mkdir(parents=True, exist_ok=True)
for n, operation in enumerate(["CREATE TABLE", "MERGE", "OPTIMIZE", "WRITE", "WRITE"]):
    info = {"timestamp": 1000 * n, "operation": operation, "operationMetrics": {"a": "1", "b": "x"}}
    actions = [{"commitInfo": info}]
    if n == 3:
        info["engineInfo"] = "changelog-bridge/1.0.0"
        actions.append({"txn": {"appId": "bench", "version": 1}})
    (log / f"{n:020}.json").write_text("\\n".join(map(json.dumps, actions)))
import time; time.sleep(0.5)
print("events", [a for a in sys.argv if "spark.eventLog.dir" in a])
"""


def test_a_job_is_timed_watched_and_its_batches_are_found(tmp_path: Path) -> None:
    table = tmp_path / "table"
    ran = run([sys.executable, "-c", LOG, str(table)], folder=tmp_path / "run", table=table)
    assert [(c.version, c.at, c.operation, c.metrics) for c in ran.batches] == [
        (1, 1.0, "MERGE", {"a": 1.0}),
        (3, 3.0, "WRITE", {"a": 1.0}),
    ]
    assert ran.engines == "1 by driver, 1 by spark"
    assert 0.5 < ran.seconds < 60
    assert "spark.eventLog.dir=file:" in (tmp_path / "run" / "said.txt").read_text()
    if sys.platform == "linux":
        assert 150 < ran.peak_mb < 400
    assert commits(tmp_path / "nothing") == []


def test_a_second_job_over_the_same_table_has_its_own_batches_only(tmp_path: Path) -> None:
    table = tmp_path / "table"
    run([sys.executable, "-c", LOG, str(table)], folder=tmp_path / "run", table=table)
    assert run([sys.executable, "-c", "pass"], folder=tmp_path / "again", table=table).batches == []


def test_a_process_may_end_while_it_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    monkeypatch.setattr(jobs, "sessions", lambda leaders: [gone.pid])
    assert (
        run([sys.executable, "-c", "print('done')"], folder=tmp_path / "run", table=tmp_path).said == "done\n"
    )


def test_a_job_that_fails_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"ended with code 3:\nno such topic"):
        run(
            [sys.executable, "-c", "print('no such topic'); raise SystemExit(3)"],
            folder=tmp_path / "run",
            table=tmp_path / "table",
        )


def test_a_job_that_goes_on_is_stopped_and_nothing_of_its_session_is_left(tmp_path: Path) -> None:
    program = (
        "import os, subprocess, sys, time; "
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        "print(os.getpid(), flush=True); time.sleep(60)"
    )
    with started([sys.executable, "-c", program], folder=tmp_path / "run") as job:
        deadline = time.monotonic() + 30
        while not job.said and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(sessions([int(job.said)])) == 2
        done = job.stop()
    assert 0 < done.seconds < 60 and done.batches == []
    assert sessions([int(done.said)]) == []


def test_what_read_and_merged_the_batches_is_named() -> None:
    batches = [Commit(n, n, "MERGE", {}, "driver") for n in range(2)]
    line = "ingest bench  batch 1  version 2  10 records  by driver  read by consumer  0.1 s\n"
    assert Ran(9.0, batches, []).engines == "2 by driver"
    assert Ran(9.0, batches, [], said=line * 2).engines == "2 by driver, read 2 by consumer"
    assert Ran(9.0, [], [], said=line).engines == "read 1 by consumer"


def test_the_mean_of_warm_batches_is_of_the_same_batches_as_their_median() -> None:
    assert (ran(0, 9, 17, 18, 20, 24, 99).warm, ran(0, 9, 17, 18, 20, 24, 99).warm_mean) == (2.0, 7 / 3)


def ran(*moments: float, events: Path | None = None) -> Ran:
    return Ran(9.0, [Commit(n, at, "MERGE", {}, "") for n, at in enumerate(moments)], [], events)


def test_warm_batches_are_those_after_the_third_but_for_the_last() -> None:
    assert ran(0, 9, 17, 18, 20, 21, 21.1).warm == 1.0
    assert ran(0, 4, 6).warm == 3.0
    assert ran(5) and str(ran(5).warm) == "nan"


Stages = dict[int, tuple[list[int], float, float]]


def logged(file: Path, *events: dict[str, Any]) -> Path:
    file.write_text(
        "".join(
            json.dumps({"Event": f"SparkListener{e.pop('Event')}", **e}, separators=(",", ":")) + "\n"
            for e in events
        )
    )
    return file


def job(number: int, start: float, end: float, said: str, stages: Stages) -> list[Any]:
    done = [
        {
            "Event": "StageCompleted",
            "Stage Info": {
                "Stage ID": n,
                "Parent IDs": on,
                "Submission Time": a * 1000,
                "Completion Time": b * 1000,
            },
        }
        for n, (on, a, b) in stages.items()
    ]
    begun = {
        "Event": "JobStart",
        "Job ID": number,
        "Submission Time": start * 1000,
        "Stage IDs": list(stages),
        "Properties": {"spark.job.description": said},
    }
    return [
        begun,
        {"Event": "TaskEnd"},
        *done,
        {"Event": "JobEnd", "Job ID": number, "Completion Time": end * 1000},
    ]


def test_the_time_between_two_commits_is_shared_out_to_its_steps(tmp_path: Path) -> None:
    found = logged(
        tmp_path / "events",
        *job(1, 11, 14, "ingest bench\nbatch = 1", {1: ([], 11, 12), 2: ([1], 12, 14)}),
        *job(
            2,
            14,
            15,
            "batch = 1 - scanning files for matches: Compute snapshot",
            {3: ([], 14, 15)},
        ),
        *job(3, 15, 17, "batch = 1 - MERGE operation - scanning files for matches", {4: ([], 15, 17)}),
        *job(
            4,
            17,
            18.5,
            "Delta: batch = 1: Writing modified data - MERGE operation - Rewriting",
            {5: ([], 17, 18.5)},
        ),
        *job(5, 25, 26, "after the last commit", {6: ([], 25, 26)}),
    )
    shares = steps.profile(ran(10, 20, events=found))
    assert shares == {
        steps.READ: 1.0,
        steps.FOLD: 2.0,
        steps.STATE: 1.0,
        steps.FIND: 2.0,
        steps.WRITE: 1.5,
        steps.OUTSIDE: 0.0,
        steps.REST: 2.5,
    }


def test_a_merge_outside_of_spark_is_what_its_commit_says(tmp_path: Path) -> None:
    found = logged(tmp_path / "events", *job(1, 11, 14, "batch = 1", {1: ([], 11, 14)}))
    batches = [
        Commit(0, 10, "MERGE", {}, "driver"),
        Commit(1, 20, "MERGE", {"executionTimeMs": 4000.0}, "driver"),
    ]
    shares = steps.profile(Ran(9.0, batches, [], found))
    assert (shares[steps.READ], shares[steps.OUTSIDE], shares[steps.REST]) == (3.0, 4.0, 3.0)


def test_without_warm_batches_or_events_there_is_no_profile(tmp_path: Path) -> None:
    assert steps.profile(ran(1, events=logged(tmp_path / "events"))) == {}
    assert steps.profile(ran(1, 2)) == {}


def test_the_engines_are_those_that_a_pipeline_file_can_name() -> None:
    assert "auto" not in engines()
