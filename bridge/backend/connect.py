"""A session of Spark Connect: a client without a JVM, as on Databricks' standard and serverless compute."""

from __future__ import annotations

import os
import re
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from bridge.backend.connect_table import ConnectTable
from bridge.backend.contract import Feature, HandleOfTable
from bridge.spark_versions import is_databricks_connect

if TYPE_CHECKING:
    import pyarrow as pa

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

_ELSEWHERE = "use compute with standard or dedicated access mode"
SERVERLESS = {
    **REFUSED,
    Feature.SETTINGS: f"serverless compute takes six settings of Spark and no others; {_ELSEWHERE}",
    Feature.PERSIST: f"serverless compute keeps no frames; {_ELSEWHERE}",
    Feature.CLIENT_DISK: "serverless compute forgets the disk of its client; let `run.state` name a table",
    Feature.KAFKA_IN_TASKS: f"Python tasks of serverless compute have no network; {_ELSEWHERE}",
}
"""Why Databricks' serverless compute cannot, and which compute can."""
_PROBE = "spark.sql.codegen.hugeMethodLimit"
_NO_SETTING = "CONFIG_NOT_AVAILABLE"
_TASKS = 8
"""How many tasks run at once, where the compute does not tell."""

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
        if (reason := REFUSED.get(feature)) is None and feature in SERVERLESS and self._is_serverless:
            return SERVERLESS[feature]
        return reason

    @cached_property
    def _is_serverless(self) -> bool:
        """Whether the compute has serverless's rules: it refuses to set one more setting, to the value that it has."""
        try:
            self._spark.conf.set(_PROBE, self._spark.conf.get(_PROBE))
        except PySparkException as refused:
            if _NO_SETTING not in str(refused):
                raise
            return True
        return False

    def setting(self, name: str) -> str | None:
        try:
            return self._spark.conf.get(name, None)  # type: ignore[no-any-return]
        except PySparkException as refused:
            if _NO_SETTING not in str(refused):
                raise
            return None

    @property
    def parallelism(self) -> int:
        """The setting, as a client does not see the server's cores: `spark.sql.shuffle.partitions`, else local[n]."""
        cores = re.match(r"local\[(\d+)", self.master)
        tasks = cores[1] if cores else self.setting("spark.sql.shuffle.partitions") or ""
        return max(1, int(tasks)) if tasks.isdecimal() else _TASKS  # Databricks' default is `auto`

    @property
    def application(self) -> str:
        return str(self._spark.session_id)

    @property
    def master(self) -> str:
        return self.setting("spark.master") or "connect"

    def batches(self, frame: DataFrame) -> Iterator[pa.RecordBatch]:
        given: Any = frame
        client, plan = self._spark.client, given._plan
        # As `toLocalIterator` does it, and without an object for each row.
        for part in client.to_table_as_iterator(plan.to_proto(client), plan.observations):
            if hasattr(part, "to_batches"):  # the first one is the schema
                yield from part.to_batches()

    def child(self) -> SparkSession:
        # Spark 4.0 and Databricks Connect 17.3 lack it; that of Databricks Connect 18 fails, and hangs at exit.
        if hasattr(self._spark, "cloneSession") and not is_databricks_connect():
            self._spark.version  # noqa: B018 (the first request makes the session that is to be cloned)
            return self._spark.cloneSession()  # type: ignore[no-any-return]
        # `SparkSession.builder` would make the new session the active one; `_builder` knows the server and the login.
        channel = deepcopy(self._spark.client._builder)
        channel.set("session_id", str(uuid.uuid4()))
        return type(self._spark)(channel)  # type: ignore[no-any-return]

    def run_tasks(
        self,
        task: Callable[[Iterable[_Part]], Iterable[_Found]],
        parts: Sequence[_Part],
        *,
        tag: str | None = None,
    ) -> list[_Found]:
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
        tells_version = self.can(Feature.SETTINGS) is None
        return ConnectTable(self._spark, name, path, tells_version)  # type: ignore[return-value]

    def is_table(self, path: str) -> bool:
        return ConnectTable.is_table(self._spark, path)
