"""Rounds of many pipelines: order, failures, sessions, the pause and the stop; runs are made up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.errors import KafkaError
from bridge.metrics import Summary
from bridge.pipelines.runtime.rounds import RoundsSummary, run_rounds
from tests.config.files import WHOLE, loaded


@dataclass
class Cluster:
    """The part of a Spark session that rounds use."""

    ended: bool = False
    cancelled: int = 0

    @property
    def sparkContext(self) -> Cluster:
        return self

    @property
    def defaultParallelism(self) -> int:
        if self.ended:
            raise RuntimeError("Cannot call methods on a stopped SparkContext.")
        return 2

    def cancelAllJobs(self) -> None:
        self.cancelled += 1


@dataclass
class Trial:
    """Rounds of made-up pipelines a, b, c…, and what they have run."""

    definitions: list[Definition]
    run: Callable[[str], Summary]
    cluster: Cluster = field(default_factory=Cluster)
    stop: threading.Event = field(default_factory=threading.Event)
    ran: list[str] = field(default_factory=list)
    sessions: list[object] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def rounds(self, **more: Any) -> RoundsSummary:
        def run(session: SparkSession, definition: Definition) -> Summary:
            assert session in self.sessions
            self.ran.append(definition.name)
            return self.run(definition.name)

        def session(spark: SparkSession) -> SparkSession:
            self.sessions.append(cast(SparkSession, object()))
            return cast(SparkSession, self.sessions[-1])

        return run_rounds(
            cast(SparkSession, self.cluster),
            self.definitions,
            run,
            stop=self.stop,
            failed=lambda definition, failure: self.failed.append((definition.name, str(failure))),
            sessions=session,
            **more,
        )


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str, Callable[[str], Summary]], Trial]:
    whole = loaded(tmp_path, WHOLE)
    return lambda names, run: Trial([replace(whole, name=name) for name in names], run)


def done(name: str, batches: int = 0) -> Summary:
    return Summary(name, "ingest", batches=batches, records_in=10 * batches)


Make = Callable[[str, Callable[[str], Summary]], Trial]


def test_one_round_runs_each_once_in_order_in_one_session(make: Make) -> None:
    trial = make("abc", lambda name: done(name, batches=2))
    total = trial.rounds()
    assert trial.ran == ["a", "b", "c"] and len(trial.sessions) == 1
    assert (total.rounds, total.batches, total.records_in, total.failed) == (1, 6, 60, {})


def test_a_failure_is_reported_and_keeps_no_other_from_running(make: Make) -> None:
    def run(name: str) -> Summary:
        if name == "b":
            raise KafkaError("no broker")
        return done(name)

    trial = make("abc", run)
    total = trial.rounds()
    assert trial.ran == ["a", "b", "c"]
    assert trial.failed == [("b", "no broker")] and list(total.failed) == ["b"]


def test_so_many_run_at_the_same_time_each_thread_in_its_session(make: Make) -> None:
    together = threading.Barrier(3, timeout=10)

    def run(name: str) -> Summary:
        together.wait()
        return done(name)

    trial = make("abcdef", run)
    trial.rounds(parallel=3)
    assert sorted(trial.ran) == list("abcdef") and len(trial.sessions) == 3


def test_rounds_go_on_until_the_stop_and_pause_only_where_nothing_was_new(make: Make) -> None:
    pauses: list[float | None] = []
    trial = make("ab", lambda name: done(name, batches=len(trial.ran) <= 4))

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            if len(pauses) == 2:
                self.set()
            return self.is_set()

    trial.stop = Stop()
    total = trial.rounds(every_seconds=7.0)
    assert pauses == [7.0, 7.0]
    assert total.rounds == 4 and trial.ran == ["a", "b"] * 4


def test_a_pipeline_that_works_again_is_no_failure_of_the_last_round(make: Make) -> None:
    def run(name: str) -> Summary:
        if len(trial.ran) == 1:
            raise KafkaError("not yet")
        if len(trial.ran) == 2:
            trial.stop.set()
        return done(name)

    trial = make("a", run)
    total = trial.rounds(every_seconds=0.0)
    assert trial.failed == [("a", "not yet")] and total.failed == {} and total.rounds == 2


def test_after_the_stop_no_run_begins(make: Make) -> None:
    def run(name: str) -> Summary:
        trial.stop.set()
        return done(name)

    trial = make("abc", run)
    trial.rounds()
    assert trial.ran == ["a"]


@pytest.mark.parametrize("ends", [True, False])
def test_the_end_of_spark_and_an_interrupt_end_the_rounds(make: Make, ends: bool) -> None:
    error: type[BaseException] = RuntimeError if ends else KeyboardInterrupt

    def run(name: str) -> Summary:
        trial.cluster.ended = ends
        raise error

    trial = make("abc", run)
    with pytest.raises(error):
        trial.rounds()
    assert trial.ran == ["a"] and trial.failed == [] and trial.cluster.cancelled == 1
