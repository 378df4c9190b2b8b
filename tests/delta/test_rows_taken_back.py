"""A RESTORE between what a run knows and what it commits: no engine merges into rows that the run does not know."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bridge.delta import append, append_files, change_feed, merge_driver, merge_spark
from bridge.delta.append import append_batch
from bridge.delta.append_files import FileAppends
from bridge.delta.ingest_progress import read_progress
from bridge.delta.rows_taken_back import RowsTakenBack, following, newest_version, overwrites
from bridge.delta.table import Table, open_table
from bridge.errors import GapError, TableError
from bridge.ingest_progress import IngestProgress
from bridge.offsets import Offsets
from tests.delta.tables import ENGINES, FIELDS, Merge, at, by_spark, content, frame, log_file, made

RESTORED = r"version \d \(RESTORE\) took rows back .* while this run was at work; start it again"


def restore(table: Table, version: int) -> None:
    DeltaTable(str(table.target.path)).restore(version, protocol_downgrade_allowed=True)


def following_batch(table: Table, offset: int) -> IngestProgress:
    """What a run commits next that has read the progress anew."""
    found = read_progress(table, "p")
    assert found is not None
    return replace(found[0], batch=found[0].batch + 1, offsets=Offsets({("t", 0): offset}))


def restored_after_a_look(table: Table, restores: Callable[[], object]) -> Callable[..., IngestProgress]:
    """What stands in for `following`: after the first look the table is restored."""
    pending = [restores]

    def looked(*given: Any) -> IngestProgress:
        found = following(*given)
        if pending:
            pending.pop()()
        return found

    return looked


def nothing_is_merged_after_a_restore(table: Table, merge: Merge, restores: Callable[[], object]) -> None:
    """`restores` takes the table back to version 1, which the run does not know."""
    merge(table, frame(table, [("+U", 1, "a")]), key=["id"], progress=at(0))
    known = merge(table, frame(table, [("+U", 2, "b")]), key=["id"], progress=replace(at(1), after=1)).version
    restores()
    with pytest.raises(RowsTakenBack, match=RESTORED):
        merge(table, frame(table, [("+U", 3, "c")]), key=["id"], progress=replace(at(2), after=known))
    assert content(table) == {(1, "a")} and change_feed.latest_version(table) == 3
    again = read_progress(table, "p")
    assert again is not None and again[0].offsets == at(0).offsets
    assert following_batch(table, 20).after == 3


def test_nothing_is_merged_after_a_restore_that_the_run_does_not_know(
    merge: Merge, spark: SparkSession, lake: Path
) -> None:
    table = made(spark, lake / "t")
    nothing_is_merged_after_a_restore(table, merge, lambda: restore(table, 1))


@pytest.mark.parametrize("engine", ["spark", "marks"])
def test_a_restore_while_a_batch_is_merged(
    engine: str, spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after the engine has looked and before it commits. Then the commit fails, or does not count; all changes
    since the restored version are applied again."""
    modules = {"spark": merge_spark, "marks": merge_driver}
    merge, table = ENGINES[engine].merge, made(spark, lake / "t")
    merge(table, frame(table, [("+U", 1, "a"), ("+U", 2, "b")]), key=["id"], progress=at(0))
    known = merge(table, frame(table, [("+U", 1, "x"), ("-D", 2, None)]), key=["id"], progress=at(1)).version

    monkeypatch.setattr(modules[engine], "following", restored_after_a_look(table, lambda: restore(table, 1)))
    third = frame(table, [("+U", 3, "c")])
    with pytest.raises(RowsTakenBack, match=RESTORED):
        merge(table, third, key=["id"], progress=replace(at(2), after=known))
    again = following_batch(table, 20)
    assert read_progress(table, "p") == (replace(at(0), batch=again.batch - 1), 1)
    changes = frame(table, [("+U", 1, "x"), ("-D", 2, None), ("+U", 3, "c")])
    merge(table, changes, key=["id"], progress=again)
    assert content(table) == {(1, "x"), (3, "c")}


