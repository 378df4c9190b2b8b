"""Which versions other writers made, and how many rows each version changed.

A version can be sent directly when compact.net gives its changes without -U, row for row.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import compact
from bridge.columns import KIND
from bridge.delta import change_feed
from bridge.delta.append import append_batch
from bridge.delta.commit_history import CommitHistory, can_send_directly, commit_history
from bridge.delta.ingest_progress import read_progress
from bridge.delta.table import Table
from tests.delta.tables import ENGINES, NO_VECTORS, append, at, frame, made


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> CommitHistory:
    """Version 0 empty, 1 an append of 3 rows, 2 and 3 a batch by each engine, 4 an UPDATE of 2 rows, 5 OPTIMIZE,
    6 progress alone, 7 a DELETE of 1 row."""
    table = made(
        spark,
        tmp_path_factory.mktemp("commits") / "t",
        rows=[(1, "a"), (2, "b"), (3, "c")],
        properties=NO_VECTORS,
    )
    for batch, name in enumerate(("copies", "spark")):
        changes = [("+U", 1, "x"), ("-D", 2, None), ("+U", 4, name)] if batch == 0 else [("+U", 5, "y")]
        ENGINES[name].merge(table, frame(table, changes), key=["id"], progress=at(batch))
    spark.sql(f"UPDATE delta.`{table.target.path}` SET v = 'z' WHERE id >= 4")
    table.delta().optimize().executeCompaction()
    ENGINES["spark"].merge(table, frame(table, []), key=["id"], progress=at(2))
    spark.sql(f"DELETE FROM delta.`{table.target.path}` WHERE id = 3")
    return commit_history(table, 1, 7, ["id"])


def test_versions_that_others_wrote(history: CommitHistory) -> None:
    assert history.versions_of_other_writers(1, 7) == [1, 4, 7]
    assert history.versions_of_other_writers(2, 3) == history.versions_of_other_writers(5, 6) == []
    assert history.versions_of_other_writers(1, 7, ("UPDATE", "MERGE")) == [4]


def test_rows_are_counted_whoever_changed_them(history: CommitHistory) -> None:
    """By the metrics of Delta and of the driver."""
    assert [history.changed(version, version) for version in range(1, 8)] == [3, 3, 1, 2, 0, 0, 1]
    assert history.changed(1, 7) == 10


def test_only_the_given_versions_are_read(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    append(table, [(2, "b"), (3, "c")])
    append(table, [(4, "d")])
    history = commit_history(table, 2, 2, ["id"])
    assert (history.versions_of_other_writers(0, 9), history.changed(0, 9)) == ([2], 2)


def test_a_resync_is_no_batch(spark: SparkSession, lake: Path) -> None:
    """A key may have two changes in it."""
    table = made(spark, lake / "t")
    append(table, [(1, "a")], userMetadata=replace(at(0), key=("id",)).to_json(table.id))
    append(table, [(2, "b")], userMetadata=replace(at(1), key=("id",), resync=True).to_json(table.id))
    assert commit_history(table, 1, 2, ["id"]).versions_of_other_writers(1, 2) == [2]
    assert read_progress(table, "p") == (at(1), 2)


def test_a_batch_by_other_columns_is_another_writers(spark: SparkSession, lake: Path) -> None:
    """Version 1 is appended, 2 to 4 are merged by one key and another, by either engine, 5 is of a bridge that did not
    say by which. The order of a key's columns changes nothing."""
    table = made(spark, lake / "t", properties=NO_VECTORS)
    append_batch(table, frame(table, [("+I", 1, "a")]), rows=1, progress=at(0))
    keys = (("spark", ["id"]), ("copies", ["id", "v"]), ("spark", ["v", "id"]))
    for batch, (engine, key) in enumerate(keys, start=1):
        ENGINES[engine].merge(table, frame(table, [("+U", batch, "x")]), key=key, progress=at(batch))
    append(table, [(9, "z")], userMetadata=at(4).to_json(table.id))
    for key, others in ((["id"], [1, 3, 4, 5]), (["id", "v"], [1, 2, 5]), (["v"], [1, 2, 3, 4, 5])):
        assert commit_history(table, 1, 5, key).versions_of_other_writers(1, 5) == others


