"""Another writer takes rows back while a run is at work: the run goes back, too, so the table is the topic's fold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bridge.metrics import BatchReport, Listener, Summary
from bridge.pipelines.ingest.run import ingest
from tests.pipelines.world import ONE, ROWS, Make, World, tombstone, upsert

RECORDS = [
    upsert(1, "a"),
    upsert(2, "b"),
    upsert(5, "e"),
    upsert(1, "a2"),
    tombstone(2),
    upsert(3, "c"),
    upsert(4, "d"),
]
FOLD = [(1, "a2", ONE), (3, "c", ONE), (4, "d", ONE), (5, "e", ONE)]
BY_THREE = {"max-offsets-per-batch": 3}
APPENDS = {"columns": "id BIGINT, name STRING, amount DECIMAL(10, 2)", "options": ROWS}


def restore(world: World, version: int, *, by_spark: bool = False) -> None:
    """RESTORE as another program does it."""
    if by_spark:
        place = f"delta.`{world.folder}/table`"
        world.spark.newSession().sql(f"RESTORE TABLE {place} TO VERSION AS OF {version}").collect()
    else:
        DeltaTable(str(world.folder / "table")).restore(version, protocol_downgrade_allowed=True)


def during(actions: Mapping[int, Callable[[int], object]]) -> tuple[list[BatchReport], Listener]:
    """The reports of a run, and its listener: after so many batches it acts, given the version of the first batch."""
    reports: list[BatchReport] = []

    def listener(report: BatchReport) -> None:
        reports.append(report)
        if act := actions.get(len(reports)):
            act(reports[0].version or 0)

    return reports, listener


def restored_run(world: World, after: int, take_back: Callable[[int], object]) -> Summary:
    """An ingest during which `take_back` is called with the version of the first batch, after that many batches."""
    return ingest(world.spark, world.definition(run=BY_THREE), listener=during({after: take_back})[1])


@pytest.mark.parametrize(
    ("reader", "engine"),
    [("spark", "spark"), ("spark", "driver"), ("consumer", "driver")],
)
def test_after_a_restore_between_two_batches_all_changes_are_applied_again(
    make: Make, reader: str, engine: str
) -> None:
    world = make(partitions=1, sections=f"ingest: {{reader: {reader}}}\nmerge: {{engine: {engine}}}\n")
    world.send(RECORDS)
    summary = restored_run(world, 2, lambda first: restore(world, first, by_spark=engine == "spark"))
    assert world.rows() == FOLD
    assert summary.records_in == len(RECORDS) + 3
    assert "restored it while this run was at work: the run has gone back to the offsets" in str(
        summary.warning
    )


@pytest.mark.parametrize("reader", ["spark", "consumer"])
def test_a_table_without_a_key_has_each_row_once_after_a_restore(make: Make, reader: str) -> None:
    world = make(partitions=1, cleanup="delete", sections=f"ingest: {{reader: {reader}}}\n", **APPENDS)
    world.send([(None, upsert(n, "r")[1]) for n in range(7)])
    summary = restored_run(world, 2, lambda first: restore(world, first))
    assert world.rows() == [(n, "r", ONE) for n in range(7)]
    assert summary.records_in == 10


def test_a_run_goes_back_to_the_beginning_of_the_topic(make: Make) -> None:
    """Restored by Spark to the version before the first batch, twice, and back to the last one in between."""
    world = make(partitions=1)
    world.send(RECORDS)
    to_first, to_none = partial(restore, world), lambda _: restore(world, 0)
    reports, listener = during({1: to_none, 2: to_first, 3: to_none})
    summary = ingest(world.spark, world.definition(run=BY_THREE), listener=listener)
    assert world.rows() == FOLD
    assert len(reports) == 6 and summary.records_in == 16


def test_a_run_without_new_records_goes_back_by_itself(
    make: Make, monkeypatch: pytest.MonkeyPatch, stop: threading.Event
) -> None:
    monkeypatch.setattr("bridge.pipelines.ingest.run_state.LOOK_SECONDS", 0.2)
    world = make(partitions=1)
    world.send(RECORDS)
    reports, listener = during({3: partial(restore, world), 5: lambda _: stop.set()})
    run = {"trigger": "200 ms", **BY_THREE}
    ingest(world.spark, world.definition(run=run), listener=listener, stop=stop)
    assert [r.records_in for r in reports] == [3, 3, 1, 3, 1]
    assert world.rows() == FOLD


def test_all_rows_deleted_by_another_writer_stay_so_with_a_warning(make: Make) -> None:
    """It may be meant, as any other DELETE; the run and the next one say so."""
    world = make(partitions=1)
    world.send(RECORDS)
    place = str(world.folder / "table")
    summary = restored_run(world, 2, lambda _: DeltaTable(place).delete())
    assert world.rows() == [(4, "d", ONE)]
    assert "(DELETE) of another writer replaced or deleted all rows. The ingest goes on" in str(
        summary.warning
    )
    DeltaTable(place).delete()
    assert "run `bridge resync FILE`" in str(ingest(world.spark, world.definition()).warning)


@pytest.mark.slow
def test_each_pipeline_with_columns_of_its_own_goes_back(make: Make, spark: SparkSession) -> None:
    """One while it runs, the other one when it is started again."""
    own, ids = partial(make, delta="path: table, merge-columns: all", partitions=1), range(9)
    names, paid = (
        own(columns=f"id BIGINT, {column}, PRIMARY KEY (id) NOT ENFORCED")
        for column in ("name STRING", "paid INT")
    )
    first, other = names.definition("names", BY_THREE), paid.definition("paid", {"checkpoint": "other"})
    reports, listener = during({1: lambda _: ingest(spark, other), 2: partial(restore, names)})
    for some in (ids[:1], ids[1:]):
        names.send([(f'{{"id":{n}}}', f'{{"id":{n},"name":"n"}}') for n in some])
        paid.send([(f'{{"id":{n}}}', f'{{"id":{n},"paid":{n}}}') for n in some])
        if some == ids[:1]:
            ingest(spark, first)
            ingest(spark, other)
    assert "the run has gone back" in str(ingest(spark, first, listener=listener).warning)
    assert [r.records_in for r in reports] == [3, 3, 3, 2]
    assert names.table().where("paid IS NOT NULL").count() == 1
    assert ingest(spark, other).records_in == 8
    assert sorted(map(tuple, names.table().select("id", "name", "paid").collect())) == [
        (n, "n", n) for n in ids
    ]
