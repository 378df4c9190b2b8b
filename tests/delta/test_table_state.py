"""State in a Delta table: the contract that files keep, too; races; tables that are another one's or lost rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.backend import backend_of
from bridge.definition import DeltaTarget
from bridge.delta.file_state import FileState
from bridge.delta.publish_log import PublishLog
from bridge.delta.state_store import Medium, StateStore
from bridge.delta.table_state import TableState
from bridge.errors import ConcurrentRunError, TableError
from bridge.publish_progress import PublishProgress

Open = Callable[[], StateStore]


def in_table(spark: SparkSession, lake: Path, scope: str = "orders") -> TableState:
    return TableState(spark, DeltaTarget(f"{lake}/state"), scope)


@pytest.fixture(params=["files", "table"])
def opened(request: pytest.FixtureRequest, spark: SparkSession, lake: Path) -> Open:
    """Opens the same state, as another run does."""
    if request.param == "files":
        return lambda: FileState(spark, f"{lake}/state")
    return lambda: in_table(spark, lake)


@pytest.mark.versions
def test_texts_by_their_names(opened: Open) -> None:
    one, other = opened(), opened()
    assert one.read("a.json") is None and one.names("log") == []
    assert one.put_if_absent("a.json", "first") and not other.put_if_absent("a.json", "second")
    assert one.swap("a.json", "first", "it's größer")
    assert not other.swap("a.json", "first", "lost") and not one.swap("a.json", None, "lost")
    assert other.read("a.json") == "it's größer"
    other.write("a.json", "by the other")
    assert one.read("a.json") == "by the other"
    one.delete("a.json")
    assert other.read("a.json") is None and one.swap("a.json", None, "again")
    one.delete("a.json", "never.json")
    names = [f"log/{number:020}.json" for number in (7, 8, 9)]
    assert [one.put_if_absent(name, name) for name in names] == [True] * 3
    assert not other.put_if_absent(names[2], "second")
    assert other.names("log") == [name.removeprefix("log/") for name in names]
    assert other.read(names[1]) == names[1] and other.read("log/00000000000000000010.json") is None
    one.delete(*names[:2])
    assert other.names("log") == ["00000000000000000009.json"]


@pytest.mark.versions
def test_of_two_writers_at_once_one_wins(spark: SparkSession, lake: Path) -> None:
    race(spark, lake, rounds=2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_200_races_of_two_writers(spark: SparkSession, lake: Path) -> None:
    race(spark, lake, rounds=200)


def race(spark: SparkSession, lake: Path, *, rounds: int) -> None:
    """Two runs take the lease's text and record the same batch, each in a session of its own."""
    states = [in_table(backend_of(spark).child(), lake) for _ in range(2)]
    logs = [PublishLog(state, "p") for state in states]
    together = threading.Barrier(2)

    def take(number: int, batch: int, before: str | None) -> bool:
        together.wait(60)
        return states[number].swap("ingest.lease.json", before, f"run {number}, {batch}")

    def record(number: int, batch: int) -> bool:
        together.wait(60)
        try:
            logs[number].write(PublishProgress("p", f"by {number}", version=batch, batch=batch))
        except ConcurrentRunError:
            return False
        return True

    before = None
    with ThreadPoolExecutor(2) as pool:
        for batch in range(rounds):
            took = [pool.submit(take, number, batch, before) for number in range(2)]
            won = [run.result(120) for run in took]
            assert sorted(won) == [False, True], batch
            before = states[0].read("ingest.lease.json")
            assert before == f"run {won.index(True)}, {batch}"
            recorded = [pool.submit(record, number, batch) for number in range(2)]
            won = [run.result(120) for run in recorded]
            assert sorted(won) == [False, True], batch
            last = logs[0].last()
            assert last is not None and (last.batch, last.table_id) == (batch, f"by {won.index(True)}")


def test_rows_that_no_longer_count_are_deleted(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.delta.table_state.MOST_ROWS", 2)
    state = in_table(spark, lake)
    for number in range(4):
        state.write("a.json", f"text {number}")
    rows = spark.read.format("delta").load(f"{lake}/state")
    assert rows.count() <= 2 and in_table(spark, lake).read("a.json") == "text 3"
    monkeypatch.setattr("bridge.delta.publish_log.KEPT", 1)
    monkeypatch.setattr("bridge.delta.publish_log.MORE_IN_A_TABLE", 1)
    log = PublishLog(state, "p")
    for batch in range(4):
        log.write(PublishProgress("p", "id", version=batch, batch=batch))
    assert len(state.names("publish")) <= 2 and log.last() == PublishProgress("p", "id", version=3, batch=3)


@pytest.fixture
def other_session(spark: SparkSession) -> Iterator[SparkSession]:
    """One with the settings that a MERGE of a batch has."""
    values = {"spark.databricks.delta.write.txnAppId": "a", "spark.databricks.delta.write.txnVersion": "9"}
    for key, value in values.items():
        spark.conf.set(key, value)
    yield spark
    for key in values:
        spark.conf.unset(key)


def test_the_settings_of_a_batch_do_not_count(other_session: SparkSession, lake: Path) -> None:
    state = in_table(other_session, lake)
    assert state.put_if_absent("a.json", "1") and state.swap("a.json", "1", "2")
    assert other_session.conf.get("spark.databricks.delta.write.txnVersion") == "9"


def test_a_table_by_its_name(spark: SparkSession, lake: Path) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS ops")
    try:
        state = TableState(spark, DeltaTarget(table="ops.bridge_state"), "orders")
        assert state.put_if_absent("a.json", "1") and not state.put_if_absent("a.json", "2")
        assert state.medium is Medium.TABLE and state.place("a.json") == "ops.bridge_state (orders/a.json)"
        assert TableState(spark, DeltaTarget(table="ops.bridge_state"), "other").read("a.json") is None
    finally:
        spark.sql("DROP SCHEMA ops CASCADE")


def test_rows_that_were_deleted_by_hand_are_named(spark: SparkSession, lake: Path) -> None:
    in_table(spark, lake).write("a.json", "1")
    spark.sql(f"DELETE FROM delta.`{lake}/state`")
    with pytest.raises(TableError, match=r"run\.state: .*/state has lost rows of 'orders/a\.json'"):
        in_table(spark, lake).write("a.json", "2")


def test_another_table_is_refused(spark: SparkSession, lake: Path) -> None:
    spark.range(1).write.format("delta").save(f"{lake}/state")
    with pytest.raises(TableError, match=r"run\.state: .* is no table of states, as it has no column"):
        in_table(spark, lake).read("a.json")
