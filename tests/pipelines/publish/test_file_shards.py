"""When data files are worth a shard each."""

from __future__ import annotations

import pytest

from bridge.pipelines.publish.file_shards import FileShardLimits


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
