"""The checker's reader of tables returns every row of every file in the log, whatever the statistics are."""

from __future__ import annotations

import json
import struct
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.faults.checker import judge
from tests.faults.documents import BAD, KEY_TYPES, KEYS, UNKNOWN, Documents
from tests.faults.history import Commit, History, Record
from tests.faults.lane import draw_lanes
from tests.faults.parquet import Log
from tests.faults.reading import Observer
from tests.faults.vectors import MAGIC, NO_RUNS, RUNS, deleted_rows, read_array


def commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)))


def added(table: Path, name: str, ids: list[int], *, stats: tuple[int, int]) -> dict[str, Any]:
    """A data file, and an add action whose statistics may be wrong."""
    table.mkdir(parents=True, exist_ok=True)
    rows = {"id": ids, "seq": [1] * len(ids), "writer": ["plain"] * len(ids), "seed": [7] * len(ids)}
    pq.write_table(pa.table(rows), table / name)
    low, high = stats
    told = {
        "numRecords": len(ids),
        "minValues": {"id": low},
        "maxValues": {"id": high},
        "nullCount": {"id": 0},
    }
    return {"add": {"path": name, "stats": json.dumps(told), "dataChange": True}}


def test_a_key_that_is_there_twice_is_found_though_statistics_say_otherwise(tmp_path: Path) -> None:
    table = tmp_path / "table"
    commit(table, 0, added(table, "a.parquet", [1, 2], stats=(1, 2)))
    commit(table, 1, added(table, "b.parquet", [2, 3], stats=(3, 3)))
    seen = Observer("", ["t"], table, tmp_path / "none")
    for _ in seen.log.commits():
        pass
    rows = seen.rows()
    assert sorted(key for key, _ in rows) == [1, 2, 2, 3]
    wanted = [Record(0, n, key, (1, "plain", 7)) for n, key in enumerate((1, 2, 3))]
    verdict = judge(History(topic_in=wanted, commits=[Commit(1, 0, 0, {0: 3})], table=rows), drained=False)
    assert verdict.counts["duplicated"] == 1 and verdict.examples == [
        "duplicated: table: key 2 is there 2 times"
    ]


def test_a_removed_file_is_gone_and_one_that_comes_again_is_there(tmp_path: Path) -> None:
    first, second = (added(tmp_path, f"{n} b.parquet", [n], stats=(n, n)) for n in (1, 2))
    first["add"]["path"] = "1%20b.parquet"
    commit(tmp_path, 0, first)
    commit(tmp_path, 1, {"remove": {"path": "1%20b.parquet"}}, second)
    log = Log(tmp_path)
    assert [version for version, _ in log.commits()] == [0, 1]
    assert log.rows(["id"]) == [(2,)] and log.files == {"2 b.parquet"}
    commit(tmp_path, 2, first)
    assert [version for version, _ in log.commits()] == [2]
    assert sorted(log.rows(["id"])) == [(1,), (2,)]


def portable(*containers: tuple[int, int, bytes], runs: bytes = b"") -> bytes:
    """A roaring bitmap of (high bits, values, body) in an array of one."""
    size = len(containers)
    cookie = struct.pack("<I", RUNS | (size - 1) << 16) + runs if runs else struct.pack("<II", NO_RUNS, size)
    heads = b"".join(struct.pack("<HH", high, count - 1) for high, count, _ in containers)
    places = b"\0" * 4 * size if not runs or size >= 4 else b""
    bodies = b"".join(body for _, _, body in containers)
    return struct.pack("<iqI", MAGIC, 1, 1) + cookie + heads + places + bodies


def test_each_form_of_a_deletion_vector() -> None:
    high = 1 << 32
    listed = struct.pack("<3H", 1, 5, 65535)
    bits = bytearray(8192)
    bits[0], bits[8191] = 0b101, 0x80
    whole = portable((0, 3, listed), (2, 5000, bytes(bits)))
    assert [*read_array(whole)] == [high + n for n in (1, 5, 65535, 2 << 16, (2 << 16) + 2, (3 << 16) - 1)]
    run = portable((0, 4, struct.pack("<5H", 2, 3, 2, 9, 0)), runs=b"\x01")
    assert [*read_array(run)] == [high + n for n in (3, 4, 5, 9)]
    with pytest.raises(ValueError, match="begins with"):
        [*read_array(b"\0" * 12)]
    assert deleted_rows(Path("none"), None) == set()


def test_deletion_vectors_as_spark_writes_them(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    told = spark.range(0, 3000, 1, 1).write.format("delta").option("delta.enableDeletionVectors", "true")
    told.save(path)
    for where in ("id % 3 = 0", "id between 500 and 900", "id = 2999"):
        spark.sql(f"DELETE FROM delta.`{path}` WHERE {where}")
    log = Log(tmp_path / "t")
    told_of = [a["add"] for _, actions in log.commits() for a in actions if "add" in a]
    assert sum("deletionVector" in add for add in told_of) == 3
    left = [n for n in range(3000) if n % 3 and not 500 <= n <= 900 and n != 2999]
    assert [row[0] for row in log.rows(["id"])] == left


@pytest.mark.parametrize("key", KEY_TYPES)
def test_documents_are_read_back(key: str) -> None:
    assert len({KEY_TYPES[key].values(n) for n in range(KEYS)}) == KEYS
    assert KEY_TYPES[key].number(("nobody's",)) == UNKNOWN
    for format in ("json", "debezium-json"):
        documents = Documents(key, format)
        for number in (0, 1, KEYS - 1):
            for row in ((5, "plain", 7), None):
                value = documents.value(number, row, (4, "plain", 7))
                assert documents.read(documents.key(number), value) == (number, row)
        with pytest.raises(ValueError, match="no document"):
            documents.read(documents.key(1), BAD)


def test_a_row_under_another_key_is_nobody_s() -> None:
    documents = Documents()
    assert documents.read(documents.key(1), documents.value(2, (5, "plain", 7))) == (UNKNOWN, (5, "plain", 7))


def test_all_lanes_have_key_types_of_more_than_a_double_holds() -> None:
    (value,) = KEY_TYPES["DECIMAL(38,0)"].values(1)
    assert int(float(value)) != int(value) and len(str(value)) == 38
    assert {lane.key for lane in islice(draw_lanes(1), 4)} == set(KEY_TYPES)
