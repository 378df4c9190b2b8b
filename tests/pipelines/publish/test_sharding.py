"""How many shards a range of an exactly-once publish has, and when a data file may be one.

When data files are worth a shard each.

What decides which records a range has, and in which order.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bridge.definition import Topic
from bridge.pipelines.publish.sharding import FileShardLimits, Sharding, plan_fingerprint, sharding_for
from tests.config.files import loaded, pipeline_text

CDC = {"connector": "kafka", "key.fields": "id", "value.format": "debezium-json"}
FIXED = {**CDC, "sink.partitioner": "fixed"}
ONCE = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": "p"}
THREE = {"sink.parallelism": "3"}


def topic(folder: Path, options: Mapping[str, str]) -> Topic:
    """A topic with these options."""
    return loaded(folder, pipeline_text(options=options)).topic


@pytest.mark.parametrize(
    ("options", "rows", "shards"),
    [
        pytest.param({}, 0, 2, id="small"),
        pytest.param({}, 1_000_000, 2, id="half a million each"),
        pytest.param({}, 1_000_001, 4, id="more"),
        pytest.param({}, 10**9, 16, id="the maximum"),
        pytest.param(THREE, 10**9, 3, id="set by the user"),
        pytest.param(FIXED, 10**9, 2, id="the shard decides the partition"),
    ],
)
def test_large_ranges_have_more_shards(
    tmp_path: Path, options: dict[str, str], rows: int, shards: int
) -> None:
    sharding = sharding_for(topic(tmp_path, {**ONCE, **options}), 2)
    assert sharding is not None and sharding.shards(rows) == shards


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        pytest.param({}, 2, id="a key has one record"),
        pytest.param(THREE, 0, id="set by the user"),
        pytest.param(CDC, 0, id="several messages for a change"),
        pytest.param(FIXED, 0, id="the shard decides the partition"),
    ],
)
def test_a_shard_may_be_a_file(tmp_path: Path, options: dict[str, str], tasks: int) -> None:
    sharding = sharding_for(topic(tmp_path, {**ONCE, **options}), 2)
    assert sharding is not None and sharding.file_tasks == tasks


def test_without_transactions_there_are_no_shards(tmp_path: Path) -> None:
    assert sharding_for(topic(tmp_path, {}), 2) is None


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


PLANNED = pipeline_text(options=THREE, sections="publish: {net-changes: false}\n")
KEYLESS = PLANNED.replace(", PRIMARY KEY (id) NOT ENFORCED", "").replace("upsert-kafka", "kafka")
KEYLESS = KEYLESS.replace("'key.format' = 'json', 'value.format'", "'format'")
CHANGES = PLANNED.replace("upsert-kafka", "kafka").replace(
    "'value.format' = 'json'", "'key.fields' = 'id', 'value.format' = 'debezium-json'"
)


def fingerprint(folder: Path, text: str) -> str:
    definition = loaded(folder, text)
    return plan_fingerprint(definition, definition.topic)


@pytest.mark.parametrize(
    ("file", "before", "after", "same"),
    [
        (PLANNED, "'sink.parallelism' = '3'", "'sink.parallelism' = '5'", True),
        (PLANNED, "name STRING", "name STRING, more INT", True),
        (PLANNED, "'key.format' = 'json'", "'key.format' = 'csv'", False),
        (PLANNED, "'value.format' = 'json'", "'value.format' = 'csv'", True),
        (CHANGES, "net-changes: false", "update-messages: pair", False),
        (PLANNED, "net-changes: false", "net-changes: true", False),
        (PLANNED, "(id)", "(id, name)", False),
        (KEYLESS, "name STRING", "name STRING, more INT", False),
        (KEYLESS, "name STRING", "name STRING, at TIMESTAMP(3) METADATA FROM 'timestamp'", False),
        (KEYLESS, "name STRING", "name STRING, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL", True),
        (
            PLANNED,
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
