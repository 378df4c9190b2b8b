"""A session of Spark Connect: a client without a JVM, as on Databricks' standard compute."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from bridge.backend.connect_table import ConnectTable
from bridge.backend.contract import Feature, HandleOfTable

_CLASSIC = (
    "use a Spark that the bridge starts, spark-submit, or on Databricks compute with dedicated access mode"
)
REFUSED = {
    Feature.STREAMS: "Spark Connect runs the callback of a streaming query in another process",
    Feature.TABLE_FILES: "Spark Connect: only the server reaches the files of tables",
    Feature.WORKING_FILES: f"the server does not reach `run.checkpoint`, a place of the client; {_CLASSIC}",
    Feature.TRANSACTIONS: f"Kafka's AdminClient is in the server's JVM; {_CLASSIC}",
    Feature.FILE_ACTIONS: f"Delta's transactions are in the server's JVM; {_CLASSIC}",
    Feature.METRICS: "Spark's metrics of queries are in the server's JVM",
}
"""Why Spark Connect cannot, and which compute can."""

_Part = TypeVar("_Part")
_Found = TypeVar("_Found")


def _close(client: Any) -> None:
    # Python may collect the session in a thread of the client, which cannot wait for itself; pyspark then closes it.
    with suppress(RuntimeError):
        client.close()


class ClientFiles:
    """See `contract.Files`: those of the client's machine, which may be another one than the server's."""

    def qualified(self, path: str) -> str:
        return path if re.match(r"[a-z][a-z0-9+.-]+:", path) else f"file:{Path(path).absolute()}"

    def local_path(self, path: str) -> Path | None:
        scheme, _, rest = self.qualified(path).partition(":")
        # As Hadoop's client reads it: `%20`, `?` and `#` are in a name.
        return Path(f"/{rest.lstrip('/')}") if scheme == "file" else None

    def settings(self) -> Callable[[str], str | None]:
        return lambda name: None

    def names(self, folder: str) -> list[str]:
        place = self.local_path(folder)
        return sorted(os.listdir(place)) if place is not None and place.is_dir() else []


class ConnectBackend:
    """See `contract.Backend`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self.files = ClientFiles()
        if (client := getattr(spark, "client", None)) is not None:
            # pyspark would close it while Python shuts down, when its threads no longer answer: the process would hang.
            weakref.finalize(spark, _close, client)

    def can(self, feature: Feature) -> str | None:
        return REFUSED.get(feature)

    @property
    def parallelism(self) -> int:
        """The setting, as a client does not see the server's cores: `spark.sql.shuffle.partitions`, else local[n]."""
        cores = re.match(r"local\[(\d+)", self.master)
        return max(1, int(cores[1] if cores else self._spark.conf.get("spark.sql.shuffle.partitions", "2")))

    @property
    def application(self) -> str:
        return str(self._spark.session_id)

    @property
    def master(self) -> str:
        return str(self._spark.conf.get("spark.master", "connect") or "connect")

    def child(self) -> SparkSession:
        self._spark.version  # noqa: B018 (the first request makes the session that is to be cloned)
        if hasattr(self._spark, "cloneSession"):  # databricks-connect 17.3 lacks it
            return self._spark.cloneSession()  # type: ignore[no-any-return]
        remote = os.environ.get("SPARK_REMOTE")
        builder: Any = SparkSession.builder.remote(remote) if remote else SparkSession.builder
        return builder.create()  # type: ignore[no-any-return]

    def run_tasks(
        self,
        task: Callable[[Iterable[_Part]], Iterable[_Found]],
        parts: Sequence[_Part],
        *,
        tag: str | None = None,
    ) -> list[_Found]:
        import pyarrow as pa

        pickled = [cloudpickle.dumps(part) for part in parts]  # type: ignore[no-untyped-call]

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pickle

            import pyarrow as pa
            from pyspark import cloudpickle

            given = (pickle.loads(pickled[row]) for batch in batches for row in batch.column(0).to_pylist())
            for found in task(given):
                made = cloudpickle.dumps(found)  # type: ignore[no-untyped-call]
                yield pa.RecordBatch.from_arrays([pa.array([made], pa.binary())], ["found"])

        if tag is not None:
            self._spark.addTag(tag)
        try:
            numbers = self._spark.range(0, len(parts), 1, len(parts))
            rows = numbers.mapInArrow(run, "found binary").collect()
        finally:
            if tag is not None:
                self._spark.removeTag(tag)
        return [cloudpickle.loads(row[0]) for row in rows]

    def cancel(self, tag: str | None = None) -> None:
        if tag is None:
            self._spark.interruptAll()
        else:
            self._spark.interruptTag(tag)

    def has_ended(self) -> bool:
        return bool(self._spark.is_stopped)

    def table(self, name: str | None, path: str | None) -> HandleOfTable:
        return ConnectTable(self._spark, name, path)  # type: ignore[return-value]

    def is_table(self, path: str) -> bool:
        return ConnectTable.is_table(self._spark, path)
