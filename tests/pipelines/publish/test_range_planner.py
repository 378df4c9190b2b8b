"""How versions and snapshots are cut into ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from bridge.delta import change_feed
from bridge.delta.commit_history import can_send_directly
from bridge.delta.data_files import DataFile, data_files, digest
from bridge.delta.table import Table
from bridge.pipelines.publish import range_planner as module
from bridge.pipelines.publish.range_planner import Compaction, RangePlanner
from bridge.pipelines.publish.sharding import FileShardLimits, Sharding
from bridge.publish_progress import PublishRange
from tests.config.files import loaded, pipeline_text
from tests.delta.tables import append, at, by_spark, frame, made

Make = Callable[..., RangePlanner]

USUAL = FileShardLimits()
SMALL = FileShardLimits(min_rows=2, min_rows_per_file=1)
ONE_TASK = Sharding(1, rows_per_shard=1)
TWO_TASKS = Sharding(2, allows_files=False, rows_per_shard=1)
DIRECT, NET = Compaction.WITHOUT_BEFORE_IMAGES, Compaction.NET_OF_VERSION

COLUMNS = "id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED"


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Version 1 an append of 3 rows, 2 an append of one, 3 a changed key, 4 a batch of the bridge's."""
    table = made(spark, tmp_path_factory.mktemp("ranges") / "t", rows=[(1, "a"), (2, "b"), (3, "c")])
    append(table, [(4, "d")])
    spark.sql(f"UPDATE delta.`{table.target.path}` SET id = 30 WHERE id = 3")
    by_spark(table, frame(table, [("+U", 1, "x"), ("-D", 2, None)]), key=["id"], progress=at(0))
    return table


@pytest.fixture
def planner(table: Table, tmp_path: Path) -> Make:
    def made(
        sharding: Sharding | None = None,
        limits: FileShardLimits = USUAL,
        *,
        publish: str = "",
        columns: str = COLUMNS,
        **options: str | None,
    ) -> RangePlanner:
        sections = f"publish: {{{publish}snapshot-chunk-rows: 2}}\n"
        definition = loaded(tmp_path, pipeline_text(columns, options, sections=sections))
        return RangePlanner(definition, table, sharding, limits)

    return made


def changes(planner: RangePlanner, first: int, last: int) -> list[PublishRange]:
    return [planned.recorded for planned in planner.changes(first, last)]


def test_a_version_that_changes_keys_has_one_shard(planner: Make) -> None:
    """Other ranges have as many shards as their rows need."""
    ranges = changes(planner(TWO_TASKS), 1, 4)
    assert ranges == [
        PublishRange(1, 2, shards=4),
        PublishRange(3, 3, shards=1),
        PublishRange(4, 4, shards=2),
    ]
    assert changes(planner(TWO_TASKS), 3, 3) == [PublishRange(3, 3, shards=1)]
    assert changes(planner(Sharding(1, scales=False)), 1, 4) == [PublishRange(1, 4, shards=1)]


def test_without_transactions_all_versions_are_one_range(planner: Make) -> None:
    assert changes(planner(), 1, 4) == [PublishRange(1, 4)]


def test_large_versions_are_sharded_by_file(planner: Make, table: Table) -> None:
    """Those of an ingest and of others, and snapshots."""
    small = planner(ONE_TASK, SMALL)
    one, four = (data_files(change_feed.changes(table, v, v, by_delta=True)) for v in (1, 4))
    assert changes(small, 1, 4) == [
        PublishRange(1, 1, shards=len(one), files=digest(one)),
        PublishRange(2, 2, shards=1),
        PublishRange(3, 3, shards=1),
        PublishRange(4, 4, shards=len(four), files=digest(four)),
    ]
    assert [p.compaction for p in small.changes(1, 4)] == [DIRECT, NET, NET, DIRECT]
    files = data_files(change_feed.snapshot(table, 2, by_delta=True))
    snapshot = PublishRange(2, 2, snapshot=True, chunks=2, shards=len(files), files=digest(files))
    assert small.snapshot(2).recorded == snapshot
    nine_tasks = Sharding(9, rows_per_shard=1)
    assert changes(planner(nine_tasks, SMALL), 4, 4) == [PublishRange(4, 4, shards=9)]
    net = planner(ONE_TASK, SMALL, publish="net-changes: true, ")
    assert changes(net, 4, 4) == [PublishRange(4, 4, shards=2)]
    larger = FileShardLimits(min_rows=3, min_rows_per_file=1)
    assert changes(planner(ONE_TASK, larger), 4, 4) == [PublishRange(4, 4, shards=2)]


