"""Brings the rows of a query over few rows into the driver: a refresh merges them there, and Spark caches nothing."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bridge.backend.plans import estimated_bytes
from bridge.columns import frame_of
from bridge.session import is_local, session_settings

FEW_BYTES = 8 << 20
"""Of data files, which are compressed: a million rows or two of a few columns. A query over them has no more rows."""
_ADAPTIVE = "spark.sql.adaptive.enabled"


def are_few(frames: Iterable[DataFrame]) -> bool:
    """Whether all rows of these frames may come into the driver, by Spark's estimate; False where it has none."""
    return are_few_bytes(sum(map(estimated_bytes, frames)))


def are_few_bytes(size: int) -> bool:
    """Whether all rows of data files of this size may come into the driver."""
    return size <= FEW_BYTES


def collected(frame: DataFrame) -> DataFrame:
    """The same rows, computed once; a frame of the same session, whose plan holds them."""
    with planned_once(frame.sparkSession):
        rows: pa.Table = frame.toArrow()
    return frame_of(frame.sparkSession, rows, frame.schema)


def planned_once(spark: SparkSession) -> AbstractContextManager[None]:
    """Plan queries before they run, and not again after each of their stages: with few rows that takes longer than the
    stages. For local Spark, which has as few partitions as cores."""
    return session_settings(spark, {_ADAPTIVE: "false"}) if is_local(spark) else nullcontext()