def test_a_restore_while_a_batch_is_appended(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes before Delta's transaction begins, so it commits. Applied again, rows would be there twice: the run
    stops, and the user restores the version before them."""
    table = made(spark, lake / "t")
    first, second, third = (frame(table, [("+I", n, "r")]) for n in range(3))
    append_batch(table, first, rows=1, progress=at(0))
    known = append_batch(table, second, rows=1, progress=at(1)).version

    def restores() -> None:
        place = f"delta.`{table.target.path}`"
        spark.newSession().sql(f"RESTORE TABLE {place} TO VERSION AS OF 1").collect()

    monkeypatch.setattr(append, "following", restored_after_a_look(table, restores))
    with pytest.raises(RowsTakenBack, match=RESTORED):
        append_batch(table, third, rows=1, progress=replace(at(2), after=known))
    with pytest.raises(
        GapError, match="version 4 appended rows that were read before version 3 restored it; RESTORE"
    ):
        read_progress(table, "p")
    restore(table, 3)
    append_batch(table, second.union(third), rows=2, progress=following_batch(table, 20))
    assert content(table) == {(0, "r"), (1, "r"), (2, "r")}


def test_a_restore_while_files_are_appended(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(spark, lake / "t")
    appends = FileAppends(table)
    append_batch(table, frame(table, [("+I", 1, "r")]), rows=1, progress=at(0))

    monkeypatch.setattr(append_files, "following", restored_after_a_look(table, lambda: restore(table, 0)))
    with pytest.raises(RowsTakenBack, match=RESTORED):
        appends.commit(appends.target(), [], rows=0, progress=replace(at(1), after=1))
    assert not log_file(table, 3).exists()


@pytest.mark.parametrize(
    ("operation", "parameters", "keyed", "appends"),
    [
        ("RESTORE", {"version": 1}, True, True),
        ("CREATE OR REPLACE TABLE AS SELECT", {}, True, True),
        ("WRITE", {"mode": "Overwrite"}, True, False),
        ("WRITE", {"mode": "Overwrite", "predicate": "id > 1"}, False, False),
        ("WRITE", {"mode": "Append"}, False, False),
        ("DELETE", {"predicate": "[]"}, True, False),
        ("TRUNCATE", {}, True, False),
        ("CLONE", {"source": "u"}, True, True),
        ("DELETE", {"predicate": '["(id > 1)"]'}, False, False),
        ("OPTIMIZE", {}, False, False),
        ("UPDATE", {}, False, False),
    ],
)
def test_which_commits_take_rows_back(
    spark: SparkSession, lake: Path, operation: str, parameters: Mapping[str, Any], keyed: bool, appends: bool
) -> None:
    """Rows that another writer has only changed, or appended and taken again, are that writer's matter."""
    table = made(spark, lake / "t")
    about = {"timestamp": 1, "operation": operation, "operationParameters": parameters}
    log_file(table, 1).write_text(json.dumps({"commitInfo": about}) + "\n")
    for key, takes_back in ((("id",), keyed), ((), appends)):
        progress = replace(at(0), after=0, key=key)
        if takes_back:
            with pytest.raises(RowsTakenBack):
                following(table, progress, 1)
        else:
            assert following(table, progress, 1).after == 1
    warned = keyed and operation != "RESTORE"
    assert [("replaced or deleted all rows" in text) for text in overwrites(table, 0)] == (
        [True] if warned else []
    )


def test_another_table_in_the_same_place_is_not_merged_into(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    other = made(spark, lake / "u")
    replaced = replace(table, target=other.target)
    with pytest.raises(TableError, match="was replaced by another one during this run"):
        newest_version(replaced)
    with pytest.raises(TableError, match="was replaced by another one during this run"):
        by_spark(replaced, frame(table, [("+U", 1, "a")]), key=["id"], progress=at(0))
    assert content(open_table(spark, other.target, FIELDS)) == set()
