"""Which ranges the sending tasks encode, and that their records are those that Spark encodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.arrow_formats.record_encoder import RecordEncoder
from bridge.embedded.broker import Broker
from bridge.pipelines.publish import range_records
from bridge.pipelines.publish.range_records import task_encoder
from bridge.pipelines.publish.run import publish
from bridge.pipelines.publish.sharding import FileShardLimits
from bridge.publish_progress import PublishRange
from tests.config.files import loaded, pipeline_text
from tests.faults.documents import KEY_TYPES
from tests.faults.lane import Lane
from tests.pipelines.world import Make, World
from tests.reader import messages
from tests.refusals import refusal

_FILE = pipeline_text(
    "a BIGINT, b STRING, PRIMARY KEY (a) NOT ENFORCED", sections="publish: {start: snapshot}\n"
)
_ONE, _SEVERAL = PublishRange(4, 4), PublishRange(4, 5)
_SNAPSHOT = PublishRange(4, 4, snapshot=True, chunks=3)
_FILES = PublishRange(4, 4, shards=2, files="digest")
_ONCE = (
    "'json')",
    "'json', 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'p')",
)
_KEYLESS = (
    "a BIGINT, b STRING, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',",
    "a BIGINT, b STRING) WITH ('connector' = 'kafka',",
)
_NO_KEY_FORMAT = ("'key.format' = 'json', 'value.format'", "'format'")


@pytest.mark.parametrize(
    ("publish_range", "changes", "reason"),
    [
        pytest.param(_ONE, [], None, id="one version"),
        pytest.param(_SNAPSHOT, [], None, id="a snapshot"),
        pytest.param(_SEVERAL, [], "its records are sent by key", id="several versions"),
        pytest.param(_FILES, [_ONCE], None, id="files"),
        pytest.param(_ONE, [_ONCE], "its records are sharded by key", id="shards of keys"),
        pytest.param(_SEVERAL, [_KEYLESS, _NO_KEY_FORMAT], None, id="rows without a key"),
        pytest.param(
            _ONE, [("b STRING", "b ARRAY<INT>")], "field 'b' of a json document is ARRAY<INT>", id="a type"
        ),
        pytest.param(
            _ONE, [("'value.format' = 'json'", "'value.format' = 'csv'")], "the format is csv", id="a format"
        ),
        pytest.param(
            _ONE,
            [("'json')", "'json', 'sink.parallelism' = '3')")],
            "its records are sent by key",
            id="tasks",
        ),
        pytest.param(
            _ONE, [("{start", "{encoder: spark, start")], "publish.encoder is spark", id="as the user says"
        ),
        pytest.param(
            _ONE,
            [
                ("upsert-kafka", "kafka"),
                ("'value.format' = 'json'", "'key.fields' = 'a', 'value.format' = 'canal-json'"),
            ],
            "the format is canal-json",
            id="changes",
        ),
    ],
)
def test_which_ranges(
    tmp_path: Path, publish_range: PublishRange, changes: list[tuple[str, str]], reason: str | None
) -> None:
    text = _FILE
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    definition = loaded(tmp_path, text)
    assert refusal(lambda: task_encoder(publish_range, definition, definition.topic)) == reason


@pytest.mark.parametrize("key", KEY_TYPES)
def test_lanes_with_faults_play_it(tmp_path: Path, key: str) -> None:
    lane = Lane("f1", "spark", "at-least-once", key, "json")
    definition = loaded(tmp_path, lane.file("publish", "h:1", "http://r:1"))
    assert isinstance(task_encoder(_ONE, definition, definition.topic), RecordEncoder)


_COLUMNS = (
    "`key` BIGINT, `value` STRING, `timestamp` DECIMAL(10, 2), `topic` TIMESTAMP(3), "
    "at TIMESTAMP(3) METADATA FROM 'timestamp', h MAP<STRING, BYTES> METADATA FROM 'headers', "
    "PRIMARY KEY (`key`) NOT ENFORCED"
)
_ROWS = (
    "SELECT id AS key, concat('\"', id) AS value, CAST(id AS DECIMAL(10, 2)) AS timestamp, "
    "timestamp_ntz'2020-02-29 12:00:00.12' AS topic, timestamp_ntz'2020-02-29 12:00:01' AS at, "
    "map('n', encode(CAST(id AS STRING), 'UTF-8')) AS h FROM range({}, {})"
)


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_topic_has_the_same_records(
    make: Make,
    spark: SparkSession,
    broker: Broker,
    lake: Path,
    unique: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    guarantee: str,
) -> None:
    """A snapshot, deletes and updates, with columns that are named like the parts of a record."""
    path = lake / "table"
    rows = spark.sql(_ROWS.format(0, 60)).repartition(2)
    rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(path))
    limits = FileShardLimits(min_rows=10, min_rows_per_file=1, max_imbalance=10)
    encoders: list[bool] = []

    def noted(*given: Any) -> RecordEncoder:
        encoders.append(False)
        found = task_encoder(*given)
        encoders[-1] = True
        return found

    monkeypatch.setattr(range_records, "task_encoder", noted)

    def world(encoder: str) -> World:
        options: dict[str, str | None] = {"sink.delivery-guarantee": guarantee}
        if guarantee == "exactly-once":
            options["sink.transactional-id-prefix"] = unique("tx")
        here = make(columns=_COLUMNS, options=options)
        here.sections = f"publish: {{encoder: {encoder}}}\n"
        return here

    worlds = {encoder: world(encoder) for encoder in ("auto", "spark")}

    def published() -> dict[str, list[Any]]:
        found = {}
        for name, here in worlds.items():
            definition = here.definition(name, run={"checkpoint": f"checkpoint-{name}"})
            assert publish(spark, definition, file_shard_limits=limits).records_out
            records = messages(broker.bootstrap, here.topic)
            parts = ((m.key(), m.value(), m.timestamp(), m.headers(), m.partition()) for m in records)
            found[name] = sorted(parts, key=str)
        return found

    for statement in (
        None,
        "DELETE FROM {} WHERE key % 3 = 0",
        "UPDATE {} SET value = 'é\\\\n' WHERE key % 2 = 0",
    ):
        if statement is not None:
            spark.sql(statement.format(f"delta.`{path}`"))
        topics = published()
        assert topics["auto"] == topics["spark"]
    assert len(topics["auto"]) == 60 + 20 + 20
    assert encoders == [True, False] * 3
