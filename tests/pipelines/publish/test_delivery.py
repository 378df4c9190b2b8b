"""Whose word holds when a publish begins again: Kafka's or the log's."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import config
from bridge.definition import Definition
from bridge.errors import GapError
from bridge.pipelines.publish.delivery import AtLeastOnce, ExactlyOnce, _once
from bridge.pipelines.publish.plan_fingerprint import plan_fingerprint
from bridge.pipelines.publish.take_over import reconcile
from bridge.publish_progress import NOTHING, PublishProgress, PublishRange

AT_5 = PublishProgress("p", "table", 5, 10, run="one")
BEGUN = replace(AT_5.opened(PublishRange(6, 9, shards=3)), batch=11)
AT_9 = replace(BEGUN.closed(), batch=12)


def chunk(
    number: int, *, shards: int = 3, files: str = "", batch: int = 0, run: str | None = "one"
) -> PublishProgress:
    """A first snapshot of version 4, in five chunks."""
    publish_range = PublishRange(4, 4, snapshot=True, chunk=number, chunks=5, shards=shards, files=files)
    return PublishProgress("p", "table", NOTHING, batch, open=publish_range, run=run)


def alone(progress: PublishProgress, batch: int) -> PublishProgress:
    """As at-least-once writes it."""
    return replace(progress, batch=batch, run=None)


@pytest.mark.parametrize(
    ("noted", "logged", "found"),
    [
        pytest.param(None, None, None, id="never published"),
        pytest.param(None, AT_5, AT_5, id="forgotten, but done"),
        pytest.param(
            None, alone(chunk(2, shards=0), 3), alone(chunk(2, shards=0), 3), id="from at-least-once"
        ),
        pytest.param(AT_9, None, AT_9, id="checkpoint lost"),
        pytest.param(BEGUN, BEGUN, BEGUN, id="died in the range"),
        pytest.param(AT_5, BEGUN, BEGUN, id="died between log and Kafka"),
        pytest.param(AT_9, BEGUN, AT_9, id="died between Kafka and log"),
        pytest.param(AT_9, AT_5, AT_9, id="an older checkpoint brought back"),
        pytest.param(
            replace(AT_9, run="two", batch=11),
            BEGUN,
            replace(AT_9, run="two", batch=11),
            id="a zombie wrote last",
        ),
        pytest.param(
            AT_9, alone(replace(AT_9, version=14), 14), alone(replace(AT_9, version=14), 14), id="passed"
        ),
        pytest.param(
            AT_9,
            alone(replace(AT_9, version=14), 12),
            alone(replace(AT_9, version=14), 12),
            id="passed, from the log",
        ),
        pytest.param(
            BEGUN, alone(AT_5, 13), replace(BEGUN, batch=13), id="at-least-once began and sent nothing"
        ),
        pytest.param(chunk(1, batch=4), chunk(2, batch=5), chunk(2, batch=5), id="died after a chunk"),
        pytest.param(
            chunk(1, batch=4),
            alone(chunk(3, shards=0), 6),
            alone(chunk(3, shards=3), 6),
            id="at-least-once sent chunks",
        ),
        pytest.param(
            chunk(1, batch=4, shards=7, files="names"),
            alone(chunk(3, shards=0), 6),
            alone(chunk(3, shards=7, files="names"), 6),
            id="at-least-once sent chunks, where files are shards",
        ),
        pytest.param(
            chunk(1, batch=4),
            alone(chunk(1, shards=0), 5),
            chunk(1, batch=5),
            id="at-least-once sent no chunk",
        ),
    ],
)
def test_whose_word_holds(
    noted: PublishProgress | None, logged: PublishProgress | None, found: PublishProgress | None
) -> None:
    assert reconcile(noted, logged, "prefix") == found


@pytest.mark.parametrize("logged", [BEGUN, chunk(1)])
def test_what_may_be_half_sent_is_not_guessed(logged: PublishProgress) -> None:
    with pytest.raises(
        GapError, match=r"'prefix' \(groups forget .* were under way: what of them was sent is not known"
    ):
        reconcile(None, logged, "prefix")


FILE = """\
version: 1
name: orders
topic:
  ddl: |
    CREATE TABLE t (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'h:1',
      'key.format' = 'json', 'value.format' = 'json', 'sink.parallelism' = '3')
