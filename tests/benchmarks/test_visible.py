"""When a record could be seen: by the version that holds it, and the time at which that version was there."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from benchmarks.visible import (
    Watch,
    delta_changes,
    delta_version,
    paimon_changes,
    paimon_version,
    seen_at,
)

Rows = list[tuple[int, int, int]]


def changes(rows: Rows) -> pa.Table:
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(("version", "id", "number"))})


def test_a_record_is_seen_with_its_version_or_with_a_successor_that_replaced_it_before_it_was_committed() -> (
    None
):
    keys = np.array([5, 6, 5, 5, 7, 8])
    written = changes([(2, 5, 3), (2, 6, 2), (3, 5, 4), (4, 8, 6)])
    times = seen_at(keys, written, {2: 20.0, 3: 30.0, 4: 40.0})
    assert times[[0, 1, 2, 3, 5]].tolist() == [20.0, 20.0, 20.0, 30.0, 40.0]
    assert math.isnan(times[4])  # no version has key 7


def test_a_record_behind_the_last_version_of_its_key_is_not_seen() -> None:
    assert np.isnan(seen_at(np.array([5, 5]), changes([(2, 5, 1)]), {2: 20.0})).tolist() == [False, True]


def test_a_watch_notes_when_versions_come_after_its_start(tmp_path: Path) -> None:
    def appear(version: int) -> float:
        file = paimon_version(tmp_path, version)
        file.parent.mkdir(exist_ok=True)
        file.touch()
        return time.time()

    appear(1)
    watch = Watch(lambda version: paimon_version(tmp_path, version).exists())
    try:
        came = [appear(2), appear(3)]
        deadline = time.monotonic() + 10
        while len(watch.times) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        watch.stop()
    appear(4)
    assert list(watch.times) == [2, 3]
    assert all(0 <= watch.times[version] - at + 0.01 < 5 for version, at in zip((2, 3), came, strict=True))


@pytest.mark.slow
def test_the_change_feed_says_what_a_version_of_a_delta_table_has_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    rows = spark.createDataFrame([(1, 1), (2, 2)], "id BIGINT, number BIGINT")
    rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(path))
    spark.sql(f"UPDATE delta.`{path}` SET number = 3 WHERE id = 2")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    assert delta_version(path, 2).is_file() and not delta_version(path, 3).exists()
    found = delta_changes(spark, path, {0: 1.0, 1: 2.0, 2: 3.0}).collect()
    assert sorted(map(tuple, found)) == [(0, 1, 1), (0, 2, 2), (1, 2, 3)]


def test_manifests_say_what_a_snapshot_of_a_paimon_table_has_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A table as Paimon's specification describes it: a snapshot, its list of manifests, its data files."""
    for folder in ("snapshot", "manifest", "bucket-0", "bucket-1"):
        (tmp_path / folder).mkdir()

    def avro(name: str, records: list[dict[str, Any]], fields: list[dict[str, Any]]) -> None:
        schema = fastavro.parse_schema({"type": "record", "name": name.replace("-", "_"), "fields": fields})
        with (tmp_path / "manifest" / name).open("wb") as out:
            fastavro.writer(out, schema, records)

    text = {"name": "_FILE_NAME", "type": "string"}
    file = {"name": "_FILE", "type": {"type": "record", "name": "file", "fields": [text]}}
    numbers = [{"name": name, "type": "int"} for name in ("_KIND", "_BUCKET")]

    def snapshot(version: int, kind: str, entries: list[tuple[int, int, str, Rows]]) -> None:
        listed = [{"_KIND": k, "_BUCKET": b, "_FILE": {"_FILE_NAME": name}} for k, b, name, _ in entries]
        avro(f"manifest-{version}", listed, [*numbers, file])
        avro(f"list-{version}", [{"_FILE_NAME": f"manifest-{version}"}], [text])
        described = {"commitKind": kind, "deltaManifestList": f"list-{version}"}
        paimon_version(tmp_path, version).write_text(json.dumps(described))
        for kind_of_file, bucket, name, rows in entries:
            if kind_of_file == 0:
                ids = pa.table({"id": [row[1] for row in rows], "number": [row[2] for row in rows]})
                pq.write_table(ids, tmp_path / f"bucket-{bucket}" / name)

    snapshot(2, "APPEND", [(0, 0, "a.parquet", [(2, 1, 1)]), (0, 1, "b.parquet", [(2, 2, 2), (2, 3, 3)])])
    snapshot(3, "COMPACT", [(1, 0, "a.parquet", []), (0, 0, "c.parquet", [(3, 1, 1)])])
    snapshot(4, "APPEND", [(0, 0, "d.parquet", [(4, 1, 4)])])
    found = paimon_changes(spark, tmp_path, {2: 2.0, 3: 3.0, 4: 4.0}).collect()
    assert sorted(map(tuple, found)) == [(2, 1, 1), (2, 2, 2), (2, 3, 3), (4, 1, 4)]
