"""Chooses the partition of a published record: `sink.partitioner` of the connector 'kafka'.

'default' and 'round-robin' are librdkafka's own. 'fixed' and user classes implement the Protocol `Partitioner`; each
task that sends has an instance.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Sequence
from typing import Any, Protocol, cast

from bridge.errors import KafkaError, OptionError

BUILT_IN = ("default", "fixed", "round-robin")

TASK_FREE = ("default", "round-robin")
"""Partitioners whose choice does not depend on the task that sends a record."""


class Partitioner(Protocol):
    """The methods of a class named by `sink.partitioner` = 'module:Class'; FlinkKafkaPartitioner in Flink.

    It is instantiated without arguments: once when the definition is loaded, to check that this is possible, and once
    in every task. Driver and executors must be able to import its module. A subclass of this one needs only
    `partition`:

        class ByRegion(Partitioner):
            def partition(self, key, value, topic, partitions):
                return partitions[0 if key.startswith(b"eu") else -1]
    """

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:
        """Called once, before the first record, with the number of this task, counted from 0, and the number of
        tasks."""

    def partition(self, key: bytes | None, value: bytes | None, topic: str, partitions: Sequence[int]) -> int:
        """Choose one of `partitions`, the topic's, ascending. Called for each record in the order of sending.

        `key` and `value` are the bytes that are sent; a null value is a tombstone. All records of a key are sent by the
        same task, in order; they stay in order only if they have the same partition. An exception ends the run, and so
        does a number that is not a partition of the topic.
        """
        ...


class FixedPartitioner:
    """'fixed': all records of a task go to one partition; those of task i to the i-th, modulo their number."""

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:
        self._task = parallel_instance_id

    def partition(self, key: bytes | None, value: bytes | None, topic: str, partitions: Sequence[int]) -> int:
        return partitions[self._task % len(partitions)]


class AllToZeroPartitioner:
    """`partition.strategy: all-to-zero` of Flink CDC: all records go to the first partition, so they have one order."""

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:
        pass

    def partition(self, key: bytes | None, value: bytes | None, topic: str, partitions: Sequence[int]) -> int:
        return partitions[0]


class _CheckedPartitioner:
    """Turns the errors of a user's partitioner into KafkaErrors, which do not contain keys or values."""

    def __init__(self, name: str, inner: Partitioner) -> None:
        self._name, self._inner = name, inner

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:
        try:
            self._inner.open(parallel_instance_id, parallel_instances)
        except Exception as failed:
            raise self._failed("open", failed) from None

    def partition(self, key: bytes | None, value: bytes | None, topic: str, partitions: Sequence[int]) -> int:
        try:
            chosen = self._inner.partition(key, value, topic, partitions)
        except Exception as failed:
            raise self._failed("partition", failed) from None
        try:
            number = operator.index(chosen)
        except TypeError:
            number = -1
        if number not in partitions:
            # Of anything but an integer only the type is shown, as it may be a key or a value.
            returned = str(number) if isinstance(chosen, int) else f"a value of type {type(chosen).__name__}"
            raise KafkaError(
                f"partitioner class '{self._name}' returned {returned} for topic '{topic}'; legal are "
                f"{partitions[0]} to {partitions[-1]}"
            )
        return number

    def _failed(self, method: str, failed: Exception) -> KafkaError:
        return KafkaError(f"partitioner class '{self._name}' failed in {method}(): {_where(failed)}")


def partitioner_class(name: str) -> type[Partitioner]:
    """Import the class that `name` ('module:Class', or 'module.Class') names, and check that it can be instantiated.

    Raises OptionError, with Flink's message first, when it cannot be imported or instantiated or lacks a method.
    """
    module, _, path = name.partition(":") if ":" in name else name.rpartition(".")
    if not module or not path:
        raise _not_found(name, "it names no module")
    try:
        named: Any = operator.attrgetter(path)(importlib.import_module(module))
        instance = named() if isinstance(named, type) else None
    except (ImportError, AttributeError) as missing:
        raise _not_found(name, str(missing)) from None
    except Exception as failed:  # a user's module or constructor may raise anything
        raise _not_found(name, _where(failed)) from None
    lacking = [m for m in ("open", "partition") if not callable(getattr(instance, m, None))]
    if instance is None or lacking:
        raise _not_found(
            name, "it is not a class" if instance is None else f"it has no method {lacking[0]}()"
        )
    return cast("type[Partitioner]", named)


def opened(choice: str, task: int, tasks: int) -> Partitioner | None:
    """Instantiate and open the partitioner of task `task` of `tasks` for a value of `sink.partitioner`; None for
    librdkafka's own.

    Raises KafkaError when the class cannot be imported or opened in the executor.
    """
    if choice in TASK_FREE:
        return None
    partitioner: Partitioner
    if choice == "fixed":
        partitioner = FixedPartitioner()
    else:
        try:
            partitioner = _CheckedPartitioner(choice, partitioner_class(choice)())
        except OptionError as missing:
            raise KafkaError(f"in an executor: {missing}") from None
    partitioner.open(task, tasks)
    return partitioner


def _not_found(name: str, why: str) -> OptionError:
    return OptionError(
        f"Could not find and instantiate partitioner class '{name}': {' '.join(why.split())}. Legal values are "
        f"{', '.join(BUILT_IN)} and module:Class, a Python class with the methods of bridge.partitioners.Partitioner "
        "that the driver and the executors can import; Java classes cannot be used (FlinkFixedPartitioner is 'fixed')"
    )


def _where(failed: Exception) -> str:
    """The type and the place of an exception, without its text, which may quote a record."""
    trace = failed.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = "" if trace is None else f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(failed).__name__}{at}"
