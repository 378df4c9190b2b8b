"""Which partition a published record goes to: `sink.partitioner` of the connector 'kafka'.

'default' and 'round-robin' are librdkafka's own; 'fixed' and classes of the user's are objects of this Protocol, one in
each task that sends.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Sequence
from typing import Any, Protocol, cast

from bridge.errors import KafkaError, OptionError

__all__ = ["BUILT_IN", "TASK_FREE", "FixedPartitioner", "Partitioner", "opened", "partitioner_class"]

BUILT_IN = ("default", "fixed", "round-robin")

TASK_FREE = ("default", "round-robin")
"""Those that do not ask which task a record is sent by."""


class Partitioner(Protocol):
    """What the class named by `sink.partitioner` = 'module:Class' can do; Flink calls it FlinkKafkaPartitioner.

    It is made without arguments: once where the definition is loaded, to see that it can be, and once in every
    task. Driver and executors must be able to import its module. A class that inherits from this one need
    only have `partition`.
    """

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:
        """Called once, before the first record: which of how many tasks this is, counted from 0."""

    def partition(self, key: bytes | None, value: bytes | None, topic: str, partitions: Sequence[int]) -> int:
        """One of `partitions`, the topic's, ascending. Called for each record in the order of sending.

        `key` and `value` are the bytes that are sent; a null value is a tombstone. All records of a key are
        given to the same task, in order; they stay in order only if they get the same partition. A number that is no
        partition of the topic and an exception end the run.
        """
        ...


class FixedPartitioner:
    """'fixed': all records of a task go to one partition; task i to the i-th, beginning again after the last."""

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:
        self._task = parallel_instance_id

    def partition(self, key: bytes | None, value: bytes | None, topic: str, partitions: Sequence[int]) -> int:
        return partitions[self._task % len(partitions)]


class _Guarded:
    """A user's partitioner whose mistakes are KafkaErrors; no payload gets into them."""

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
            # An integer is told as it is; of anything else only the type, for it may be the payload.
            told = str(number) if isinstance(chosen, int) else f"a value of type {type(chosen).__name__}"
            raise KafkaError(
                f"partitioner class '{self._name}' returned {told} for topic '{topic}'; legal are "
                f"{partitions[0]} to {partitions[-1]}"
            )
        return number

    def _failed(self, method: str, failed: Exception) -> KafkaError:
        return KafkaError(f"partitioner class '{self._name}' failed in {method}(): {_where(failed)}")


def partitioner_class(name: str) -> type[Partitioner]:
    """The class that `name` ('module:Class', or 'module.Class') stands for, tried out.

    Raises OptionError, beginning with Flink's words, when it cannot be imported or made or lacks a method.
    """
    module, _, path = name.partition(":") if ":" in name else name.rpartition(".")
    if not module or not path:
        raise _not_found(name, "it names no module")
    try:
        found: Any = operator.attrgetter(path)(importlib.import_module(module))
        made = found() if isinstance(found, type) else None
    except (ImportError, AttributeError) as missing:
        raise _not_found(name, str(missing)) from None
    except Exception as failed:  # a user's module or constructor may raise anything
        raise _not_found(name, _where(failed)) from None
    lacking = [m for m in ("open", "partition") if not callable(getattr(made, m, None))]
    if made is None or lacking:
        raise _not_found(name, "it is no class" if made is None else f"it has no method {lacking[0]}()")
    return cast("type[Partitioner]", found)


def opened(choice: str, task: int, tasks: int) -> Partitioner | None:
    """The partitioner of task `task` of `tasks` for a value of `sink.partitioner`; None: librdkafka's own.

    Raises KafkaError for what goes wrong in the executor.
    """
    if choice in TASK_FREE:
        return None
    made: Partitioner
    if choice == "fixed":
        made = FixedPartitioner()
    else:
        try:
            made = _Guarded(choice, partitioner_class(choice)())
        except OptionError as absent:
            raise KafkaError(f"in an executor: {absent}") from None
    made.open(task, tasks)
    return made


def _not_found(name: str, why: str) -> OptionError:
    return OptionError(
        f"Could not find and instantiate partitioner class '{name}': {' '.join(why.split())}. Legal values are "
        f"{', '.join(BUILT_IN)} and module:Class, a Python class with the methods of bridge.partitioners.Partitioner "
        "that the driver and the executors can import; Java's classes are not run (FlinkFixedPartitioner is 'fixed')"
    )


def _where(failed: Exception) -> str:
    """Type and place of an exception: its text may quote a record."""
    trace = failed.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = "" if trace is None else f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(failed).__name__}{at}"
