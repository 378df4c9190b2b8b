"""What a log on a local disk names, and when Delta must be asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.delta.logged_files import asking_delta, commits, named_files, open_log, read_files
from bridge.ways import NotThisWay
from tests.delta.drawn_commits import sql
from tests.delta.tables import append, made


def test_files_with_the_columns_of_the_table_and_more(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "b")])
    snapshot = open_log(table, None)
    more = T.StructField("more", T.StringType())
    files = named_files(table, snapshot, snapshot.files.values(), [more])
    (file,) = (lake / "t").glob("*.parquet")
    assert files.paths == [file.name] and files.bytes == file.stat().st_size
    assert sorted(map(tuple, read_files(table, files).collect())) == [(1, "a", None), (2, "b", None)]
    nothing = named_files(table, snapshot, [])
    assert read_files(table, nothing).collect() == [] and nothing.bytes == 0
    (add,) = snapshot.files.values()
    with pytest.raises(NotThisWay):
        named_files(table, snapshot, [add, add])
    with pytest.raises(NotThisWay):
        read_files(table, named_files(table, snapshot, [{**add, "deletionVector": {"storageType": "u"}}]))
    file.unlink()
    with pytest.raises(NotThisWay):
        named_files(table, snapshot, snapshot.files.values())


def test_commits_of_a_range(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    append(table, [(2, "b")])
    snapshot = open_log(table, 0, with_files=False)
    assert [version for version, _ in commits(snapshot, 1, 2)] == [1, 2]
    for first, last in ((0, 1), (2, 1), (1, 3), (1, 101)):
        with pytest.raises(NotThisWay):
            list(commits(snapshot, first, last))
    sql(spark, table, "ALTER TABLE {t} SET TBLPROPERTIES ('x' = 'y')")
    with pytest.raises(NotThisWay):
        list(commits(snapshot, 1, 3))


def test_whatever_is_wrong_is_left_to_delta(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    with pytest.raises(NotThisWay), asking_delta():
        open_log(table, 5)
    with pytest.raises(ZeroDivisionError), asking_delta():
        raise ZeroDivisionError