def test_the_log_says_what_delta_s_history_says(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of commits by each engine and by Spark's statements."""
    table = made(spark, lake / "t", rows=[(n, "a") for n in range(30)])
    for batch, engine in enumerate(ENGINES.values()):
        changes = [("+U", batch, "x"), ("-D", 9 + batch, None), ("+I", 100 + batch, "n")]
        engine.merge(table, frame(table, changes), key=["id"], progress=at(batch))
    append_batch(table, frame(table, [("+I", 7, "a")]), rows=1, progress=at(3))
    spark.sql(f"UPDATE delta.`{table.target.path}` SET v = 'z' WHERE id > 20")
    spark.sql(f"DELETE FROM delta.`{table.target.path}` WHERE id = 25")
    spark.sql(f"ALTER TABLE delta.`{table.target.path}` SET TBLPROPERTIES ('x' = 'y')")
    table.delta().optimize().executeCompaction()
    by_log = [commit_history(table, first, 9, ["id"]) for first in (0, 4)]
    monkeypatch.setattr("bridge.delta.ingest_progress.newest_commits", lambda *_: iter(()))
    assert [commit_history(table, first, 9, ["id"]) for first in (0, 4)] == by_log
    assert by_log[0].changed(0, 9) > 40


ROWS = [(1, "a"), (2, "b"), (3, None), (None, "n")]
MERGE = (
    "MERGE INTO {t} t USING (SELECT * FROM VALUES {rows} AS x(id, v)) AS s ON t.id <=> s.id "
    "WHEN MATCHED AND s.v = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    """Version 1 has the rows."""
    return made(spark, tmp_path / "t", rows=ROWS)


@pytest.mark.parametrize(
    ("statement", "direct"),
    [
        pytest.param("INSERT INTO {t} VALUES (7, 'x'), (8, 'x')", True, id="inserts"),
        pytest.param("DELETE FROM {t} WHERE id > 1", True, id="deletes"),
        pytest.param("UPDATE {t} SET v = concat('x', id) WHERE id IS NOT NULL", True, id="updates"),
        pytest.param("UPDATE {t} SET v = NULL WHERE id = 1 OR id IS NULL", True, id="a key that is null"),
        pytest.param(MERGE.format(t="{t}", rows="(1, 'gone'), (2, 'x'), (9, 'y')"), True, id="all of them"),
        pytest.param(MERGE.format(t="{t}", rows="(1, 'x'), (2, 'b')"), False, id="one is idle"),
        pytest.param("UPDATE {t} SET v = NULL WHERE id >= 2", False, id="null is idle"),
        pytest.param("UPDATE {t} SET id = 20 WHERE id = 2", False, id="a key moves"),
        pytest.param("UPDATE {t} SET id = 3 - id WHERE id < 3", True, id="keys change places"),
        pytest.param("UPDATE {t} SET id = id + 1 WHERE id < 3", False, id="keys move up"),
        pytest.param("INSERT INTO {t} VALUES (7, 'x'), (7, 'y')", False, id="a key twice"),
        pytest.param("INSERT OVERWRITE {t} VALUES (2, 'c')", False, id="deleted and inserted again"),
    ],
)
def test_direct_changes_are_the_net_changes(
    spark: SparkSession, table: Table, statement: str, direct: bool
) -> None:
    spark.sql(statement.format(t=f"delta.`{table.target.path}`"))
    assert can_send_directly(table, 2, ["id"]) is direct
    if direct:
        changes = change_feed.changes(table, 2, 2)
        net = compact.upserts(compact.net(changes, ["id"], across_versions=False))
        sent = change_feed.changes(table, 2, 2, before_images=False).select(net.columns)
        assert sorted(map(str, sent.collect())) == sorted(map(str, net.collect()))
        assert sent.select(KIND).count() > 0


def test_rows_that_share_a_key_are_not_direct(spark: SparkSession, table: Table) -> None:
    append(table, [(1, "twin")])
    spark.sql(f"UPDATE delta.`{table.target.path}` SET v = concat(v, 'x') WHERE id = 1")
    assert not can_send_directly(table, 3, ["id"])
    spark.sql(f"DELETE FROM delta.`{table.target.path}` WHERE id = 1")
    assert not can_send_directly(table, 4, ["id"])


def test_a_key_of_several_columns(spark: SparkSession, table: Table) -> None:
    """One of them is null, once the first and once the second: two keys."""
    spark.sql(f"INSERT INTO delta.`{table.target.path}` VALUES (NULL, 'x'), (5, NULL), (5, 'x')")
    assert can_send_directly(table, 2, ["id", "v"])
    assert not can_send_directly(table, 2, ["id"])
