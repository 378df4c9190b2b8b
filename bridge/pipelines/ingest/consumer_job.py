"""One Spark job whose tasks are Kafka consumers: each reads some of the ranges of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pyspark.sql import SparkSession

from bridge.backend import ENGINE_ERRORS, backend_of
from bridge.errors import MissingPackageError
from bridge.kafka.range_parts import PartitionRange
from bridge.kafka.task_errors import TaskErrors
from bridge.kafka.worker_check import expected
from bridge.offsets import Offsets
from bridge.ways import NotThisWay

TIMEOUT_SECONDS = 60.0
"""How long a broker may not answer: Kafka's default.api.timeout.ms."""

_Found = TypeVar("_Found")
_Found_co = TypeVar("_Found_co", covariant=True)


class ConsumerTask(Protocol[_Found_co]):
    """What runs in the workers. It is sent there, so it is a plain value."""

    def run(self, ranges: Iterable[Sequence[PartitionRange]]) -> Iterator[_Found_co | NotThisWay]:
        """Yield what is made of the ranges of each element; end by yielding NotThisWay where only Spark's source reads
        them, as an error would fail the job."""
        ...


@dataclass(frozen=True)
class ConsumerJob:
    """Runs tasks of one pipeline."""

    spark: SparkSession
    properties: Mapping[str, Any]
    """Of the topic, with Java's names."""
    required: bool
    """Whether executors must have what the tasks import."""

    @property
    def tasks(self) -> int:
        """The number of tasks of a large batch: one per core."""
        return backend_of(self.spark).parallelism

    def run(
        self, ranges: Sequence[PartitionRange], task: ConsumerTask[_Found], *, tag: str | None = None
    ) -> list[_Found]:
        """Return what the tasks have found, in no order. With a `tag`, `cancel` ends it.

        Raises NotThisWay if one of them yields it, and where the executors lack a package that is not `required`;
        MissingPackageError where it is; GapError and KafkaError of a task; Spark's errors.
        """
        if not ranges:
            return []
        given = shares(ranges, self.tasks)
        errors = TaskErrors(expected(self.properties))
        try:
            results = backend_of(self.spark).run_tasks(errors.task(task.run), given, tag=tag)
        except ENGINE_ERRORS as failure:
            error = errors.error(failure)
            if isinstance(error, MissingPackageError) and not self.required:
                raise NotThisWay(str(error).partition(":")[0]) from None
            raise error or failure from None
        found: list[_Found] = []
        for result in results:
            if isinstance(result, NotThisWay):
                raise result
            found.append(result)
        return found

    def cancel(self, job_group: str) -> None:
        """End the job of a `run` in another thread, which then raises Spark's error. Does nothing without one."""
        backend_of(self.spark).cancel(job_group)


def ranges_between(start: Offsets, end: Offsets) -> list[PartitionRange]:
    """The ranges of the partitions that have offsets between `start` and `end`; one without a start is left out."""
    return [
        PartitionRange(name, partition, low, high)
        for name, partition, high in end
        if (low := start.get(name, partition)) is not None and low < high
    ]


def shares(ranges: Sequence[PartitionRange], tasks: int) -> list[list[PartitionRange]]:
    """Distribute the ranges over at most `tasks` tasks, by their lengths."""
    found: list[list[PartitionRange]] = [[] for _ in range(min(tasks, len(ranges)))]
    lengths = [0] * len(found)
    for each in sorted(ranges, key=lambda r: (r.start - r.end, r.topic, r.partition)):
        shortest = lengths.index(min(lengths))
        found[shortest].append(each)
        lengths[shortest] += each.end - each.start
    return found
