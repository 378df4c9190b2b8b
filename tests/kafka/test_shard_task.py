"""A task refuses rows that belong to another task before it sends any of them."""

from __future__ import annotations

import pytest

from bridge.kafka.arrow_records import ArrowRecords
from bridge.kafka.shard_state import ShardSpec
from bridge.kafka.shard_task import ShardTask


@pytest.mark.parametrize(
    ("task_per_shard", "message"),
    [
        pytest.param(True, "rows of shard 2 are in the task of another shard", id="by key"),
        pytest.param(False, "rows that do not continue a data file", id="by file"),
    ],
)
def test_the_message_for_stray_rows(task_per_shard: bool, message: str) -> None:
    spec = ShardSpec("p", "r", ("t",), 4, 0, {}, {})
    task = ShardTask(ArrowRecords(("t",)), spec, "default", 0, task_per_shard=task_per_shard)
    assert message in task.stray_message(2)
