"""Which files delta-rs would misread, by their statistics and their footers; no Spark here."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema
from pyspark.sql import types as T

from bridge.delta.int96_timestamps import misread_by_delta_rs

FIELDS = [T.StructField("id", T.LongType()), T.StructField("at", T.TimestampType())]
SHAPE = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
NOW = datetime(2024, 1, 1, tzinfo=timezone.utc)
FAR = datetime(9999, 12, 31, tzinfo=timezone.utc)
OLD = datetime(1, 1, 1, tzinfo=timezone.utc)


def with_file(place: Path, moments: list[datetime | None], *, int96: bool, stats: bool = True) -> DeltaTable:
    table = DeltaTable.create(str(place), schema=Schema.from_arrow(SHAPE))
    near = [NOW if m else None for m in moments]  # what stands in the file does not matter here
    rows = pa.table({"id": list(range(len(near))), "at": near}, SHAPE)
    pq.write_table(rows, place / "a b.parquet", use_deprecated_int96_timestamps=int96)
    file_stats: dict[str, Any] = {"numRecords": len(moments)}
    there = sorted(m for m in moments if m)
    if stats:
        file_stats["nullCount"] = {"at": len(moments) - len(there)}
    if stats and there:
        file_stats["minValues"], file_stats["maxValues"] = (
            {"at": m.strftime("%Y-%m-%dT%H:%M:%S.000Z").zfill(24)} for m in (there[0], there[-1])
        )
    add = {
        "path": "a%20b.parquet",
        "partitionValues": {},
        "size": 1,
        "modificationTime": 0,
        "dataChange": True,
    }
    text = json.dumps({"add": {**add, "stats": json.dumps(file_stats)}})
    (place / f"_delta_log/{1:020}.json").write_text(text)
    table.update_incremental()
    return table


@pytest.mark.parametrize("moments", [[FAR], [OLD], [NOW, FAR], [OLD, None]])
def test_what_is_out_of_reach(tmp_path: Path, moments: list[datetime | None]) -> None:
    assert misread_by_delta_rs(with_file(tmp_path / "int96", moments, int96=True), FIELDS) == "at"
    assert misread_by_delta_rs(with_file(tmp_path / "micros", moments, int96=False), FIELDS) is None


@pytest.mark.parametrize("moments", [[NOW], [NOW, None], [None]])
def test_what_is_within_reach(tmp_path: Path, moments: list[datetime | None]) -> None:
    assert misread_by_delta_rs(with_file(tmp_path / "t", moments, int96=True), FIELDS) is None
    assert misread_by_delta_rs(with_file(tmp_path / "u", moments, int96=True, stats=False), FIELDS) == "at", (
        "nobody knows"
    )


def test_a_table_without_timestamps_is_not_looked_at(tmp_path: Path) -> None:
    assert misread_by_delta_rs(with_file(tmp_path / "t", [FAR], int96=True), FIELDS[:1]) is None
