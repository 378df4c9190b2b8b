"""What the bridge asks of a Spark, however Python reaches it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession

__all__ = ["Backend", "Feature", "Files", "HandleOfTable"]

_Part = TypeVar("_Part")
_Found = TypeVar("_Found")

if TYPE_CHECKING:
    import pyarrow as pa
    from delta.tables import DeltaTable as HandleOfTable
else:
    HandleOfTable = Any
"""A `delta.tables.DeltaTable`, or `connect_table.ConnectTable`, which has the methods that the bridge calls."""


class Feature(Enum):
    """What some compute cannot do; the value says it in a sentence."""

    STREAMS = "Spark's streaming source calls the bridge for each batch"
    TABLE_FILES = "the driver reads and writes the files of tables"
    WORKING_FILES = "Spark writes working files below `run.checkpoint`"
    TRANSACTIONS = "transactions of Kafka are listed and ended"
    FILE_ACTIONS = "files are removed from a table by their statistics"
    METRICS = "a check reports what it has read"
    SETTINGS = "a commit has its progress from settings of the session"
    PERSIST = "frames that are read several times are kept"
    CLIENT_DISK = "the state of a pipeline is in a folder of a local disk"
    KAFKA_IN_TASKS = "Spark's Python tasks read from Kafka and write to it"


class Files(Protocol):
    """Files and folders by their paths and URIs."""

    def qualified(self, path: str) -> str:
        """Return the path with its file system, and from the root."""
        ...

    def local_path(self, path: str) -> Path | None:
        """Return the path as Python opens it; None where it is not on a local disk."""
        ...

    def settings(self) -> Callable[[str], str | None]:
        """Return what looks up a setting of Hadoop's clients of stores, in its credential stores, too."""
        ...

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted; [] for a missing one."""
        ...


class Backend(Protocol):
    """One session's Spark. Any thread may use it."""

    def can(self, feature: Feature) -> str | None:
        """Return None where the compute can do it; else why not, and which compute can."""
        ...

    @property
    def parallelism(self) -> int:
        """How many tasks run at once: at least 1."""
        ...

    @property
    def application(self) -> str:
        """Names the Spark application: two sessions with the same name have the same executors."""
        ...

    @property
    def master(self) -> str:
        """Where Spark's tasks run, as `spark.master` names it."""
        ...

    @property
    def files(self) -> Files:
        """The files that the driver's process opens."""
        ...

    def setting(self, name: str) -> str | None:
        """Return a setting of the session; None where it is not set, or the compute does not tell it."""
        ...

    def batches(self, frame: DataFrame) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a frame in the order of its partitions. Raises Spark's errors."""
        ...

    def child(self) -> SparkSession:
        """Return a new session of the same Spark with settings of its own."""
        ...

    def run_tasks(
        self,
        task: Callable[[Iterable[_Part]], Iterable[_Found]],
        parts: Sequence[_Part],
        *,
        tag: str | None = None,
    ) -> list[_Found]:
        """Run a task for each part, on the executors, and return all that they yield, in no order.

        Parts and results are pickled. With a `tag` the job can be cancelled by it. Raises Spark's errors.
        """
        ...

    def cancel(self, tag: str | None = None) -> None:
        """End the jobs with a tag, or all of them. Their `run_tasks` raise Spark's error."""
        ...

    def has_ended(self) -> bool:
        """Whether Spark was stopped or is lost."""
        ...

    def table(self, name: str | None, path: str | None) -> HandleOfTable:
        """Return the handle of a Delta table, by one of both. Raises Spark's error where there is none."""
        ...

    def is_table(self, path: str) -> bool:
        """Whether there is a Delta table at a path."""
        ...
