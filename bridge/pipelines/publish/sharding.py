"""How many shards a new publish range has, and whether each of its data files may be one."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.definition import DeliveryGuarantee, Topic
from bridge.partitioners import TASK_FREE
from bridge.pipelines.publish.plan_fingerprint import is_unique


@dataclass(frozen=True)
class Sharding:
    """The shards of an exactly-once publish. A publish without transactions has none."""

    tasks: int
    """How many tasks send at a time: `sink.parallelism`, or what Spark runs."""
    scales: bool = True
    """Whether a range with more rows has more shards. False where `sink.parallelism` fixes their number, and where a
    partitioner places records by their task, which is the shard's number."""
    allows_files: bool = True
    """Whether a data file may be a shard. Files have no order among them, so no key may be in two of them."""
    rows_per_shard: int = 500_000
    """A task that sorts more rows than this is slower for each of them, since its memory is soon full."""
    max_shards_per_task: int = 8
    """More shards than this for each task do not pay for their transactional ids."""

    def shards(self, rows: int = 0) -> int:
        """The number of shards of a range with about `rows` rows; a multiple of `tasks`."""
        shards_per_task = -(-rows // (self.tasks * self.rows_per_shard)) if self.scales else 1
        return self.tasks * min(max(shards_per_task, 1), self.max_shards_per_task)

    @property
    def file_tasks(self) -> int:
        """How many tasks send at a time where data files are the shards; 0 where they may not be."""
        return self.tasks if self.scales and self.allows_files else 0


def sharding_for(topic: Topic, parallelism: int) -> Sharding | None:
    """The sharding of a publish to `topic`; None where `sink.delivery-guarantee` is not exactly-once. `parallelism` is
    the number of tasks that Spark runs at a time."""
    sink = topic.sink
    if sink.delivery_guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
        return None
    return Sharding(
        tasks=sink.parallelism or parallelism,
        scales=sink.parallelism is None and sink.partitioner in TASK_FREE,
        allows_files=is_unique(topic),
    )
