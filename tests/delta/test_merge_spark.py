"""One batch, one commit: what MERGE does to rows, files, feed and settings."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_spark import SparkEngine
from bridge.errors import BridgeError, ConcurrentRunError, TableError
from bridge.session import session_settings
from tests.delta.tables import (
    FIELDS,
    NO_VECTORS,
    SMALL_TABLES,
    Merge,
    actions,
    append,
    at,
    by_spark,
    commit_by_hand,
    content,
    frame,
    kinds,
    log_file,
    made,
    on_any_table,
)

BRIDGE_SETTINGS = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.commitInfo.userMetadata",
    "spark.databricks.delta.merge.materializeSource",
)


def test_a_batch_is_one_commit_with_its_progress(merge: Merge, spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "b"), (3, "c"), (4, "d")])
    changes = frame(table, [("+U", 1, "x"), ("+I", 2, "b"), ("-D", 3, None), ("-U", 4, "d"), ("+U", 5, "n")])
    result = merge(table, changes, key=["id"], progress=at(0))
    assert result == MergeResult(version=2, inserted=1, updated=1, deleted=2, skipped=False)
    assert content(table) == {(1, "x"), (2, "b"), (5, "n")}
    assert read_progress(table, "p") == (at(0), 2)
    assert (
        next(a["txn"] for a in actions(table, 2) if "txn" in a).items()
        >= {"appId": "bridge/p", "version": 0}.items()
    )
    assert not log_file(table, 3).exists()


@pytest.mark.parametrize("vectors", ["with deletion vectors", "without"])
@on_any_table
def test_a_batch_that_changes_nothing_writes_no_file_and_no_feed_row(
    merge: Merge, spark: SparkSession, lake: Path, vectors: str
) -> None:
    table = made(
        spark,
        lake / "t",
        rows=[(1, "a"), (2, None)],
        properties={} if vectors.startswith("with ") else NO_VECTORS,
    )
    changes = frame(table, [("+U", 1, "a"), ("+U", 2, None), ("-D", 3, None)])
    assert merge(table, changes, key=["id"], progress=at(0)) == MergeResult(version=2)
    assert kinds(table, 2) == {"commitInfo", "txn"}
    assert read_progress(table, "p") == (at(0), 2)
    assert merge(table, frame(table, []), key=["id"], progress=at(1)) == MergeResult(version=3)
    assert kinds(table, 3) == {"commitInfo", "txn"}


@on_any_table
def test_without_vectors_the_effective_changes_still_arrive(
    merge: Merge, spark: SparkSession, lake: Path
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")], properties=NO_VECTORS)
    append(table, [(2, "b"), (3, None), (4, "d")])
    changes = frame(table, [("+U", 1, "a"), ("+U", 2, "x"), ("+U", 3, "y"), ("-D", 4, None), ("+I", 5, None)])
    assert merge(table, changes, key=["id"], progress=at(0)) == MergeResult(
        3, inserted=1, updated=2, deleted=1
    )
    assert content(table) == {(1, "a"), (2, "x"), (3, "y"), (5, None)}
    untouched = next(a["add"]["path"] for a in actions(table, 1) if "add" in a)
    assert untouched not in {a["remove"]["path"] for a in actions(table, 3) if "remove" in a}


@pytest.mark.versions
def test_settings_are_put_back_and_the_next_write_is_its_own(spark: SparkSession, lake: Path) -> None:
    merge = by_spark
    session = spark.newSession()
    session.conf.set(BRIDGE_SETTINGS[2], "the user's note")
    table = made(spark, lake / "t").on(session)
    changes = frame(table, [("+U", 1, "a")]).persist()
    merge(table, changes, key=["id"], progress=at(0))
    with pytest.raises(BridgeError):
        merge(table, frame(table, [("+U", 1, "b"), ("+U", 1, "c")]), key=["id"], progress=at(1))
    changes.unpersist()
    assert [session.conf.get(key, None) for key in BRIDGE_SETTINGS] == [None, None, "the user's note", None]
    session.conf.unset(BRIDGE_SETTINGS[2])
    append(table, [(2, "b")])
    assert content(table) == {(1, "a"), (2, "b")}
    assert kinds(table, 2) == {"commitInfo", "add"}
    assert "userMetadata" not in actions(table, 2)[0]["commitInfo"]


def test_a_batch_that_is_there_already_is_not_applied_again(
    merge: Merge, spark: SparkSession, lake: Path
) -> None:
    table = made(spark, lake / "t")
    merge(table, frame(table, [("+U", 1, "a")]), key=["id"], progress=at(0))
    again = merge(table, frame(table, [("+U", 1, "b")]), key=["id"], progress=at(0))
    assert again == MergeResult(version=1, skipped=True)
    with pytest.raises(ConcurrentRunError) as caught:
        merge(table, frame(table, [("+U", 1, "c")]), key=["id"], progress=at(0, run="run-2"))
    assert str(caught.value) == (
        f"table {table}: batch 0 of pipeline 'p' was not applied: run 'run-1' has committed batch 0, this is "
        "run 'run-2'. Make sure that only one run is alive, then start it again: it continues from the table"
    )
    late = replace(at(-1), offsets=at(0).offsets)
    with pytest.raises(ConcurrentRunError, match="batch -1 of pipeline 'p' was not applied"):
        merge(table, frame(table, [("+U", 1, "d")]), key=["id"], progress=late)
    assert content(table) == {(1, "a")}
    assert not log_file(table, 2).exists()


@pytest.mark.slow
def test_after_a_restore_the_next_batch_is_applied(merge: Merge, spark: SparkSession, lake: Path) -> None:
    """Delta keeps its batch numbers over a RESTORE; read_progress does, too."""
    table = made(spark, lake / "t")
    merge(table, frame(table, [("+U", 1, "a")]), key=["id"], progress=at(0))
    merge(table, frame(table, [("+U", 1, "b")]), key=["id"], progress=at(1))
    table.delta().restoreToVersion(1)
    restored = read_progress(table, "p")
    assert restored and restored[0].offsets == at(0).offsets
    following = replace(restored[0], batch=restored[0].batch + 1, offsets=at(1).offsets)
    assert merge(table, frame(table, [("+U", 1, "b")]), key=["id"], progress=following).updated == 1
    assert content(table) == {(1, "b")}


def test_another_pipelines_table_is_not_written(merge: Merge, spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    with pytest.raises(TableError, match="belongs to pipeline 'p', not 'q'"):
        merge(table, frame(table, [("+U", 1, "a")]), key=["id"], progress=replace(at(0), pipeline="q"))
    assert not log_file(table, 1).exists()


def test_a_key_twice_in_the_changes_is_refused(merge: Merge, spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    twice = frame(table, [("+U", 1, "secret"), ("+U", 1, "c")])
    with pytest.raises(BridgeError, match="contain a key twice: compact them before merging") as caught:
        merge(table, twice, key=["id"], progress=at(0))
    assert "secret" not in str(caught.value)
    assert content(table) == {(1, "a")}


def test_the_error_of_a_broken_constraint_has_no_values(spark: SparkSession, lake: Path) -> None:
    merge = by_spark
    table = made(spark, lake / "t")
    spark.sql(f"ALTER TABLE delta.`{lake}/t` ADD CONSTRAINT short CHECK (length(v) < 3)")
    with pytest.raises(TableError, match="breaks the constraint short; nothing of it is written") as caught:
        merge(table, frame(table, [("+U", 1, "secret")]), key=["id"], progress=at(0))
    assert "secret" not in str(caught.value)


def test_errors_of_the_changes_themselves_pass_through(merge: Merge, spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    changes = frame(table, [("+U", 1, "a")]).selectExpr("id", "raise_error('t-0 at offset 7') AS v", "__kind")
    with pytest.raises(Exception, match="t-0 at offset 7") as caught:
        merge(table, changes, key=["id"], progress=at(0))
    assert not isinstance(caught.value, BridgeError)
    assert read_progress(table, "p") is None


def test_keys_are_null_safe_and_names_and_types_are_anything(spark: SparkSession, lake: Path) -> None:
    merge = by_spark
    fields = [
        T.StructField("a.b", T.StringType()),
        T.StructField("k 2", T.DecimalType(5, 2)),
        T.StructField("m", T.MapType(T.StringType(), T.ArrayType(T.LongType()))),
        T.StructField("s", T.StructType([T.StructField("x y", T.BinaryType())])),
    ]
    one, two = Decimal("1.00"), Decimal("2.00")
    rows = [
        (None, one, {"p": [1], "q": None}, (b"\x00",)),
        ("k", None, {}, None),
        (None, None, None, (None,)),
    ]
    table = made(spark, lake / "t", fields=fields, rows=rows)
    changes = [
        ("+U", None, one, {"q": None, "p": [1]}, (b"\x00",)),
        ("+U", "k", None, {"p": None}, (None,)),
        ("-D", None, None, None, None),
        ("+U", "k", two, None, None),
    ]
    result = merge(table, frame(table, changes), key=["a.b", "k 2"], progress=at(0))
    assert (result.inserted, result.updated, result.deleted) == (1, 1, 1)
    rows_by_key = {(r[0], r[1]): (r[2], r[3] and r[3][0]) for r in table.delta().toDF().collect()}
    assert rows_by_key == {
        (None, one): ({"p": [1], "q": None}, bytearray(b"\x00")),
        ("k", None): ({"p": None}, None),
        ("k", two): (None, None),
    }


def test_a_table_of_keys_alone(merge: Merge, spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", fields=FIELDS[:1], rows=[(1,), (2,)])
    result = merge(table, frame(table, [("+U", 1), ("-D", 2), ("+U", 3)]), key=["id"], progress=at(0))
    assert (result.inserted, result.updated, result.deleted) == (1, 0, 1)


def test_progress_stays_readable_in_the_log_after_a_foreign_commit(
    merge: Merge, spark: SparkSession, lake: Path
) -> None:
    table = made(spark, lake / "t")
    merge(table, frame(table, [("+U", 1, "a")]), key=["id"], progress=at(0))
    commit_by_hand(table, 2)
    assert merge(table, frame(table, []), key=["id"], progress=at(1)).version == 3
    metadata = json.loads(actions(table, 3)[0]["commitInfo"]["userMetadata"])
    assert metadata["bridge"]["batch"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(("few", "sign"), [(1000, "INSET"), (1, "might_contain")], ids=["named", "bounds"])
@pytest.mark.versions
def test_spark_shuffles_rows_with_a_match_alone(spark: SparkSession, lake: Path, few: int, sign: str) -> None:
    """Whatever the size of the table: in the join that finds them, and in the outer join that writes."""
    engine = SparkEngine(SMALL_TABLES, max_named_keys=few)
    table = made(spark, lake / "t", rows=[(n, "a") for n in range(2000)])
    changes = frame(table, [("+U", 7, "b"), ("-D", 1000, None), ("+U", -1, "n"), ("+U", 3000, "n")]).persist()
    last = max(_plans(spark), default=-1)
    with session_settings(spark, {"spark.sql.ui.explainMode": "formatted"}):  # with counts of rows
        done = engine.merge(table, changes, key=["id"], progress=at(0))
    assert done == MergeResult(2, 2, 1, 1)
    assert len(content(table)) == 2001
    plans = [plan for n, plan in _plans(spark).items() if n > last and sign in plan]
    assert any("Outer" in plan for plan in plans)
    moved = [
        float(n) for plan in plans for n in re.findall(r"ShuffleQueryStage.*?rowCount=([0-9.E+]+)", plan)
    ]
    assert moved and max(moved) < 100


def _plans(spark: SparkSession) -> dict[int, str]:
    """The physical plans of the queries that Spark still knows, by their numbers."""
    stored = spark._jsparkSession.sharedState().statusStore().executionsList()
    executions = [stored.apply(n) for n in range(stored.size())]
    return {one.executionId(): str(one.physicalPlanDescription()) for one in executions}
