"""What Flink has written as texts is read back with its types."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import paimon
from benchmarks.oracle import wrong
from benchmarks.topics import Load

ROWS = """\
1,customer-1,PAID,0.20,"2023-11-14 22:13:20.001",-,1
2,customer-2,SENT,0.40,"2023-11-14 22:13:20.002",-,2
7,customer-7,NEW,1.01,"2023-11-14 22:13:20.004","please leave it at the door",4
"""


def test_a_dump_is_compared_as_the_rows_that_it_describes(spark: SparkSession, tmp_path: Path) -> None:
    load = Load.random(4, 1, seed=1, tombstones=0.0)
    load.keys[:] = (1, 2, 1, 7)
    (tmp_path / "part-0").write_text(ROWS)
    stale = "1 of 3 rows differ from the last record of their key"
    assert wrong(paimon.dumped(spark, tmp_path), load) == stale  # the third record is of key 1, too
    load.keys[2] = 9
    load.deletes[2] = True
    assert wrong(paimon.dumped(spark, tmp_path), load) is None


def test_a_table_that_has_rows_is_not_read_with_a_source_that_drops_deletes_of_unknown_keys() -> None:
    statements = paimon.apply("localhost:1", ["a", "b"], Path("/warehouse"))
    assert "upsert-kafka" not in "".join(statements)
    assert [text.partition(" SELECT")[0] for text in statements if text.startswith("INSERT")] == [
        f"INSERT INTO {paimon.TABLE}"
    ] * 2
    assert "CAST(JSON_VALUE(v, '$.amount') AS DECIMAL(10, 2))" in statements[-1]
