"""Few rows are the same in the driver, and the session is left as it was."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from bridge.backend.plans import estimated_bytes
from bridge.pipelines.scripts import few_rows
from bridge.pipelines.scripts.few_rows import are_few, are_few_bytes, collected, planned_once
from bridge.session import child_session, is_local

SCHEMA = (
    "id BIGINT NOT NULL, s STRING, d DECIMAL(38, 9), at TIMESTAMP, ntz TIMESTAMP_NTZ, day DATE, raw BINARY, "
    "n STRUCT<a: ARRAY<MAP<STRING, INT>>>, f FLOAT"
)
MOMENT = datetime(1600, 2, 29, 23, 59, 59, 999999)


def test_rows_of_all_types(spark: SparkSession) -> None:
    session = child_session(spark)
    rows = [
        (1, "é", Decimal("-1.500000000"), MOMENT, MOMENT, date(1, 1, 1), b"\0", ([{"k": None}, None],), -0.0),
        (2, *[None] * 8),
    ]
    frame = session.createDataFrame(rows, SCHEMA)
    found = collected(frame)
    assert found.schema == frame.schema and found.collect() == frame.collect()
    assert collected(frame.where("id < 0")).collect() == []
    assert found.sparkSession is session


def test_few_is_a_sum(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.sql("SELECT * FROM VALUES (1L), (2L) AS t(id)")
    assert are_few([]) and are_few([frame, frame])
    monkeypatch.setattr(few_rows, "FEW_BYTES", estimated_bytes(frame))
    assert are_few([frame]) and not are_few([frame, frame])
    assert are_few_bytes(few_rows.FEW_BYTES) and not are_few_bytes(few_rows.FEW_BYTES + 1)
    rdd = spark.createDataFrame(spark.sparkContext.parallelize([(1,)]), "id BIGINT")
    assert not are_few([rdd]), "nobody knows how many rows it has"


def test_a_plan_is_not_changed_within(spark: SparkSession) -> None:
    session = child_session(spark)
    assert is_local(session)
    adaptive = session.conf.get("spark.sql.adaptive.enabled")
    with planned_once(session):
        assert session.conf.get("spark.sql.adaptive.enabled") == "false"
        assert spark.conf.get("spark.sql.adaptive.enabled") == adaptive
    assert session.conf.get("spark.sql.adaptive.enabled") == adaptive
