"""How versions and snapshots are cut into ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from bridge import config
from bridge.delta import change_feed
from bridge.delta.data_files import DataFile, data_files, digest
from bridge.delta.direct_changes import can_send_directly
from bridge.delta.table import Table
from bridge.pipelines.publish import file_shards
from bridge.pipelines.publish import range_planner as module
from bridge.pipelines.publish.range_planner import RangePlanner
from bridge.publish_progress import PublishRange
from tests.delta.tables import append, at, by_spark, frame, made

Make = Callable[..., RangePlanner]

FILE = """\
version: 1
name: orders
topic:
  ddl: |
    CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'h:1',
      'key.format' = 'json', 'value.format' = 'json')
delta: {path: table}
run: {checkpoint: checkpoint}
publish: {snapshot-chunk-rows: 2}
"""


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Version 1 an append of 3 rows, 2 an append of one, 3 a changed key, 4 a batch of the bridge's."""
    table = made(spark, tmp_path_factory.mktemp("ranges") / "t", rows=[(1, "a"), (2, "b"), (3, "c")])
    append(table, [(4, "d")])
    spark.sql(f"UPDATE delta.`{table.target.path}` SET id = 30 WHERE id = 3")
    by_spark(table, frame(table, [("+U", 1, "x"), ("-D", 2, None)]), key=["id"], progress=at(0))
    return table


@pytest.fixture
def ranges(table: Table, tmp_path: Path) -> Make:
    def made(shards: Callable[[int], int], file_tasks: int = 0, more: str = "") -> RangePlanner:
        file = tmp_path / "orders.yaml"
        file.write_text(FILE.replace("publish: {", "publish: {" + more))
        return RangePlanner(config.load(file), table, shards, file_tasks)

    return made


def test_a_version_that_changes_keys_has_a_slot_to_itself(
    ranges: Make,
) -> None:
    """The others have as many as their rows ask for."""
    found = [*ranges(lambda rows: 2 + rows).changes(1, 4)]
    assert found == [PublishRange(1, 2, shards=6), PublishRange(3, 3, shards=1), PublishRange(4, 4, shards=4)]
    assert [*ranges(lambda rows: 2 + rows).changes(3, 3)] == [PublishRange(3, 3, shards=1)]
    assert [*ranges(lambda rows: 1).changes(1, 4)] == [PublishRange(1, 4, shards=1)]


def test_without_transactions_there_is_one(ranges: Make) -> None:
    assert [*ranges(lambda rows: 0).changes(1, 4)] == [PublishRange(1, 4)]


def test_large_versions_go_out_by_file(ranges: Make, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ingest's and others', and snapshots."""
    monkeypatch.setattr(file_shards, "LARGE", 2)
    monkeypatch.setattr(file_shards, "_EACH", 1)
    ours = ranges(lambda rows: 2 + rows, 1)
    one, four = (data_files(change_feed.changes(table, v, v)) for v in (1, 4))
    assert [*ours.changes(1, 4)] == [
        PublishRange(1, 1, shards=len(one), files=digest(one)),
        PublishRange(2, 2, shards=3),
        PublishRange(3, 3, shards=1),
        PublishRange(4, 4, shards=len(four), files=digest(four)),
    ]
    files = data_files(change_feed.snapshot(table, 2))
    found = PublishRange(2, 2, snapshot=True, chunks=2, shards=len(files), files=digest(files))
    assert ours.snapshot(2) == found
    assert [*ranges(lambda rows: 2 + rows, 9).changes(4, 4)] == [PublishRange(4, 4, shards=4)]
    net = ranges(lambda rows: 2 + rows, 1, "net-changes: true, ")
    assert [*net.changes(4, 4)] == [PublishRange(4, 4, shards=4)]
    monkeypatch.setattr(file_shards, "LARGE", 3)
    assert [*ours.changes(4, 4)] == [PublishRange(4, 4, shards=4)]


def test_a_publish_that_is_far_behind_does_not_plan_all_before_it_sends_the_first(
    ranges: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In parts, they are the same ranges; versions between two parts are not joined."""
    monkeypatch.setattr(file_shards, "LARGE", 2)
    monkeypatch.setattr(file_shards, "_EACH", 1)
    wanted = [*ranges(lambda rows: 2 + rows, 1).changes(1, 4)]
    planned: list[object] = []

    def look(frame: DataFrame) -> tuple[DataFile, ...]:
        planned.append(frame)
        return data_files(frame)

    monkeypatch.setattr(module, "data_files", look)
    monkeypatch.setattr(module, "_AHEAD", 1)
    found = ranges(lambda rows: 2 + rows, 1).changes(1, 4)
    assert next(found) == wanted[0] and len(planned) == 1
    assert [*found] == wanted[1:] and len(planned) > 1


def test_what_goes_out_as_it_is(ranges: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of others a large version by itself, once somebody has looked: not if it changes keys, and then nobody looks at
    another one by such an operation."""
    looked: list[int] = []

    def look(table: Table, version: int, key: Sequence[str]) -> bool:
        looked.append(version)
        return can_send_directly(table, version, key)

    monkeypatch.setattr(module, "is_plain", look)
    ours = ranges(lambda rows: 0)
    assert ours.sends_directly(PublishRange(4, 4)) and ours.sends_directly(
        PublishRange(1, 4, shards=3, files="names")
    )
    assert not ours.sends_directly(PublishRange(1, 1))
    monkeypatch.setattr(file_shards, "LARGE", 1)
    assert not ours.sends_directly(PublishRange(1, 2))
    assert looked == []
    assert (
        ours.sends_directly(PublishRange(1, 1))
        and ours.sends_directly(PublishRange(1, 1))
        and ours.sends_directly(PublishRange(2, 2))
    )
    assert looked == [1, 2]
    assert not ours.sends_directly(PublishRange(3, 3)) and not ours.sends_directly(PublishRange(3, 3))
    assert ours.sends_directly(PublishRange(2, 2)) and not ours.sends_directly(PublishRange(3, 3))
    assert looked == [1, 2, 3, 2]


def test_a_snapshot_has_chunks_of_equal_size(
    ranges: Make,
) -> None:
    """Version 0 has no row, version 1 has three, version 3 has four."""
    found = [ranges(lambda rows: rows).snapshot(version) for version in (0, 1, 3)]
    assert found == [
        PublishRange(0, 0, snapshot=True, chunks=1, shards=0),
        PublishRange(1, 1, snapshot=True, chunks=2, shards=1),
        PublishRange(3, 3, snapshot=True, chunks=2, shards=2),
    ]


def test_versions_of_an_ingest_are_told_from_others(
    ranges: Make,
) -> None:
    ours = ranges(lambda rows: 0)
    assert ours.versions_of_other_writers(PublishRange(1, 4)) == [1, 2, 3]
    assert ours.versions_of_other_writers(PublishRange(4, 4)) == []
