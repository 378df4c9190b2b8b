"""The backend of a session beside its JVM."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.backend import Feature, backend_of
from bridge.errors import BridgeError

pytestmark = pytest.mark.versions


def doubled(parts: Iterable[int]) -> Iterator[tuple[int, int]]:
    yield from ((part * 2, os.getpid()) for part in parts)


def asleep(parts: Iterable[int]) -> Iterator[int]:
    time.sleep(60)
    return iter(parts)


def test_a_session_has_one_backend_and_a_child_its_own(spark: SparkSession) -> None:
    backend = backend_of(spark)
    child = backend.child()
    assert backend_of(spark) is backend is not backend_of(child)
    assert backend.application == backend_of(child).application
    assert (backend.parallelism, backend.master) == (2, "local[2]")
    assert [backend.can(feature) for feature in Feature] == [None] * len(Feature)


def test_tasks_run_in_other_processes_one_for_each_part(spark: SparkSession) -> None:
    found = backend_of(spark).run_tasks(doubled, [1, 2, 3])
    assert sorted(number for number, _ in found) == [2, 4, 6]
    assert os.getpid() not in {process for _, process in found}


def test_a_job_is_cancelled_by_its_tag(spark: SparkSession) -> None:
    backend, failed = backend_of(spark), threading.Event()

    def run() -> None:
        with pytest.raises(Exception, match="cancel"):
            backend.run_tasks(asleep, [1], tag="sleepers")
        failed.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not failed.is_set():
        backend.cancel("others")
        backend.cancel("sleepers")
        time.sleep(0.1)
    thread.join()
    assert not backend.has_ended()


def test_a_table_is_found_by_its_path(spark: SparkSession, tmp_path: os.PathLike[str]) -> None:
    backend, path = backend_of(spark), f"{tmp_path}/t"
    assert not backend.is_table(path)
    with pytest.raises(PySparkException, match="DELTA_MISSING_DELTA_TABLE"):
        backend.table(None, path)
    spark.range(2).write.format("delta").save(path)
    assert backend.is_table(path) and backend.table(None, path).toDF().count() == 2


def test_a_missing_delta_is_named_with_its_extra(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "delta.tables", None)
    with pytest.raises(
        BridgeError, match=r"^delta is not installed: pip install 'changelog-bridge\[spark\]'"
    ):
        backend_of(spark).is_table("/nowhere")
