"""How many shards a range of an exactly-once publish has, and when a data file may be one.

When data files are worth a shard each.

What decides which records a range has, and in which order.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge import config
from bridge.definition import Topic
from bridge.pipelines.publish.sharding import FileShardLimits, Sharding, plan_fingerprint, sharding_for

FILE = """\
version: 1
name: orders
topic:
  ddl: |
    CREATE TABLE t (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'h:1',
      'key.format' = 'json', 'value.format' = 'json')
delta: {path: table}
run: {checkpoint: checkpoint}
"""
CDC = "'connector' = 'kafka'"
ONCE = "'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'p'"


def topic(folder: Path, *options: str) -> Topic:
    """The topic of FILE with these options."""
    text = FILE
    if CDC in options:
        text = text.replace("'connector' = 'upsert-kafka', ", "").replace(
            "'value.format' = 'json'", "'key.fields' = 'id', 'value.format' = 'debezium-json'"
        )
    file = folder / "orders.yaml"
    file.write_text(
        text.replace("-json')", "-json'")
        .replace("'json')", "'json'")
        .replace("\ndelta:", f"{''.join(f', {option}' for option in options)})\ndelta:")
    )
    return config.load(file).topic


@pytest.mark.parametrize(
    ("options", "rows", "shards"),
    [
        pytest.param([], 0, 2, id="small"),
        pytest.param([], 1_000_000, 2, id="half a million each"),
        pytest.param([], 1_000_001, 4, id="more"),
        pytest.param([], 10**9, 16, id="the maximum"),
        pytest.param(["'sink.parallelism' = '3'"], 10**9, 3, id="set by the user"),
        pytest.param([CDC, "'sink.partitioner' = 'fixed'"], 10**9, 2, id="the shard decides the partition"),
    ],
)
def test_large_ranges_have_more_shards(tmp_path: Path, options: list[str], rows: int, shards: int) -> None:
    sharding = sharding_for(topic(tmp_path, ONCE, *options), 2)
    assert sharding is not None and sharding.shards(rows) == shards


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        pytest.param([], 2, id="a key has one record"),
        pytest.param(["'sink.parallelism' = '3'"], 0, id="set by the user"),
        pytest.param([CDC], 0, id="several messages for a change"),
        pytest.param([CDC, "'sink.partitioner' = 'fixed'"], 0, id="the shard decides the partition"),
    ],
)
def test_a_shard_may_be_a_file(tmp_path: Path, options: list[str], tasks: int) -> None:
    sharding = sharding_for(topic(tmp_path, ONCE, *options), 2)
    assert sharding is not None and sharding.file_tasks == tasks


def test_without_transactions_there_are_no_shards(tmp_path: Path) -> None:
    assert sharding_for(topic(tmp_path), 2) is None


def test_the_limits_are_values() -> None:
    sharding = Sharding(3, rows_per_shard=10, max_shards_per_task=2)
    assert [sharding.shards(rows) for rows in (0, 30, 31, 1000)] == [3, 3, 6, 6]


@pytest.mark.parametrize(
    ("sizes", "tasks", "pays"),
    [
        pytest.param([], 2, False, id="it is not known"),
        pytest.param([7], 1, True, id="one file, one core"),
        pytest.param([7], 2, False, id="one core would be idle"),
        pytest.param([5, 5], 2, True, id="a file each"),
        pytest.param([9, 5], 2, True, id="nearly"),
        pytest.param([9, 3], 2, False, id="one is done long before"),
        pytest.param([5, 5, 5], 2, True, id="the last one alone"),
        pytest.param([1] * 5, 4, False, id="the last one far too alone"),
        pytest.param([9, 3, 3, 3], 2, True, id="the largest first"),
        pytest.param([1] * 64, 2, True, id="many"),
        pytest.param([1] * 65, 2, False, id="too many"),
    ],
)
def test_files_pay_off_as_shards(sizes: list[int], tasks: int, pays: bool) -> None:
    limits = FileShardLimits()
    assert limits.pay_off(sizes, 100_000 * len(sizes), tasks) is pays
    assert not limits.pay_off(sizes, 100_000 * len(sizes) - 1, tasks)


def test_trials_on_small_tables_have_limits_of_their_own() -> None:
    assert FileShardLimits.from_environment({}) == FileShardLimits(200_000, 100_000)
    small = FileShardLimits.from_environment({"BRIDGE_FILE_SLOT_ROWS": "40"})
    assert small.min_rows == 40 and small.pay_off([7], 20, 1) and not small.pay_off([7], 19, 1)


PLAN_FINGERPRINT_FILE = """\
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
KEYLESS = PLAN_FINGERPRINT_FILE.replace(", PRIMARY KEY (id) NOT ENFORCED", "").replace(
    "upsert-kafka", "kafka"
)
KEYLESS = KEYLESS.replace("'key.format' = 'json', 'value.format'", "'format'")
CHANGES = PLAN_FINGERPRINT_FILE.replace("upsert-kafka", "kafka").replace(
    "'value.format' = 'json'", "'key.fields' = 'id', 'value.format' = 'debezium-json'"
)


def fingerprint(folder: Path, text: str) -> str:
    file = folder / "orders.yaml"
    file.write_text(text)
    definition = config.load(file)
    return plan_fingerprint(definition, definition.topic)


@pytest.mark.parametrize(
    ("file", "before", "after", "same"),
    [
        (PLAN_FINGERPRINT_FILE, "'sink.parallelism' = '3'", "'sink.parallelism' = '5'", True),
        (PLAN_FINGERPRINT_FILE, "name STRING", "name STRING, more INT", True),
        (PLAN_FINGERPRINT_FILE, "'key.format' = 'json'", "'key.format' = 'csv'", False),
        (PLAN_FINGERPRINT_FILE, "'value.format' = 'json'", "'value.format' = 'csv'", True),
        (CHANGES, "net-changes: false", "update-messages: pair", False),
        (PLAN_FINGERPRINT_FILE, "net-changes: false", "net-changes: true", False),
        (PLAN_FINGERPRINT_FILE, "(id)", "(id, name)", False),
        (KEYLESS, "name STRING", "name STRING, more INT", False),
        (KEYLESS, "name STRING", "name STRING, at TIMESTAMP(3) METADATA FROM 'timestamp'", False),
        (KEYLESS, "name STRING", "name STRING, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL", True),
        (
            PLAN_FINGERPRINT_FILE,
            "name STRING",
            "name STRING, at TIMESTAMP(3) METADATA FROM 'timestamp'",
            True,
        ),
        (
            KEYLESS,
            "'format' = 'json'",
            "'format' = 'json', 'json.encode.decimal-as-plain-number' = 'true'",
            False,
        ),
    ],
)
def test_what_the_order_of_records_depends_on(
    tmp_path: Path, file: str, before: str, after: str, same: bool
) -> None:
    assert before in file
    assert (fingerprint(tmp_path, file) == fingerprint(tmp_path, file.replace(before, after))) is same


def test_another_process_computes_the_same(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path;"
        "from tests.pipelines.publish.test_sharding import KEYLESS, fingerprint;"
        "print(fingerprint(Path(sys.argv[1]), KEYLESS))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == fingerprint(tmp_path, KEYLESS)
