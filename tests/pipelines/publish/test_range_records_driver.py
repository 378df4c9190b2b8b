"""Which ranges the driver sends by itself, and that their records are those that Spark's tasks send.

Topics to which the driver sends by itself have the records of those to which Spark's tasks send.

Small ranges of an old table are those of a young one, and cost the same work.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from bridge.arrow_formats.record_encoder import RecordEncoder
from bridge.definition import Definition
from bridge.delta import change_feed
from bridge.delta.table import Table, open_table
from bridge.embedded.broker import Broker
from bridge.errors import TableError
from bridge.lake.snapshot import Snapshot
from bridge.pipelines.publish import range_records as under_test
from bridge.pipelines.publish.range_planner import Compaction, PlannedRange, RangePlanner
from bridge.pipelines.publish.range_records import (
    changes_in_range,
    driver_encoder,
    driver_records,
    encode_changes_of_range,
)
from bridge.pipelines.publish.run import publish
from bridge.pipelines.publish.sharding import FileShardLimits
from bridge.publish_progress import PublishRange
from tests.config.files import loaded, pipeline_text
from tests.delta.aged_log import age
from tests.delta.tables import NO_VECTORS, Merge, append, at, by_copies, by_marks, frame, made
from tests.faults.documents import KEY_TYPES
from tests.faults.lane import Lane
from tests.pipelines.world import Make
from tests.reader import messages
from tests.refusals import optional, refusal

COLUMNS = {
    "k": ("BIGINT", T.LongType()),
    "b": ("BOOLEAN", T.BooleanType()),
    "i1": ("TINYINT", T.ByteType()),
    "i2": ("SMALLINT", T.ShortType()),
    "i4": ("INT", T.IntegerType()),
    "d": ("DECIMAL(38, 9)", T.DecimalType(38, 9)),
    "s": ("STRING", T.StringType()),
    "raw": ("BYTES", T.BinaryType()),
    "day": ("DATE", T.DateType()),
    "at": ("TIMESTAMP(6)", T.TimestampNTZType()),
    "ltz": ("TIMESTAMP_LTZ(6)", T.TimestampType()),
}
FIELDS = tuple(T.StructField(name, type) for name, (_, type) in COLUMNS.items())
DDL = ", ".join(f"`{name}` {type}" for name, (type, _) in COLUMNS.items())
MOMENT = datetime(1600, 2, 29, 23, 59, 59, 999999)
FULL = (True, -128, 32767, -(2**31), Decimal("-1.5"), 'é"\n𐍈', b"\0\xff", date(1, 1, 1), MOMENT)
LTZ = datetime(2262, 12, 31, 23, 59, 59, 1, tzinfo=timezone.utc)
EMPTY = (False, 127, -32768, 2**31 - 1, Decimal(10**28), "", b"", date(9999, 12, 31), datetime(9999, 12, 31))


def pipeline(
    folder: Path, columns: str, *, key: bool = True, sections: str = "", **options: str
) -> Definition:
    keyless = {} if key else {"connector": "kafka", "key.format": None}
    columns += ", PRIMARY KEY (k) NOT ENFORCED" if key else ""
    text = pipeline_text(columns, {**keyless, **options}, name="p", delta="path: t", sections=sections)
    return loaded(folder, text)


def planned(table: Table, definition: Definition, version: int) -> PlannedRange:
    (found,) = RangePlanner(definition, table, None, FileShardLimits()).changes(version, version)
    return found


def by_spark(range: PlannedRange, table: Table, definition: Definition) -> Counter[Any]:
    records, _ = encode_changes_of_range(
        changes_in_range(range, table, definition), range.recorded, definition, definition.topic
    )
    assert not isinstance(records, DataFrame), "its tasks encode them"
    rows, encoder = records.for_tasks()

    def documents(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays(list(encoder.documents(batch)), names=["key", "value"])

    found = rows.mapInArrow(documents, "key binary, value binary").collect()
    return Counter((row[0] and bytes(row[0]), row[1] and bytes(row[1])) for row in found)


def in_driver(range: PlannedRange, table: Table, definition: Definition) -> Counter[Any] | None:
    records = optional(driver_records)(range, table, definition, definition.topic)
    if records is None:
        return None
    found: Counter[Any] = Counter()
    for batch in records.rows.to_batches():
        keys, values = records.encoder.documents(batch)
        found.update(zip(keys.to_pylist(), values.to_pylist(), strict=True))
    return found


@pytest.mark.parametrize(
    ("merge", "properties"), [(by_marks, {}), (by_copies, NO_VECTORS)], ids=["marks", "copies"]
)
def test_batches_of_an_ingest_have_the_records_that_spark_encodes(
    spark: SparkSession, lake: Path, merge: Merge, properties: dict[str, str]
) -> None:
    """Of all types, with nulls, inserts, updates and deletes, and a batch that changes nothing."""
    table = made(spark, lake / "t", fields=FIELDS, properties=properties)
    definition = pipeline(lake, DDL)
    nulls = (None,) * len(FULL)
    batches: list[list[tuple[Any, ...]]] = [
        [("+I", 1, *FULL, LTZ), ("+I", 2, *EMPTY, LTZ), ("+I", 3, *nulls, None), ("+I", 4, *FULL, None)],
        [
            ("+U", 1, *EMPTY, None),
            ("-D", 2, *nulls, None),
            ("+U", 3, *FULL, LTZ),
            ("+I", -(2**63), *nulls, None),
        ],
        [("-D", 77, *nulls, None)],
        [("-D", 1, *nulls, None), ("-D", 3, *nulls, None)],
    ]
    counts = []
    for number, batch in enumerate(batches):
        result = merge(table, frame(table, batch), key=["k"], progress=at(number))
        range = planned(table, definition, result.version)
        found = in_driver(range, table, definition)
        assert found == by_spark(range, table, definition)
        assert found is not None
        counts.append((found.total(), sum(value is None for _, value in found.elements())))
    assert counts == [(4, 0), (4, 1), (0, 0), (2, 2)]


def test_rows_without_a_key(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", fields=FIELDS)
    definition = pipeline(lake, DDL, key=False)
    append(table, [(1, *FULL, LTZ)] * 2 + [(None,) * len(FIELDS)])
    append(table, [(2, *EMPTY, LTZ)])
    range = PlannedRange(PublishRange(1, 2), Compaction.INSERTS_ONLY)
    found = in_driver(range, table, definition)
    assert found is not None and found == by_spark(range, table, definition) and found.total() == 4
    table.delta().delete("k = 2")
    range = PlannedRange(PublishRange(1, 3), Compaction.INSERTS_ONLY)
    assert in_driver(range, table, definition) is None
    with pytest.raises(TableError, match="insert-only"):
        changes_in_range(range, table, definition)


def test_a_range_of_many_bytes_is_left_to_spark(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(spark, lake / "t", fields=FIELDS)
    append(table, [(1, *FULL, LTZ)])
    definition = pipeline(lake, DDL, key=False)
    size = next((lake / "t").glob("*.parquet")).stat().st_size
    range = PlannedRange(PublishRange(1, 1), Compaction.INSERTS_ONLY)
    monkeypatch.setattr(under_test, "MOST_BYTES", size)
    assert in_driver(range, table, definition) is not None
    monkeypatch.setattr(under_test, "MOST_BYTES", size - 1)
    assert in_driver(range, table, definition) is None


def test_what_only_delta_reads_is_left_to_spark(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", fields=FIELDS, properties={"delta.columnMapping.mode": "name"})
    append(table, [(1, *FULL, LTZ)])
    range = PlannedRange(PublishRange(1, 1), Compaction.INSERTS_ONLY)
    assert in_driver(range, table, pipeline(lake, DDL, key=False)) is None


_ONE = PlannedRange(PublishRange(4, 4), Compaction.WITHOUT_BEFORE_IMAGES)
_TWO = PlannedRange(PublishRange(4, 5), Compaction.WITHOUT_BEFORE_IMAGES)


@pytest.mark.parametrize(
    ("range", "given", "reason"),
    [
        pytest.param(_ONE, {}, None, id="one version"),
        pytest.param(_TWO, {"key": False}, None, id="rows without a key"),
        pytest.param(_TWO, {}, None, id="several versions"),
        pytest.param(
            replace(_ONE, compaction=Compaction.NET_OF_VERSION),
            {},
            "changes of a key are compacted",
            id="net",
        ),
        pytest.param(
            PlannedRange(PublishRange(4, 4, snapshot=True), Compaction.NONE),
            {},
            "all rows of the table are sent",
            id="a snapshot",
        ),
        pytest.param(
            _ONE,
            {"sections": "quality: {suite: s.json, gate: fail}\n"},
            None,
            id="a gate",
        ),
        pytest.param(
            _TWO,
            {"key": False, "sections": "quality: {suite: s.json, gate: fail}\n"},
            "the gate names rows without a key by their versions",
            id="a gate without a key",
        ),
        pytest.param(
            _TWO,
            {"key": False, "sink.parallelism": "2"},
            "tasks decide where its records go",
            id="tasks",
        ),
        pytest.param(
            _TWO,
            {"key": False, "sink.partitioner": "fixed"},
            "tasks decide where its records go",
            id="a partitioner",
        ),
        pytest.param(
            _ONE,
            {"columns": "k BIGINT, a STRING, h TIMESTAMP(3) METADATA FROM 'timestamp'"},
            "its records have more than key and value",
            id="metadata",
        ),
        pytest.param(
            _ONE,
            {"columns": "k BIGINT, a STRING, h TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL"},
            None,
            id="metadata that is only read",
        ),
        pytest.param(
            _ONE, {"columns": "k BIGINT, a DOUBLE"}, "floating point numbers have Java's texts", id="double"
        ),
        pytest.param(_ONE, {"value.format": "csv"}, "the format is csv", id="a format"),
        pytest.param(
            _ONE, {"sections": "publish: {encoder: spark}\n"}, "publish.encoder is spark", id="spark"
        ),
        pytest.param(
            _ONE,
            {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": "p"},
            "its records are sharded by key",
            id="transactions",
        ),
    ],
)
def test_which_ranges(tmp_path: Path, range: PlannedRange, given: dict[str, Any], reason: str | None) -> None:
    columns = given.pop("columns", "k BIGINT, a STRING")
    (tmp_path / "s.json").write_text('{"name": "s", "expectations": []}')
    definition = pipeline(tmp_path, columns, **given)
    assert refusal(lambda: driver_encoder(range, definition, definition.topic)) == reason


@pytest.mark.parametrize("key", KEY_TYPES)
def test_lanes_with_faults_play_it(tmp_path: Path, key: str) -> None:
    lane = Lane("f1", "spark", "at-least-once", key, "json")
    definition = loaded(tmp_path, lane.file("publish", "h:1", "http://r:1"))
    assert isinstance(driver_encoder(_ONE, definition, definition.topic), RecordEncoder)


@pytest.mark.parametrize(
    ("key", "once"), [(True, False), (False, False), (True, True)], ids=["upserts", "appends", "transactions"]
)
def test_a_topic_has_the_same_records(
    make: Make,
    spark: SparkSession,
    broker: Broker,
    lake: Path,
    unique: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    key: bool,
    once: bool,
) -> None:
    """Two runs of each, which share a producer in the driver; the topics have several partitions. Transactions whose
    shards are files are never sent by the driver, however small."""
    columns = "id BIGINT, v STRING" + (", PRIMARY KEY (id) NOT ENFORCED" if key else "")
    fields = (T.StructField("id", T.LongType()), T.StructField("v", T.StringType()))
    options: dict[str, str | None] = (
        {} if key else {"connector": "kafka", "key.format": None, "value.format": None, "format": "json"}
    )
    if once:
        options |= {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": unique("tx")}
    limits = FileShardLimits(min_rows=10, min_rows_per_file=1, max_imbalance=10) if once else None
    worlds = {
        name: make(
            columns=columns,
            options=options,
            cleanup="compact" if key else "delete",
        )
        for name in ("auto", "spark")
    }
    for name, world in worlds.items():
        world.sections = f"publish: {{encoder: {name}}}\n"
    table = made(spark, lake / "table", fields=fields)
    sent: list[bool] = []

    def noted(*given: Any) -> Any:
        sent.append(False)
        found = driver_records(*given)
        sent[-1] = True
        return found

    monkeypatch.setattr("bridge.pipelines.publish.run.driver_records", noted)
    for number in range(3):
        rows = [(id, f"v{number}") for id in range(number * 10, number * 10 + 30)]
        if key:
            changes = [("-D" if id % 7 == 6 else "+U", id, v) for id, v in rows]
            by_marks(table, frame(table, changes), key=["id"], progress=at(number))
        else:
            append(open_table(spark, table.target, fields), rows)
        found = {}
        for name, world in worlds.items():
            definition = world.definition(name, run={"checkpoint": f"checkpoint-{name}"})
            assert publish(spark, definition, file_shard_limits=limits).records_out > 20
            records = messages(broker.bootstrap, world.topic)
            parts = ((m.key(), m.value(), m.headers(), m.partition() if key else None) for m in records)
            found[name] = sorted(parts, key=str)
        assert found["auto"] == found["spark"]
    first = [False, False]  # a snapshot
    assert sent == ([] if once else [*first, True, False, True, False])
    logged = [json.loads(file.read_text())["bridge"] for file in lake.glob("checkpoint-auto/publish/*.json")]
    by_file = [progress for progress in logged if (progress["open"] or {}).get("files")]
    assert bool(by_file) is once


def test_batches_in_one_range_are_sent_by_their_versions(spark: SparkSession, lake: Path) -> None:
    """Also those of an old table: what a range costs does not depend on how many files were removed, nor on how many
    commits there were."""
    table = made(spark, lake / "t", fields=FIELDS[:1] + FIELDS[6:7], rows=[(n, "") for n in range(9)])
    age(table, commits=30, removed=6_000)
    definition = pipeline(lake, "k BIGINT, s STRING")
    for number in range(20):
        batch = [("-D" if number % 5 == 4 else "+U", 1, f"v{number}"), ("+U", 2, f"v{number}")]
        last = by_marks(table, frame(table, batch), key=["k"], progress=at(number)).version
    (range_,) = RangePlanner(definition, table, None, FileShardLimits()).changes(last - 19, last)
    records = driver_records(range_, table, definition, definition.topic)
    assert records is not None and isinstance(records.rows, pa.Table) and records.encoder is not None
    sent: dict[int, list[str | None]] = {1: [], 2: []}
    for part in records.rows.to_batches():
        for key, value in zip(
            *(documents.to_pylist() for documents in records.encoder.documents(part)), strict=True
        ):
            sent[json.loads(key)["k"]].append(value and json.loads(value)["s"])
    assert sent[2] == [f"v{number}" for number in range(20)]
    assert sent[1] == [None if number % 5 == 4 else f"v{number}" for number in range(20)]


@pytest.mark.parametrize("is_old", [False, True], ids=["young", "old"])
def test_a_range_reads_its_own_commits_and_files_only(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, is_old: bool
) -> None:
    """Neither a checkpoint nor the list of the log's files, which grow with the age of a table."""
    table = made(spark, lake / "t", fields=FIELDS[:1] + FIELDS[6:7], rows=[(n, "") for n in range(9)])
    if is_old:
        age(table, commits=30, removed=6_000)
    definition = pipeline(lake, "k BIGINT, s STRING")
    read: Counter[str] = Counter()

    def noting(what: str, do: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given, **named: (read.update([what]), do(*given, **named))[1]

    for number in range(2):
        batch = [("+U", number, "x"), ("-D", number + 4, None)]
        last = by_marks(table, frame(table, batch), key=["k"], progress=at(number)).version
        if number:  # the first range of a process opens the log
            monkeypatch.setattr(os, "listdir", noting("lists", os.listdir))
            monkeypatch.setattr(Snapshot, "read_commit", noting("commits", Snapshot.read_commit))
            monkeypatch.setattr(pq, "ParquetFile", noting("files", pq.ParquetFile))
        assert change_feed.latest_version(table) == last
        change_feed.check_feed(table, last, last, table.id, newest=last)
        found = in_driver(planned(table, definition, last), table, definition)
        assert found is not None and found.total() == 2
    # Five look for a next commit; four read the commit: to follow it, check it, plan it, send it.
    assert read == {"commits": read["commits"], "files": 1} and read["commits"] < 12, read
