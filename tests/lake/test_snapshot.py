"""A log that is followed commit by commit is the log that is read at once, and what Spark sees in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bridge.delta.table import Table
from bridge.lake.local_store import LocalStore
from bridge.lake.remote_store import RemoteStore
from bridge.lake.snapshot import Snapshot, followed, live_rows, one_look, open_snapshot, stats_of
from bridge.log_layout import version_of
from bridge.ways import NotThisWay
from tests.delta.tables import append, at, by_marks, by_spark, commit_by_hand, frame, made, vector_id


def seen_by_spark(table: Table) -> tuple[set[str], int]:
    rows = table.delta().toDF()
    return {file.rsplit("/", 1)[1] for file in rows.inputFiles()}, rows.count()


def seen(snapshot: Snapshot) -> tuple[set[str], int]:
    return set(snapshot.files), sum(live_rows(add) or 0 for add in snapshot.files.values())


def described(snapshot: Snapshot) -> dict[str, tuple[int, int | None, str]]:
    """Of each file what a checkpoint says in the words of a commit."""
    return {
        name: (add["size"], live_rows(add), vector_id(add.get("deletionVector")))
        for name, add in snapshot.files.items()
    }


def test_it_is_followed_as_it_is_read(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", properties={"delta.checkpointInterval": "4"})
    following = open_snapshot(LocalStore(str(lake / "t")))
    steps = (
        lambda: append(table, [(i, "a") for i in range(50)]),
        lambda: append(table, [(100, "a")]),
        lambda: by_spark(
            table, frame(table, [("+U", 3, "b"), ("-D", 100, None)]), key=["id"], progress=at(7)
        ),
        lambda: table.delta().delete("id = 5"),
        lambda: spark.sql(f"ALTER TABLE delta.`{lake}/t` SET TBLPROPERTIES ('x' = 'y')"),
        lambda: table.delta().optimize().executeCompaction(),
    )
    for step in steps:
        step()
        assert following.follow()
        opened = open_snapshot(LocalStore(str(lake / "t")))
        assert (following.version, following.transactions) == (opened.version, opened.transactions)
        assert described(following) == described(opened)
        assert (following.metadata["id"], following.protocol["minWriterVersion"]) == (table.id, 7)
        assert seen(opened) == seen_by_spark(table)
    assert following.transactions == {"bridge/p": 7}
    assert following.metadata["configuration"]["x"] == "y"
    assert list((lake / "t" / "_delta_log").glob("*.checkpoint.parquet"))


def test_former_versions(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", properties={"delta.checkpointInterval": "3"})
    following, seen_then = open_snapshot(LocalStore(str(lake / "t"))), []
    for number in range(7):
        append(table, [(number, "a")])
        if number == 4:
            table.delta().delete("id = 2")
        following.follow()
        seen_then.append((following.version, described(following)))
    for version, files in seen_then:
        opened = open_snapshot(LocalStore(str(lake / "t")), version)
        assert (opened.version, described(opened)) == (version, files)
    with pytest.raises(NotThisWay, match=r"^the log lacks version 9$"):
        open_snapshot(LocalStore(str(lake / "t")), 9)
    with pytest.raises(NotThisWay, match=r"^the table has more than 5 files$"):
        open_snapshot(LocalStore(str(lake / "t")), most=5)
    with pytest.raises(NotThisWay, match=r"^the table has more than 1 files$"):
        open_snapshot(LocalStore(str(lake / "t")), most=1)  # those of the checkpoint alone
    assert len(open_snapshot(LocalStore(str(lake / "t")), most=6).files) == 6, "removed files do not count"


def test_another_table_in_its_place_is_not_followed(spark: SparkSession, lake: Path) -> None:
    made(spark, lake / "t")
    following = open_snapshot(LocalStore(str(lake / "t")))
    shutil.rmtree(lake / "t")
    assert not following.follow()
    made(spark, lake / "t")
    assert not following.follow()


def test_logs_that_only_spark_reads(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    append(table, [(2, "a")])
    log = lake / "t" / "_delta_log"
    parts = log / "00000000000000000002.checkpoint.0000000001.0000000002.parquet"
    parts.touch()
    with pytest.raises(NotThisWay, match=r"^the log has checkpoints of a form that only Spark reads$"):
        open_snapshot(LocalStore(str(lake / "t")))
    parts.unlink()
    (log / "00000000000000000001.json").rename(log / "gone")
    with pytest.raises(NotThisWay, match=r"^the log lacks version 1$"):
        open_snapshot(LocalStore(str(lake / "t")))


def test_files_outside_of_the_folder() -> None:
    snapshot = Snapshot(LocalStore("/lake/t"))
    assert snapshot.path_of("part%201.parquet") == "part 1.parquet"
    assert snapshot.path_of("file:/other/part.parquet") == "/other/part.parquet"
    with pytest.raises(NotThisWay, match=r"^the table has files in s3a://bucket, outside of its folder$"):
        snapshot.path_of("s3a://bucket/part.parquet")
    with pytest.raises(NotThisWay, match=r"^the table has files in file://, outside of its folder$"):
        Snapshot(RemoteStore("s3a://bucket/t", {})).path_of("file:/other/part.parquet")


def test_rows_that_are_not_counted() -> None:
    assert live_rows({"stats": None}) is None and stats_of({}) == {}
    assert live_rows({"stats": '{"numRecords": 5}', "deletionVector": {"cardinality": 2}}) == 3


def test_texts_with_python_s_ends_of_lines(spark: SparkSession, lake: Path) -> None:
    """Statistics have such texts as they are; a commit ends its lines by a line feed alone."""
    table = made(spark, lake / "t")
    following = open_snapshot(LocalStore(str(lake / "t")))
    texts = [f"a{end}b" for end in "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"]
    for engine in (by_marks, by_spark):
        changes = frame(table, [("+U", n, text) for n, text in enumerate(texts)])
        engine(table, changes, key=["id"], progress=at(0 if engine is by_marks else 1))
        assert following.follow() and seen(following) == seen_by_spark(table)
    rows = [(n, text) for n, text in enumerate(texts)]
    assert sorted(map(tuple, table.delta().toDF().collect())) == rows
    assert seen(open_snapshot(LocalStore(str(lake / "t")))) == seen(following)


def test_without_files_the_rest_is_the_same(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", properties={"delta.checkpointInterval": "2"})
    snapshots = [
        open_snapshot(LocalStore(str(lake / "t")), with_files=with_files) for with_files in (True, False)
    ]
    for n in range(5):
        by_spark(table, frame(table, [("+U", n, "b")]), key=["id"], progress=at(n))
    snapshots += [
        open_snapshot(LocalStore(str(lake / "t")), with_files=with_files) for with_files in (True, False)
    ]
    assert all(snapshot.follow() for snapshot in snapshots)
    assert [s.version for s in snapshots] == [5] * 4 and [len(s.files) > 0 for s in snapshots] == [1, 0, 1, 0]
    assert len({str((s.transactions, s.metadata["id"], s.protocol.keys())) for s in snapshots}) == 1


def test_within_one_look_each_log_is_followed_once(spark: SparkSession, lake: Path) -> None:
    table, store = made(spark, lake / "t"), LocalStore(str(lake / "t"))
    for with_files in (False, True):
        version = followed(store, with_files=with_files).version
        with one_look():
            append(table, [(1, "a")])
            assert followed(store, with_files=with_files).version == version + 1
            append(table, [(2, "a")])
            seen_then = followed(store, with_files=with_files)
            assert seen_then.version == version + 1 and len(seen_then.files) <= version + 1
            assert followed(store, version + 2, with_files=with_files).version == version + 2
        append(table, [(3, "a")])
        assert followed(store, with_files=with_files).version == version + 3


def test_the_newest_commits_are_kept_until_the_table_is_another_one(spark: SparkSession, lake: Path) -> None:
    table, log = made(spark, lake / "t"), lake / "t" / "_delta_log"
    snapshot = open_snapshot(LocalStore(str(lake / "t")), with_files=False)
    for number in range(6):
        append(table, [(number, "a")])
    assert snapshot.follow() and snapshot.version == 6
    for version in range(1, 7):
        read = snapshot.read_commit(version)
        file = log / f"{version:020}.json"
        content = file.read_text()
        file.unlink()
        assert snapshot.read_commit(version) == (read if version > 2 else None)
        file.write_text(content)
    assert open_snapshot(LocalStore(str(lake / "t")), with_files=False).read_commit(6) == read


def test_commits_are_asked_for_at_once(spark: SparkSession, lake: Path) -> None:
    """One more than came before the last look, and more while all are there: a store that is far away answers them
    together. Commits after one that is not there yet are not applied."""
    asked: list[int] = []

    class Asked(LocalStore):
        def read_with_stamp(self, path: str) -> tuple[bytes, str]:
            asked.append(version_of(Path(path).name) or 0)
            return super().read_with_stamp(path)

    table, snapshot = made(spark, lake / "t"), open_snapshot(Asked(str(lake / "t")))
    begin = snapshot.version

    def looked() -> list[int]:
        asked.clear()
        assert snapshot.follow()
        return sorted(version - snapshot.version for version in asked)

    for version in range(begin + 1, begin + 41):
        commit_by_hand(table, version)
    assert looked() == [*range(-39, 24)] and snapshot.version == begin + 40
    assert looked() == [*range(1, 33)]
    assert looked() == [1]
    commit_by_hand(table, begin + 41)
    assert looked() == [0, 1, 2]
    commit_by_hand(table, begin + 42)
    assert looked() == [0, 1]
    commit_by_hand(table, begin + 44)
    assert looked() == [1, 2] and snapshot.version == begin + 42
    commit_by_hand(table, begin + 43)
    assert looked() == [-1, 0, 1] and snapshot.version == begin + 44


@pytest.mark.parametrize("until", [None, 330])
def test_a_reader_that_is_far_behind_begins_at_a_checkpoint(
    spark: SparkSession, lake: Path, until: int | None
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    snapshot = open_snapshot(LocalStore(str(lake / "t")))
    behind = snapshot.version
    for version in range(behind + 1, 331):
        commit_by_hand(table, version)
    assert snapshot.follow(until) and snapshot.version == 330
    snapshot = open_snapshot(LocalStore(str(lake / "t")), behind)
    DeltaTable(str(lake / "t")).create_checkpoint()
    assert not snapshot.follow(until) and behind + 100 <= snapshot.version < behind + 140
    assert snapshot.follow(320) and snapshot.version == 320, "an earlier version, before the checkpoint"
    assert open_snapshot(LocalStore(str(lake / "t"))).files.keys() == snapshot.files.keys()