def test_a_publish_that_is_far_behind_does_not_plan_all_before_it_sends_the_first(
    planner: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It plans to read one large version, and the next one when that is sent."""
    expected = [*planner(ONE_TASK, SMALL).changes(1, 4)]
    read: list[object] = []

    def counted(frame: DataFrame) -> tuple[DataFile, ...]:
        read.append(frame)
        return data_files(frame)

    monkeypatch.setattr(module, "data_files", counted)
    ranges = planner(ONE_TASK, SMALL).changes(1, 4)
    assert next(ranges) == expected[0] and len(read) == 1
    assert [*ranges] == expected[1:] and len(read) > 1


def test_which_ranges_are_sent_directly(planner: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single large version of another writer is read once, when its range is planned. After one that changes keys no
    other version by that operation is read."""
    read: list[int] = []

    def counted(table: Table, version: int, key: Sequence[str]) -> bool:
        read.append(version)
        return can_send_directly(table, version, key)

    def compaction(planner: RangePlanner, first: int, last: int, files: str = "") -> Compaction:
        return planner.plan(PublishRange(first, last, files=files)).compaction

    monkeypatch.setattr(module, "can_send_directly", counted)
    usual = planner()
    assert compaction(usual, 4, 4) is compaction(usual, 1, 4, files="digest") is DIRECT
    assert compaction(usual, 1, 1) is compaction(usual, 1, 4) is NET
    small = planner(limits=FileShardLimits(min_rows=1))
    assert compaction(small, 1, 2) is NET
    assert read == []
    assert compaction(small, 1, 1) is compaction(small, 2, 2) is DIRECT
    assert compaction(small, 3, 3) is compaction(small, 3, 3) is NET
    assert compaction(small, 2, 2) is DIRECT
    assert read == [1, 2, 3, 2]


@pytest.mark.parametrize(
    ("given", "snapshot", "changes"),
    [
        pytest.param({}, Compaction.NONE, DIRECT, id="upserts"),
        pytest.param({"publish": "net-changes: true, "}, Compaction.NONE, Compaction.NET_OF_RANGE, id="net"),
        pytest.param(
            {"connector": "kafka", "key.fields": "id", "value.format": "debezium-json"},
            Compaction.EACH,
            NET,
            id="a CDC format",
        ),
        pytest.param(
            {"columns": "id BIGINT, v STRING", "connector": "kafka", "key.format": None},
            Compaction.NONE,
            Compaction.INSERTS_ONLY,
            id="no key",
        ),
    ],
)
def test_the_pipeline_decides_the_compaction(
    planner: Make, given: dict[str, str | None], snapshot: Compaction, changes: Compaction
) -> None:
    made = planner(**given)
    assert made.plan(PublishRange(1, 1, snapshot=True)).compaction is snapshot
    assert made.plan(PublishRange(4, 4)).compaction is changes


def test_a_plan_is_carried_from_chunk_to_chunk(planner: Make) -> None:
    planned = planner().snapshot(1)
    second = planned.continued(PublishRange(1, 1, snapshot=True, chunk=1, chunks=2))
    assert second is not None and (second.recorded.chunk, second.compaction) == (1, Compaction.NONE)
    assert planned.continued(None) is None


def test_a_snapshot_has_chunks_of_equal_size(planner: Make) -> None:
    """Version 0 has no row, version 1 has three, version 3 has four."""
    snapshots = [planner(ONE_TASK).snapshot(version).recorded for version in (0, 1, 3)]
    assert snapshots == [
        PublishRange(0, 0, snapshot=True, chunks=1, shards=1),
        PublishRange(1, 1, snapshot=True, chunks=2, shards=1),
        PublishRange(3, 3, snapshot=True, chunks=2, shards=2),
    ]
