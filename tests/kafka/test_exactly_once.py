"""Each record of a range is in the topic once after its sending failed and was repeated, by key and by file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from bridge.definition import FormatSpec, Sink
from bridge.embedded.broker import Broker
from bridge.encode import encode
from bridge.errors import KafkaError
from bridge.kafka.exactly_once import WHOLE_FILES, TransactionalSink, produce_files, produce_once
from bridge.kafka.records import SendCounts
from bridge.publish_progress import PublishRange
from bridge.schema import (
    ArrayType,
    MetadataColumn,
    PhysicalColumn,
    RowField,
    RowType,
    ScalarType,
    TableSchema,
)
from bridge.session import session_settings
from tests.kafka.topics import Fresh, topic_of
from tests.ledger import committed
from tests.public_api import PublicApi
from tests.reader import messages

pytestmark = pytest.mark.usefixtures("small_arrow_batches")


def test_records_of_one_rank_come_in_any_order(
    spark: SparkSession,
    broker: Broker,
    unique: Callable[[str], str],
    arm: Callable[[str, str], Path],
) -> None:
    """With hashes of two bits most records share theirs. A run that dies after its first transaction has sent all or
    none of the records of a hash, and the next run gets them in another order. There is one shard, since a second one
    would go on for a while after the failure of the first, so that the number of unsent records would be unknown."""
    name, prefix = unique("ranks"), unique("tx")
    broker.create_topic(name, partitions=2)
    topic = topic_of(name, servers=broker.bootstrap)

    def send(order: str) -> int:
        publish_range = PublishRange(4, 5, shards=1)
        records = _records(spark.range(0, 120, 1, 1).selectExpr(f"{order} AS n"))
        return produce_once(
            records, topic, publish_range, TransactionalSink(prefix, "r", 5), unique=True, hash_mask=3
        ).records

    hit = arm("shard.after-commit", "raise")
    with pytest.raises(Exception, match="failpoint"):
        send("id")
    assert hit.exists()
    before = committed(broker.bootstrap, name)
    assert 0 < sum(map(len, before.values())) < 120
    sent = send("119 - id")
    assert committed(broker.bootstrap, name) == {id: ["v4", "v5"] for id in range(60)}
    assert sent == 120 - sum(map(len, before.values()))


def _records(numbers: DataFrame) -> DataFrame:
    rows = numbers.selectExpr("n % 60 AS id", "4 + n DIV 60 AS version")
    return rows.selectExpr(
        """CAST(concat('{"id":', id, '}') AS BINARY) AS key""",
        """CAST(concat('{"name":"v', version, '"}') AS BINARY) AS value""",
        "named_struct('version', version) AS __position",
    )


def test_headers_without_a_name_are_omitted(
    spark: SparkSession, fresh: Fresh, broker: Broker, unique: Callable[[str], str]
) -> None:
    """Those of a row and those of the sink, in transactions: of every key, and of none."""
    name = fresh("headers")
    schema = TableSchema(
        (
            PhysicalColumn("id", ScalarType("STRING")),
            MetadataColumn(
                "h",
                ArrayType(RowType((RowField("k", ScalarType("STRING")), RowField("v", ScalarType("BYTES"))))),
                "header-list",
            ),
        )
    )
    raw = FormatSpec("raw", {}, schema.row(("id",)), ("id",))
    sink = Sink(headers=(("tableName", "t"),))
    entries = "array(named_struct('k', 'a', 'v', X'01'), null, named_struct('k', null, 'v', X'02'))"
    changes = spark.sql(
        f"SELECT id, IF(id = 'x', null, {entries}) AS h, '+I' AS __kind, named_struct('version', 1L) AS __position "
        "FROM VALUES ('x'), ('y') AS t(id)"
    )
    for keyed in (True, False):
        topic = replace(
            topic_of(name, servers=broker.bootstrap, keyed=False, sink=sink),
            schema=schema,
            key=raw if keyed else None,
            value=raw,
        )
        produce_once(
            encode(changes, topic),
            topic,
            PublishRange(1, 1, shards=1),
            TransactionalSink(unique("tx"), "r", 5),
        )
    received = sorted((m.value(), m.headers()) for m in messages(broker.bootstrap, name))
    own = [("tableName", b"t")]
    assert received == [(b"x", own)] * 2 + [(b"y", [("a", b"\x01"), *own])] * 2


class Files:
    """Four files of sixty rows, each of several row groups, and a topic to send them to."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path, name: str) -> None:
        self.spark, self.broker, self.name = spark, broker, name
        self.folder = folder / "a b%c"
        padding = "array_join(transform(sequence(1, 20), i -> sha2(concat(id, '-', i), 512)), '') AS padding"
        often = {f"parquet.block.size.row.check.{end}": "5" for end in ("min", "max")}
        writer = spark.range(0, 240, 1, 4).selectExpr("id", padding).write
        writer.options(**{"parquet.block.size": "32768", **often}).parquet(str(self.folder))
        broker.create_topic(name, partitions=2)
        self.rows = spark.read.parquet(str(self.folder))
        self.uris = sorted(self.rows.inputFiles())

    def send(
        self, files: list[str] | None = None, read_settings: Mapping[str, str] = WHOLE_FILES
    ) -> SendCounts:
        rows = self.rows.selectExpr("id AS n", "padding")
        records = rows.selectExpr(
            """CAST(concat('{"id":', n, '}') AS BINARY) AS key""",
            """CAST(concat('{"name":"', left(padding, 5), '"}') AS BINARY) AS value""",
        )
        uris = self.uris if files is None else files
        topic = topic_of(self.name, servers=self.broker.bootstrap)
        sink = TransactionalSink(f"tx-{self.name}", "r", 5)
        publish_range = PublishRange(7, 7, shards=len(uris))
        return produce_files(records, topic, publish_range, sink, uris, read_settings=read_settings)

    def there(self) -> dict[int, int]:
        """Return the number of records of each id."""
        return {id: len(records) for id, records in committed(self.broker.bootstrap, self.name).items()}


