"""A table on S3 is read and written in the driver as one on a disk is: each state and each change is Spark's."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from bridge.columns import frame_of
from bridge.definition import DeltaTarget
from bridge.delta import change_feed
from bridge.delta.append_files import FileAppends
from bridge.delta.appended_files import count_at, files_at
from bridge.delta.changed_files import changes_in_driver
from bridge.delta.log_description import describe, newest_version
from bridge.delta.merge_driver import DriverEngine
from bridge.delta.rows_in_driver import read_columns
from bridge.delta.table import Table, create_table
from bridge.kafka.read_counts import ReadCounts
from bridge.lake.new_files import write_data_file
from bridge.lake.remote_store import RemoteStore
from bridge.lake.store import UnknownOutcome
from bridge.offsets import Offsets
from bridge.pipelines.ingest.append_reader import AppendedBatch, apply_appended
from bridge.ways import NotThisWay
from tests.delta.drawn_commits import counted
from tests.delta.tables import FIELDS, Merge, at, by_marks, content, frame
from tests.delta.test_rows_taken_back import nothing_is_merged_after_a_restore
from tests.lossy_proxy import LossyProxy
from tests.object_store import BUCKET, ObjectStore, only_on_s3

pytestmark = pytest.mark.usefixtures("store")


@pytest.fixture
def table(spark: SparkSession, unique: Callable[[str], str], store: ObjectStore) -> Table:
    properties = {"delta.checkpointInterval": "3"}
    place = DeltaTarget(path=f"{store.root}/{unique('t')}/a b", properties=properties)
    return create_table(spark, place, FIELDS, pipeline="p")


@pytest.fixture
def merge() -> Merge:
    """Of an engine that knows no log yet."""
    return DriverEngine(min_rows_a_change=0).merge


def test_a_history_of_batches_and_other_writers(spark: SparkSession, table: Table, merge: Merge) -> None:
    draw = random.Random(seed := random.randrange(10**6))
    print(f"seed {seed}")
    fold: dict[int, str | None] = {}
    for batch in range(4):
        keys = draw.sample(range(12), 5)
        changes = [(draw.choice(["+U", "+U", "-D"]), key, draw.choice(["x", "", None])) for key in keys]
        known = dict(fold)
        for kind, key, value in changes:
            fold.pop(key, None)
            if kind == "+U":
                fold[key] = value
        result = merge(table, frame(table, changes), key=["id"], progress=at(batch))
        assert (result.inserted, result.deleted) == (
            len(fold.keys() - known.keys()),
            len(known.keys() - fold.keys()),
        )
        assert content(table) == set(fold.items())
        if batch == 2:
            table.delta().delete("id < 4")
            fold = {key: value for key, value in fold.items() if key >= 4}
        if batch == 1:
            table.delta().optimize().executeCompaction()
    last = change_feed.latest_version(table)
    assert newest_version(spark, table.target) == last and count_at(table, last) == len(fold)
    files = files_at(table, None)
    assert files is not None
    read = read_columns(files, ["id", "v"], most_rows=1_000)
    assert read is not None and {tuple(row.values()) for row in read.to_pylist()} == set(fold.items())
    asked = 0
    for first, end in (*((version, version) for version in range(1, last + 1)), (1, last)):
        with suppress(NotThisWay):
            ours = changes_in_driver(table, first, end, table.columns, most_bytes=1 << 30, most_rows=10**6)
            asked += 1
            options = {"readChangeFeed": "true", "startingVersion": str(first), "endingVersion": str(end)}
            theirs = table.read(options).select(*table.columns, "_change_type")
            assert counted(frame_of(spark, ours, theirs.schema)) == counted(theirs)
    assert asked > 2


def test_files_of_tasks_are_appended(table: Table) -> None:
    appends = FileAppends(table)
    target = appends.target()
    assert isinstance(target.store, RemoteStore) and describe(table.spark, table.target) is not None
    for batch in range(2):
        rows = target.schema.empty_table().from_pylist([{"id": batch, "v": "a"}], target.schema)
        add = write_data_file(target.store, rows, target.columns_with_statistics)
        assert appends.commit(target, [add], rows=1, progress=at(batch)).inserted == 1
    assert content(table) == {(0, "a"), (1, "a")}
    assert appends.commit(target, [], rows=0, progress=at(1)).skipped


def test_nothing_is_written_after_a_restore_that_the_run_does_not_know(
    spark: SparkSession, table: Table, merge: Merge
) -> None:
    place = f"delta.`{table.target.path}`"
    nothing_is_merged_after_a_restore(table, merge, lambda: spark.sql(f"RESTORE {place} TO VERSION AS OF 1"))


@pytest.fixture
def counted_requests(table: Table, object_store: ObjectStore) -> Iterator[tuple[Table, LossyProxy]]:
    """The table behind a proxy that counts the requests of its store."""
    only_on_s3(object_store)
    with LossyProxy("127.0.0.1", object_store.port) as proxy:
        table.spark.conf.set(f"fs.s3a.bucket.{BUCKET}.endpoint", proxy.url)
        try:
            yield table, proxy
        finally:
            table.spark.conf.set(f"fs.s3a.bucket.{BUCKET}.endpoint", object_store.url)


def test_a_batch_asks_for_what_it_changes_and_lists_nothing(
    counted_requests: tuple[Table, LossyProxy], merge: Merge
) -> None:
    table, proxy = counted_requests
    for batch in range(5):
        proxy.requests.clear()
        merge(
            table, frame(table, [("+U", key, f"{batch}") for key in range(3)]), key=["id"], progress=at(batch)
        )
        if batch in (1, 4):
            made = [request.split("?")[0].replace(f"/{BUCKET}/", "") for request in proxy.requests]
            assert not [request for request in proxy.requests if "list-type" in request], proxy.requests
            # The newest commit is there, the next one is not; the files before; three new files; the commit.
            assert len(made) <= 10, "\n".join(made)


def test_a_lost_answer_is_no_second_batch(counted_requests: tuple[Table, LossyProxy], merge: Merge) -> None:
    table, proxy = counted_requests
    merge(table, frame(table, [("+U", 1, "a")]), key=["id"], progress=at(0))
    proxy.lose = 3
    merge(table, frame(table, [("+U", 1, "b"), ("+U", 2, "b")]), key=["id"], progress=at(1))
    assert proxy.lose == 0 and content(table) == {(1, "b"), (2, "b")}
    assert change_feed.latest_version(table) == 2


def test_files_of_a_commit_whose_fate_is_unknown_stay(
    counted_requests: tuple[Table, LossyProxy],
) -> None:
    """The commit is there; who took its files for left over would delete rows of the table."""
    table, proxy = counted_requests
    appends = FileAppends(table)
    target = appends.target()
    rows = target.schema.empty_table().from_pylist([{"id": 1, "v": "a"}], target.schema)
    add = write_data_file(target.store, rows, target.columns_with_statistics)
    batch = AppendedBatch(target, (add,), rows=1, read=ReadCounts(1), end=Offsets(), newest_event_ms={})
    proxy.lose, proxy.is_deaf_after_loss = 1, True
    with pytest.raises(
        UnknownOutcome, match=r"does not say whether .*1\.json was written; start the run again"
    ):
        apply_appended(appends, batch, at(0))
    proxy.is_deaf_after_loss = False
    assert content(table) == {(1, "a")}
    assert apply_appended(appends, batch, at(0)).merged.skipped


def test_delta_creates_a_table_that_the_driver_may_not_write(
    counted_requests: tuple[Table, LossyProxy], unique: Callable[[str], str]
) -> None:
    table, proxy = counted_requests
    proxy.refuses = "object_store"
    made = create_table(table.spark, DeltaTarget(path=f"s3a://{BUCKET}/{unique('t')}"), FIELDS, pipeline="p")
    assert content(made) == set()


def test_a_table_in_its_place_is_noticed(table: Table, merge: Merge) -> None:
    merge(table, frame(table, [("+U", 1, "a")]), key=["id"], progress=at(0))
    assert by_marks(table, frame(table, [("+U", 1, "b")]), key=["id"], progress=at(1)).updated == 1
    assert merge(table, frame(table, [("+U", 1, "c")]), key=["id"], progress=at(2)).updated == 1
    other = replace(table, id="another")
    with pytest.raises(Exception, match="was replaced by another one during this run"):
        merge(other, frame(table, [("+U", 1, "d")]), key=["id"], progress=at(3))
