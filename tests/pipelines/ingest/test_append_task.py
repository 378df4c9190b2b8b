"""Rows of a range, cut into any portions and files, are the rows of its records."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from bridge.arrow_formats.catalog import arrow_decoder
from bridge.kafka.range_parts import PartitionRange, RangePart
from bridge.kafka.read_counts import ReadCounts
from bridge.lake.local_store import LocalStore
from bridge.pipelines.ingest import append_task
from bridge.pipelines.ingest.append_task import AppendedFiles, AppendTask
from bridge.ways import NotThisWay
from tests.arrow_formats.against_spark import spec

_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("o", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("extra", pa.date32()),
    ]
)


class _Record:
    def __init__(self, offset: int, value: Any, key: Any = None, kind: int = TIMESTAMP_CREATE_TIME) -> None:
        self._offset, self._value, self._key, self._kind = offset, value, key, kind

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return None if self._value is None else json.dumps(self._value).encode()

    def key(self) -> bytes | None:
        return None if self._key is None else json.dumps(self._key).encode()

    def timestamp(self) -> tuple[int, int]:
        return self._kind, self._offset


def task(folder: Path, **more: Any) -> AppendTask:
    value = arrow_decoder(spec("json", {"name": "STRING"}))
    key = arrow_decoder(spec("json", {"id": "BIGINT"}))
    given: dict[str, Any] = {"not_null": (), "watermark": None, **more}
    return AppendTask(
        settings={},
        value=value,
        value_columns=("name",),
        key=key,
        key_columns=("id",),
        metadata={"o": "offset", "at": "timestamp"},
        schema=_SCHEMA,
        store=LocalStore(str(folder)),
        columns_with_statistics=32,
        timeout=1,
        **given,
    )


def run(
    of: AppendTask, records: Sequence[_Record], portions: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> AppendedFiles | NotThisWay:
    """The task over one range, whose records come in these portions."""

    def read(settings: Any, parts: Sequence[RangePart], **_: Any) -> bool:
        left = list(records)
        for portion in portions:
            messages = [cast(Message, record) for record in left[:portion]]
            parts[0].read += ReadCounts.of(messages, parts[0].add(messages).bytes)
            left = left[portion:]
        assert not left
        return True

    monkeypatch.setattr(append_task, "read_ranges", read)
    (found,) = of.run([[PartitionRange("t", 3, 0, len(records))]])
    return found


def rows(folder: Path, found: AppendedFiles | NotThisWay) -> list[dict[str, Any]]:
    assert isinstance(found, AppendedFiles)
    tables = [pq.read_table(folder / add["path"]) for add in found.adds]
    return sorted((row for table in tables for row in table.to_pylist()), key=lambda row: row["o"])


@pytest.mark.parametrize("seed", range(5))
def test_drawn_records_in_any_portions_and_files(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    limits = {"chunk_records": draw.choice([1, 7, 1000]), "file_bytes": draw.choice([1, 500, 1 << 30])}
    records = [
        _Record(n, draw.choice([None, {}, {"name": f"n{n}"}]), draw.choice([None, {"id": draw.randrange(4)}]))
        for n in range(100)
    ]
    portions: list[int] = []
    while sum(portions) < len(records):
        portions.append(min(draw.randrange(1, 30), len(records) - sum(portions)))
    found = run(task(tmp_path, watermark="at", **limits), records, portions, monkeypatch)
    expected = [
        {
            "id": None if record._key is None else record._key["id"],
            "name": record._value.get("name"),
            "o": record._offset,
        }
        for record in records
        if record._value is not None
    ]
    made = rows(tmp_path, found)
    assert [{name: row[name] for name in ("id", "name", "o")} for row in made] == expected
    assert isinstance(found, AppendedFiles)
    assert (found.rows, found.read.records) == (len(expected), 100)
    assert found.newest_event_ms == {("t", 3): expected[-1]["o"]}
    assert {row["extra"] for row in made} == {None}
    assert sum(json.loads(add["stats"])["numRecords"] for add in found.adds) == len(expected)
    assert {file.name for file in tmp_path.iterdir()} == {add["path"] for add in found.adds}


def test_no_file_is_left_of_what_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [_Record(0, {"name": "a"}), _Record(1, {"name": 5})]
    assert isinstance(
        run(task(tmp_path, chunk_records=1, file_bytes=1), records, [1, 1], monkeypatch), NotThisWay
    )
    assert list(tmp_path.iterdir()) == []


def test_records_of_which_consumers_do_not_know_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for record, reason in (
        (_Record(0, {"name": "a"}, kind=TIMESTAMP_NOT_AVAILABLE), "a record has no timestamp"),
        (_Record(0, {}), "column 'name' is NOT NULL, and a record has no value for it"),
    ):
        found = run(task(tmp_path, not_null=("name",)), [record], [1], monkeypatch)
        assert isinstance(found, NotThisWay) and str(found) == reason


def test_a_key_without_its_columns_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(task(tmp_path), [_Record(0, {"name": "a"}, {"Id": 1})], [1], monkeypatch)
    assert isinstance(found, NotThisWay) and str(found) == "a key has no value in any of its columns"
    null_key = run(task(tmp_path), [_Record(0, {"name": "a"})], [1], monkeypatch)
    assert [row["id"] for row in rows(tmp_path, null_key)] == [None]


def test_a_null_value_is_a_row_where_the_format_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [_Record(0, None), _Record(1, {"name": "a"}), _Record(2, None)]
    found = run(task(tmp_path, null_is_row=True), records, [3], monkeypatch)
    assert [row["name"] for row in rows(tmp_path, found)] == [None, "a", None]


def test_workers_need_neither_spark_s_nor_delta_s_python() -> None:
    """Executors may lack delta-spark and deltalake; `ingest` imports the task while it starts the workers."""
    code = (
        "import sys, bridge.pipelines.ingest.append_task\n"
        "print({m.partition('.')[0] for m in sys.modules} & {'pyspark', 'delta', 'deltalake', 'pydantic'})"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "set()"