@pytest.fixture
def files(spark: SparkSession, broker: Broker, tmp_path: Path, unique: Callable[[str], str]) -> Files:
    return Files(spark, broker, tmp_path, unique("files"))


def _tasks_end(spark: SparkSession) -> None:
    """Wait for the other tasks of a failed job: one that begins to send later would take over from the next run."""
    store = spark.sparkContext._jsc.sc().statusStore()
    deadline = time.monotonic() + 30
    while store.executorList(True).apply(0).activeTasks():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("anew", ["1", "65536"])
def test_partly_sent_files_are_continued(files: Files, arm: Callable[[str, str], Path], anew: str) -> None:
    """Files are read whole even if the session has other settings by then."""
    assert len(files.uris) == 4
    hit = arm("shard.after-commit", "raise")
    with pytest.raises(Exception, match="failpoint"):
        files.send()
    assert hit.exists()
    _tasks_end(files.spark)
    assert 0 < sum(files.there().values()) < 240
    with session_settings(files.spark, {"spark.sql.files.maxPartitionBytes": anew}):
        files.send()
        assert files.spark.conf.get("spark.sql.files.maxPartitionBytes") == anew
    assert files.there() == dict.fromkeys(range(240), 1)
    assert files.send().records == 0


@pytest.mark.versions
def test_several_files_of_one_task(files: Files) -> None:
    """Spark may read several files in one task: each keeps its shard."""
    assert files.send(read_settings={"spark.sql.files.maxPartitionNum": "1"}).records == 240
    assert files.there() == dict.fromkeys(range(240), 1)
    assert files.send().records == 0


def test_a_file_in_two_tasks_is_refused(files: Files) -> None:
    """Both would count from the file's first row on."""
    with pytest.raises(KafkaError, match="rows that do not continue a data file: none of them is sent"):
        files.send(read_settings={"spark.sql.files.maxPartitionBytes": "65536"})


def test_an_unnamed_file_is_refused(files: Files) -> None:
    with pytest.raises(KafkaError, match="rows that do not continue a data file: none of them is sent"):
        files.send(files.uris[1:])


@pytest.mark.versions
def test_files_are_sent_where_spark_does_not_show_its_plan(files: Files) -> None:
    files.rows = PublicApi(files.rows)  # type: ignore[assignment]
    with session_settings(files.spark, {"spark.sql.files.maxPartitionBytes": "65536"}):
        assert files.send().records == 240
    assert files.there() == dict.fromkeys(range(240), 1)
