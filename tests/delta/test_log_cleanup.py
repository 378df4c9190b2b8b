"""Log files stay as long as the retention, whichever engine commits. Only the last test needs Spark."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema
from pyspark.sql import SparkSession

from bridge.delta.feed_consumers import FeedConsumers
from bridge.delta.log_cleanup import checkpoint_if_due, clean_log
from bridge.delta.table import Table
from bridge.storage import opened_store
from tests.delta.tables import at, by_copies, by_spark, content, frame, made

HOUR = {"delta.logRetentionDuration": "interval 1 hours"}
# Delta on Spark refuses to keep removed files longer than the log.
BOTH_HOUR = {**HOUR, "delta.deletedFileRetentionDuration": "interval 1 hours"}


def table(place: Path, **properties: str) -> DeltaTable:
    shape = Schema.from_arrow(pa.schema([("id", pa.int64())]))
    wanted = {**HOUR, **{f"delta.{name}": value for name, value in properties.items()}}
    return DeltaTable.create(str(place), schema=shape, configuration=wanted)


def commit(place: Path, version: int) -> None:
    """What a small batch leaves: one file comes, the one before goes."""
    at, file = version * 1000, "part-00000-{:032}-c000.snappy.parquet"
    stats = json.dumps({"numRecords": 1, "minValues": {"id": 0}, "maxValues": {"id": version}})
    add = {"path": file.format(version), "partitionValues": {}, "size": 500, "modificationTime": at}
    actions: list[dict[str, Any]] = [{"add": {**add, "dataChange": True, "stats": stats}}]
    if version > 1:
        gone = {"path": file.format(version - 1), "deletionTimestamp": at, "dataChange": True}
        actions.append({"remove": gone})
    text = "\n".join(map(json.dumps, [{"commitInfo": {"timestamp": at, "operation": "MERGE"}}, *actions]))
    log(place, version).write_text(text)


def log(place: Path, version: int) -> Path:
    return place / "_delta_log" / f"{version:020}.json"


def after_commit(
    target: DeltaTable, table: Table, version: int, published: Callable[[Table], Iterable[int]]
) -> None:
    """As a batch of the driver."""
    properties = target.metadata().configuration

    def newest() -> DeltaTable:
        target.update_incremental()
        return target

    checkpoint_if_due(properties, table, version, opened_store(target), newest, published)


def age(place: Path, below: int) -> None:
    """Versions before `below` were committed two hours ago."""
    for path in (place / "_delta_log").iterdir():
        if path.name.lstrip(".")[:20].isdigit() and int(path.name.lstrip(".")[:20]) < below:
            os.utime(path, (time.time() - 7200, time.time() - 7200))


def versions(place: Path) -> list[int]:
    return sorted(int(p.stem) for p in (place / "_delta_log").glob("*.json") if p.stem.isdigit())


def written(place: Path, last: int, every: int = 10) -> DeltaTable:
    for version in range(1, last + 1):
        commit(place, version)
        if version % every == 0:
            DeltaTable(str(place)).create_checkpoint()
    return DeltaTable(str(place))


@pytest.mark.parametrize(
    "batches", [pytest.param(2000, id="2000"), pytest.param(10_000, id="10000", marks=pytest.mark.slow)]
)
def test_a_log_of_thousands_of_batches_stays_flat(
    tmp_path: Path, batches: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Retention is as long as a hundred batches take."""
    place, seen = tmp_path / "t", {}
    retention = {f"{what}RetentionDuration": "interval 1 seconds" for what in ("log", "deletedFile")}
    target, nobody = table(place, **retention), _nobody()
    for version in range(1, batches + 1):
        commit(place, version)
        if version % 10 == 0:
            age(place, version - 100)
        after_commit(target, nobody, version, lambda _: [])
        if version % (batches // 10) == 5:
            files = list((place / "_delta_log").iterdir())
            started = time.perf_counter()
            DeltaTable(str(place))
            took = time.perf_counter() - started
            seen[version] = (len(files), sum(f.stat().st_size for f in files), took)
    early, *rest = list(seen.values())[1:]
    assert versions(place)[-1] == batches and versions(place)[0] >= batches - 120
    assert all(files <= early[0] + 15 and size <= early[1] * 1.3 for files, size, _ in rest), seen
    with capsys.disabled():
        print(
            f"\n{batches:,} batches: {early[0]} -> {rest[-1][0]} files, {early[1]:,} -> {rest[-1][1]:,} bytes, "
            f"opened in {early[2] * 1000:.1f} -> {rest[-1][2] * 1000:.1f} ms"
        )


def test_a_failure_after_a_commit_is_logged_and_not_raised(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def consumers(table: Table) -> list[int]:
        raise OSError("the store is away")

    table(tmp_path / "t")
    target = written(tmp_path / "t", 10)
    after_commit(target, _nobody(), 10, consumers)
    assert "failed: OSError: the store is away. The next attempt follows in 10 commits" in caplog.text


@pytest.mark.parametrize(
    ("removed", "properties", "expected"),
    [
        pytest.param(9_990, {}, [10, 20, 30, 40, 50, 60], id="few"),
        pytest.param(30_000, {}, [10, 40], id="many"),
        pytest.param(30_000, {"checkpointInterval": "20"}, [20, 40, 60], id="the table says"),
    ],
)
def test_checkpoints_of_many_actions_are_rarer(
    tmp_path: Path, removed: int, properties: dict[str, str], expected: list[int]
) -> None:
    target = table(tmp_path / "t", **properties)
    commit(tmp_path / "t", 1)
    gone = {"deletionTimestamp": int(time.time() * 1000), "dataChange": True}
    with log(tmp_path / "t", 1).open("a") as file:
        for number in range(removed):
            file.write("\n" + json.dumps({"remove": {"path": f"part-{number}", **gone}}))
    for version in range(2, 61):
        commit(tmp_path / "t", version)
        after_commit(target, _nobody(), version, lambda _: [])
    made = sorted(int(p.name[:20]) for p in (tmp_path / "t/_delta_log").glob("*.checkpoint.parquet"))
    assert made == expected


def test_expired_files_are_looked_for_a_hundred_times_in_a_retention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, asked, now = table(tmp_path / "t"), list[float](), time.monotonic()

    def published() -> list[int]:
        asked.append(round(time.monotonic() - now))
        return []

    for seconds in (0, 35, 37, 40, 75):
        monkeypatch.setattr(time, "monotonic", partial(float, now + seconds))
        clean_log(target, published)
    assert asked == [0, 37, 75]


def _nobody() -> Table:
    return SimpleNamespace()  # type: ignore[return-value]


def test_files_that_versions_within_the_retention_need_stay(tmp_path: Path) -> None:
    table(tmp_path / "t")
    target = written(tmp_path / "t", 35)
    for name in ("{:020}.crc", ".{:020}.json.crc"):
        for version in range(36):
            (tmp_path / "t/_delta_log" / name.format(version)).write_text("")
    age(tmp_path / "t", 25)
    clean_log(target, list)
    assert versions(tmp_path / "t") == list(range(20, 36)), "20 is the checkpoint that 25 is read from"
    sums = {p.name.lstrip(".")[:20] for p in (tmp_path / "t/_delta_log").glob("*crc")}
    assert min(map(int, sums)) == 20 and len(sums) == 16
    assert DeltaTable(str(tmp_path / "t"), version=25).file_uris() == [
        str(tmp_path / "t" / f"part-00000-{25:032}-c000.snappy.parquet")
    ]


def test_a_log_that_is_not_to_be_cleaned_is_not(tmp_path: Path) -> None:
    table(tmp_path / "t", enableExpiredLogCleanup="false")
    target = written(tmp_path / "t", 25)
    age(tmp_path / "t", 24)
    clean_log(target, list)
    assert versions(tmp_path / "t") == list(range(26))


@pytest.mark.parametrize(
    ("published", "oldest"),
    [
        pytest.param([-1], 0, id="nothing yet"),
        pytest.param([3], 0, id="before the retention"),
        pytest.param([35, 12], 0, id="the slowest counts"),
        pytest.param([35], 20, id="has everything"),
        pytest.param([30], 20, id="within the retention"),
    ],
)
def test_files_that_a_feed_consumer_needs_stay(tmp_path: Path, published: list[int], oldest: int) -> None:
    table(tmp_path / "t")
    target = written(tmp_path / "t", 35)
    age(tmp_path / "t", 25)
    clean_log(target, lambda: published)
    assert versions(tmp_path / "t")[0] == oldest


def test_a_lost_feed_consumer_does_not_count(tmp_path: Path) -> None:
    table(tmp_path / "t")
    target = written(tmp_path / "t", 35)
    for version in range(11):
        log(tmp_path / "t", version).unlink()
    age(tmp_path / "t", 25)
    clean_log(target, lambda: [5])
    assert versions(tmp_path / "t")[0] == 20


@pytest.mark.versions
def test_batches_make_checkpoints_and_clean_as_the_table_says(spark: SparkSession, lake: Path) -> None:
    """Every second version here; rows that Spark has marked as gone stay gone in a checkpoint of delta-rs."""
    place = lake / "t"
    merged = made(
        spark,
        place,
        rows=[(1, "a"), (2, "a"), (3, "a")],
        properties={**BOTH_HOUR, "delta.checkpointInterval": "2"},
    )
    FeedConsumers(merged).register("p", 1, "x")
    by_spark(merged, frame(merged, [("-D", 3, None)]), key=["id"], progress=at(0))
    age(place, 9)
    by_copies(merged, frame(merged, [("+U", 1, "b")]), key=["id"], progress=at(1))
    by_copies(merged, frame(merged, [("+U", 1, "b")]), key=["id"], progress=at(2))
    assert (place / f"_delta_log/{4:020}.checkpoint.parquet").exists(), "a batch that changes nothing counts"
    assert versions(place) == [0, 1, 2, 3, 4], "the publish needs what came after version 1"
    FeedConsumers(merged).register("p", 6, "x")
    age(place, 5)
    for batch in (3, 4):
        by_copies(merged, frame(merged, [("+U", 1, str(batch))]), key=["id"], progress=at(batch))
    assert versions(place)[0] == 4
    jvm = spark._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert content(merged) == {(1, "4"), (2, "a")}
    feed = spark.read.format("delta").option("readChangeFeed", True).option("startingVersion", 5)
    assert feed.load(str(place)).where("_change_type = 'update_postimage'").count() == 2
