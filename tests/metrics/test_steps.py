"""Steps have the name of what they are in each batch, their times, and the run that they are of."""

from __future__ import annotations

import threading
import time

import pytest

from bridge.metrics import RunName
from bridge.metrics.steps import now_at, step, taken, watched

RUN = RunName("orders", "ingest", "t")


def test_the_steps_of_a_batch_are_taken_once() -> None:
    with watched(RUN, 0):
        for name in ("read", "merge"):
            with step(name, f"{name}ing batch 1"):
                time.sleep(0.01)
        first, second = taken()
        assert (first.name, second.name) == ("read", "merge")
        assert first.seconds >= 0.01 and first.began_ms <= second.began_ms
        assert taken() == ()


def test_the_step_that_runs_now_is_of_its_pipeline_and_verb() -> None:
    with watched(RUN, 0), step("merge", "merging batch 1"):
        time.sleep(0.01)
        name, seconds = now_at("orders", "ingest") or ("", 0.0)
        assert name == "merge" and seconds >= 0.01
        assert now_at("orders", "publish") is None
        with watched(RunName("other", "ingest"), 0):
            assert now_at("other", "ingest") is None
    assert now_at("orders", "ingest") is None


def test_a_step_that_fails_has_ended() -> None:
    with watched(RUN, 0):
        with pytest.raises(ValueError, match="bad"), step("merge", "merging batch 1"):
            raise ValueError("bad")
        assert now_at("orders", "ingest") is None and [s.name for s in taken()] == ["merge"]


def test_steps_are_those_of_their_thread_and_of_no_other_run() -> None:
    found: list[int] = []

    def other() -> None:
        with watched(RUN, 0):
            found.append(len(taken()))

    with watched(RUN, 0):
        with step("read", "reading"):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with watched(RunName("nested", "publish"), 0), step("send", "sending"):
            pass
        assert [s.name for s in taken()] == ["read"] and found == [0]


def test_without_a_run_nothing_is_kept() -> None:
    with step("read", "reading"):
        pass
    assert taken() == ()
