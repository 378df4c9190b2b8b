"""Claims of pipelines on columns of one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.delta import column_owners
from bridge.delta import table as table_module
from bridge.delta.column_owners import Claim, claims, open_shared_table
from bridge.delta.ingest_progress import read_progress
from bridge.delta.table import Table, claim, create_table, open_table
from bridge.errors import DefinitionError, GapError, TableError
from tests.delta.tables import actions, at, by_spark, commit_by_hand, frame, kinds, log_file

ID = T.StructField("id", T.LongType())
A, B, C = (T.StructField(name, T.StringType()) for name in "abc")


def opened(
    spark: SparkSession,
    folder: Path,
    pipeline: str,
    *own: T.StructField,
    key: Sequence[T.StructField] = (ID,),
    **more: object,
) -> Table:
    target = replace(DeltaTarget(str(folder), merge_columns=tuple(f.name for f in own)), **more)  # type: ignore[arg-type]
    return open_shared_table(spark, target, [*key, *own], pipeline=pipeline, key=[f.name for f in key])


def test_the_second_pipeline_adds_its_columns_and_both_are_recorded(spark: SparkSession, lake: Path) -> None:
    first = opened(spark, lake / "t", "one", A)
    second = opened(spark, lake / "t", "two", B, C)
    assert (first.columns, second.columns) == (("id", "a"), ("id", "b", "c"))
    assert second.delta().toDF().columns == ["id", "a", "b", "c"]
    assert claims("t", second.properties) == {
        "one": Claim(("id",), ("a",)),
        "two": Claim(("id",), ("b", "c")),
    }
    assert "bridge.pipeline" not in second.properties
    newest = 2  # the claim, and the columns
    for _ in range(2):
        opened(spark, lake / "t", "one", A)
        opened(spark, lake / "t", "two", B, C)
    assert log_file(second, newest).exists() and not log_file(second, newest + 1).exists()
    assert kinds(second, 1) == {"commitInfo", "metaData"}

    # A DDL with another column claims that one, too.
    third = opened(spark, lake / "t", "one", A, T.StructField("d", T.LongType()))
    assert claims("t", third.properties)["one"] == Claim(("id",), ("a", "d"))
    assert third.delta().toDF().columns == ["id", "a", "b", "c", "d"]


def test_refusals(spark: SparkSession, lake: Path) -> None:
    table = opened(spark, lake / "t", "one", A, B)
    before = open_table(spark, table.target, table.fields).properties

    def refused(message: str, make: Callable[[], object]) -> None:
        with pytest.raises(TableError, match=re.escape(message)):
            make()

    refused(
        "column 'B' is named by two pipelines in `delta.merge-columns`, 'one' and 'two'",
        lambda: opened(spark, lake / "t", "two", C, T.StructField("B", T.StringType())),
    )
    refused(
        "pipeline 'one' merges by the PRIMARY KEY (id), and pipeline 'two' by (c)",
        lambda: opened(spark, lake / "t", "two", T.StructField("d", T.StringType()), key=[C]),
    )
    refused(
        "has columns of other pipelines (one), whose rows pipeline 'two' would overwrite or delete; set `delta: "
        "{merge-columns: all}`",
        lambda: claim(open_table(spark, table.target, table.fields), "two"),
    )
    refused(
        "pipeline 'one' has merged into columns of its own, and its file no longer has `delta.merge-columns`",
        lambda: claim(open_table(spark, table.target, table.fields), "one"),
    )
    refused(
        "other type: `a` is string, wanted bigint", lambda: opened(spark, lake / "t", "one", replaced(A), B)
    )
    assert open_table(spark, table.target, table.fields).properties == before
    with pytest.raises(
        DefinitionError, match=r"'bridge.merge-columns.one' is set by the bridge; leave it out"
    ):
        opened(spark, lake / "u", "one", A, properties={"bridge.merge-columns.one": "x"})
    spark.sql(f"ALTER TABLE delta.`{lake}/t` SET TBLPROPERTIES ('bridge.merge-columns.one' = 'broken')")
    refused(
        "the table property 'bridge.merge-columns.one' is not as the bridge wrote it; UNSET it",
        lambda: opened(spark, lake / "t", "two", C),
    )


def replaced(field: T.StructField) -> T.StructField:
    return T.StructField(field.name, T.LongType())


def test_columns_must_be_nullable(spark: SparkSession, lake: Path) -> None:
    spark.sql(f"CREATE TABLE delta.`{lake}/t` (id BIGINT NOT NULL, `x` INT NOT NULL, a STRING) USING delta")
    way_out = re.escape(f"ALTER TABLE delta.`{lake}/t` ALTER COLUMN `x` DROP NOT NULL")
    with pytest.raises(TableError, match=rf"column 'x' is NOT NULL.*\n.*{way_out}"):
        opened(spark, lake / "t", "one", A)


def test_a_table_of_one_pipeline_is_shared_by_its_file(spark: SparkSession, lake: Path) -> None:
    create_table(spark, DeltaTarget(str(lake / "t")), [ID, A], pipeline="one")
    with pytest.raises(
        TableError,
        match=r"belongs to pipeline 'one' alone, not 'two': set `delta.merge-columns` in the file of 'one'",
    ):
        opened(spark, lake / "t", "two", B)
    opened(spark, lake / "t", "one", A)
    table = opened(spark, lake / "t", "two", B)
    assert set(claims("t", table.properties)) == {"one", "two"}
    assert "bridge.pipeline" not in table.properties


def test_of_two_claims_at_the_same_time_the_later_one_is_taken_back(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(spark, lake / "t", "one", A)
    real, waiting = table_module.set_properties, [True]

    def set_properties(*given: object) -> None:
        if waiting:
            waiting.pop()
            opened(spark, lake / "t", "three", C)
        real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(column_owners, "set_properties", set_properties)
    with pytest.raises(TableError, match=r"column 'c' is named by two pipelines.*, 'three' and 'two'"):
        opened(spark, lake / "t", "two", B, C)
    monkeypatch.undo()
    table = opened(spark, lake / "t", "three", C)
    assert set(claims("t", table.properties)) == {"one", "three"}


def test_another_pipeline_has_created_the_table_meanwhile(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = table_module.create_if_absent

    def create(*given: object, **more: object) -> None:
        monkeypatch.undo()
        opened(spark, lake / "t", "one", A)
        real(*given, **more)  # type: ignore[arg-type]
        raise TableError("Delta refused")

    monkeypatch.setattr(column_owners, "create_if_absent", create)
    table = opened(spark, lake / "t", "two", B)
    assert table.delta().toDF().columns == ["id", "a", "b"]
    assert set(claims("t", table.properties)) == {"one", "two"}


def test_a_pipeline_joins_a_table_whose_log_has_been_cleaned(spark: SparkSession, lake: Path) -> None:
    one = opened(spark, lake / "t", "one", A)
    own = replace(at(0), pipeline="one")
    by_spark(one, frame(one, [("+U", 1, "x")]), key=["id"], progress=own)
    for version in range(2, 10):
        commit_by_hand(one, version)
    two = opened(spark, lake / "t", "two", B)
    spark.sql(f"OPTIMIZE delta.`{lake}/t`")
    for version in range(12, 21):
        commit_by_hand(one, version)
    assert list(lake.glob("t/_delta_log/*10.checkpoint.parquet"))
    for version in range(10):
        log_file(one, version).unlink()
    jvm = spark._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert "commitInfo" in {name for action in actions(two, 10) for name in action}
    assert read_progress(two, "two") is None
    with pytest.raises(GapError, match="has no progress any more"):
        read_progress(one, "one")
