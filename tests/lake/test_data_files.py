"""Files of Spark are read in the types of the table.

Deletion vectors as Spark writes and reads them, and as the protocol describes them.
"""

from __future__ import annotations

import shutil
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.lake.data_files import arrow_schema, open_file, read_vector, write_vectors
from bridge.lake.local_store import LocalStore
from bridge.lake.snapshot import Snapshot, open_snapshot
from bridge.session import session_settings
from bridge.ways import NotThisWay
from tests.delta.tables import FIELDS, actions, append, made, vector_id

FAR = datetime(9999, 12, 31, 23, 59, 59, 999999, timezone.utc)


def test_files_of_spark(spark: SparkSession, lake: Path) -> None:
    """INT96, Spark's default for a TIMESTAMP, has times that nanoseconds have not; a new column is null."""
    fields = [*FIELDS, T.StructField("at", T.TimestampType()), T.StructField("n", T.ShortType())]
    table = made(spark, lake / "t", fields=fields)
    with session_settings(spark, {"spark.sql.parquet.outputTimestampType": "INT96"}):
        append(table, [(1, "a", FAR, -5), (2, None, None, None)])
    spark.sql(f"ALTER TABLE delta.`{lake}/t` ADD COLUMN later DECIMAL(10, 2)")
    table.delta().delete("id = 2")
    snapshot = open_snapshot(LocalStore(str(lake / "t")))
    schema = arrow_schema(snapshot.metadata)
    assert [str(type) for type in schema.types] == [
        "int64",
        "string",
        "timestamp[us, tz=UTC]",
        "int16",
        "decimal128(10, 2)",
    ]
    (name,) = snapshot.files
    file = open_file(snapshot, name, schema)
    assert (file.rows, list(file.marked), file.begin_of(0)) == (2, [1], 0)
    rows = file.read([0], ["at", "later", "id"])
    assert rows.schema == pa.schema([schema.field(n) for n in ("at", "later", "id")])
    assert rows.to_pylist() == [
        {"at": FAR, "later": None, "id": 1},
        {"at": None, "later": None, "id": 2},
    ]


def test_the_calendar_of_old_releases_is_left_to_spark(tmp_path: Path) -> None:
    old = pa.table({"id": [1]}).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    pq.write_table(old, tmp_path / "f")
    with pytest.raises(NotThisWay, match=r"^files of the table have dates in the calendar of Spark 2$"):
        open_file(
            Snapshot(LocalStore(str(tmp_path)), files={"f": {"path": "f", "size": 0}}),
            "f",
            pa.schema([("id", pa.int64())]),
        )


EXAMPLE = {
    "storageType": "i",
    "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "sizeInBytes": 40,
    "cardinality": 6,
}
"""The inline vector of the protocol's own example, in the form before the portable one, which only Spark reads."""
ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def z85(data: bytes) -> str:
    """ZeroMQ's RFC 32: four bytes are five digits."""
    padded = data + bytes(-len(data) % 4)
    words = (int.from_bytes(padded[n : n + 4], "big") for n in range(0, len(padded), 4))
    return "".join(ALPHABET[word // 85**n % 85] for word in words for n in (4, 3, 2, 1, 0))


@settings(deadline=None)
@given(st.dictionaries(st.text("abc", min_size=1), st.sets(st.integers(0, 2**32 - 1)), max_size=3))
def test_vectors_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, marked: dict[str, set[int]]
) -> None:
    folder = tmp_path_factory.mktemp("vectors")
    written = write_vectors(
        LocalStore(str(folder)), {name: BitMap(positions) for name, positions in marked.items()}
    )
    assert {name: set(read_vector(LocalStore(str(folder)), at)) for name, at in written.items()} == marked
    assert {name: at["cardinality"] for name, at in written.items()} == {n: len(p) for n, p in marked.items()}
    assert len(list(folder.iterdir())) == bool(marked)
    assert len({vector_id(at) for at in written.values()}) == len(marked)


def test_an_inline_vector(tmp_path: Path) -> None:
    at = write_vectors(LocalStore(str(tmp_path)), {"f": BitMap([3, 4, 7, 11, 18, 70_000])})["f"]
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()[5:-4]
    inline = {**at, "storageType": "i", "pathOrInlineDv": z85(data), "offset": None}
    assert list(read_vector(LocalStore(""), inline)) == [3, 4, 7, 11, 18, 70_000]
    assert vector_id(inline) == "i" + z85(data)


def test_no_vector_marks_nothing() -> None:
    assert not read_vector(LocalStore(""), None) and vector_id(None) == ""


def test_vectors_of_spark(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(i, "a") for i in range(1000)])
    table.delta().delete("id % 7 = 0 OR id > 990")
    added = next(a["add"] for a in actions(table, 2) if "add" in a)
    descriptor = added["deletionVector"]
    expected = [i for i in range(1000) if i % 7 == 0 or i > 990]
    assert list(read_vector(LocalStore(str(lake / "t")), descriptor)) == expected
    file = next((lake / "t").glob("deletion_vector_*.bin"))
    absolute = {**descriptor, "storageType": "p", "pathOrInlineDv": file.as_uri()}
    assert list(read_vector(LocalStore(""), absolute)) == expected
    (lake / "t" / "ab").mkdir()
    shutil.move(file, lake / "t" / "ab")
    prefixed = {**descriptor, "pathOrInlineDv": "ab" + descriptor["pathOrInlineDv"]}
    assert list(read_vector(LocalStore(str(lake / "t")), prefixed)) == expected
    assert vector_id(descriptor) == f"u{descriptor['pathOrInlineDv']}@{descriptor['offset']}"


def test_what_is_left_to_spark(tmp_path: Path) -> None:
    written = write_vectors(LocalStore(str(tmp_path)), {"f": BitMap([1, 2])})["f"]
    far = {**EXAMPLE, "storageType": "p", "pathOrInlineDv": "s3a://bucket/deletion_vector.bin"}
    with pytest.raises(NotThisWay, match=r"^a deletion vector of the table is not in its folder$"):
        read_vector(LocalStore(str(tmp_path)), far)
    (file,) = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    data[-6] ^= 1
    file.write_bytes(data)
    with pytest.raises(NotThisWay, match=r"^a deletion vector of the table is damaged$"):
        read_vector(LocalStore(str(tmp_path)), written)
    with pytest.raises(NotThisWay, match=r"has a form that only Spark reads$"):
        read_vector(LocalStore(""), EXAMPLE)