delta: {path: table}
run: {checkpoint: checkpoint}
publish: {net-changes: false}
"""
KEYLESS = FILE.replace(", PRIMARY KEY (id) NOT ENFORCED", "").replace("upsert-kafka", "kafka")
KEYLESS = KEYLESS.replace("'key.format' = 'json', 'value.format'", "'format'")
CHANGES = FILE.replace("upsert-kafka", "kafka").replace(
    "'value.format' = 'json'", "'key.fields' = 'id', 'value.format' = 'debezium-json'"
)


def manner(folder: Path, text: str) -> str:
    file = folder / "orders.yaml"
    file.write_text(text)
    definition = config.load(file)
    return plan_fingerprint(definition, definition.topic)


@pytest.mark.parametrize(
    ("file", "before", "after", "same"),
    [
        (FILE, "'sink.parallelism' = '3'", "'sink.parallelism' = '5'", True),
        (FILE, "name STRING", "name STRING, more INT", True),
        (FILE, "'key.format' = 'json'", "'key.format' = 'csv'", False),
        (FILE, "'value.format' = 'json'", "'value.format' = 'csv'", True),
        (CHANGES, "net-changes: false", "update-messages: pair", False),
        (FILE, "net-changes: false", "net-changes: true", False),
        (FILE, "(id)", "(id, name)", False),
        (KEYLESS, "name STRING", "name STRING, more INT", False),
        (KEYLESS, "name STRING", "name STRING, at TIMESTAMP(3) METADATA FROM 'timestamp'", False),
        (KEYLESS, "name STRING", "name STRING, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL", True),
        (FILE, "name STRING", "name STRING, at TIMESTAMP(3) METADATA FROM 'timestamp'", True),
        (
            KEYLESS,
            "'format' = 'json'",
            "'format' = 'json', 'json.encode.decimal-as-plain-number' = 'true'",
            False,
        ),
    ],
)
def test_what_a_count_of_records_depends_on(
    tmp_path: Path, file: str, before: str, after: str, same: bool
) -> None:
    assert before in file
    assert (manner(tmp_path, file) == manner(tmp_path, file.replace(before, after))) is same


def test_another_process_finds_the_same(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.pipelines.publish.test_delivery import KEYLESS, manner;"
        "print(manner(Path(sys.argv[1]), KEYLESS))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == manner(tmp_path, KEYLESS)


@pytest.mark.parametrize(
    ("options", "range", "once"),
    [
        pytest.param("", PublishRange(4, 4), True, id="one version"),
        pytest.param("", PublishRange(4, 5), False, id="two versions"),
        pytest.param("", PublishRange(4, 4, snapshot=True, chunks=3), True, id="a snapshot"),
        pytest.param(
            "'connector' = 'kafka', 'key.fields' = 'a', 'value.format' = 'debezium-json'",
            PublishRange(4, 4),
            False,
            id="several messages for a change",
        ),
    ],
)
def test_a_key_has_one_record_in_a_stretch(
    tmp_path: Path, options: str, publish_range: PublishRange, once: bool
) -> None:
    given = {"'connector'": "'upsert-kafka'", "'value.format'": "'json'"}
    given |= dict(part.split(" = ") for part in options.split(", ") if part)
    shown = ", ".join(f"{k} = {v}" for k, v in given.items())
    file = tmp_path / "p.yaml"
    file.write_text(
        "version: 1\nname: p\ntopic:\n  ddl: |\n    CREATE TABLE t (a BIGINT, b BIGINT, PRIMARY KEY (a) NOT ENFORCED) "
        f"WITH ('topic' = 't', 'properties.bootstrap.servers' = 'h:1', 'key.format' = 'json', {shown})\n"
        "delta: {path: table}\nrun: {checkpoint: c}\n"
    )
    assert _once(config.load(file).topic, publish_range) is once


def loaded(folder: Path, options: str) -> Definition:
    """The pipeline of FILE, exactly-once, with these options."""
    text = FILE.replace(", 'sink.parallelism' = '3'", ", 'sink.transactional-id-prefix' = 'p'" + options)
    if "'connector' = 'kafka'" in options:
        text = text.replace("'connector' = 'upsert-kafka', ", "").replace(
            "'value.format' = 'json'", "'key.fields' = 'id', 'value.format' = 'debezium-json'"
        )
    file = folder / "orders.yaml"
    file.write_text(text)
    return config.load(file)


CDC = ", 'connector' = 'kafka'"


@pytest.mark.parametrize(
    ("options", "rows", "shards"),
    [
        pytest.param("", 0, 2, id="small"),
        pytest.param("", 1_000_000, 2, id="half a million each"),
        pytest.param("", 1_000_001, 4, id="more"),
        pytest.param("", 10**9, 16, id="a bound"),
        pytest.param(", 'sink.parallelism' = '3'", 10**9, 3, id="as the user says"),
        pytest.param(
            ", 'connector' = 'kafka', 'sink.partitioner' = 'fixed'", 10**9, 2, id="a shard's partition"
        ),
    ],
)
def test_large_stretches_have_more_slots(
    spark: SparkSession, tmp_path: Path, options: str, rows: int, shards: int
) -> None:
    definition = loaded(tmp_path, options)
    out = ExactlyOnce(spark, definition, definition.topic)
    assert spark.sparkContext.defaultParallelism == 2
    assert out.shards(rows) == shards
    assert AtLeastOnce(spark, definition, definition.topic).shards(rows) == 0


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        pytest.param("", 2, id="a key has one record"),
        pytest.param(", 'sink.parallelism' = '3'", 0, id="as the user says"),
        pytest.param(CDC, 0, id="several messages for a change"),
        pytest.param(CDC + ", 'sink.partitioner' = 'fixed'", 0, id="a shard's partition"),
    ],
)
def test_a_slot_may_be_a_file(spark: SparkSession, tmp_path: Path, options: str, tasks: int) -> None:
    definition = loaded(tmp_path, options)
    assert ExactlyOnce(spark, definition, definition.topic).file_tasks == tasks
    assert AtLeastOnce(spark, definition, definition.topic).file_tasks == 0
