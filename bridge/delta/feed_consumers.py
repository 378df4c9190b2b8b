"""Feed consumers: a small file beside the table's data for each publish, with the version that it has published.

VACUUM ignores folders whose names begin with an underscore. `maintain` reads the files; a publish continues from its
own progress, never from here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pyspark.sql import functions as F

from bridge.bridge_folders import consumer_file, consumer_of, consumers_folder
from bridge.delta.change_feed import latest_version
from bridge.delta.delta_errors import table_errors
from bridge.delta.table import Table
from bridge.errors import TableError
from bridge.metrics import now_ms
from bridge.small_files import SmallFiles

MARGIN_SECONDS = 3600
"""Files of a version are written before its commit; no commit of the bridge takes this long."""

_READS = 3


@dataclass(frozen=True)
class FeedConsumer:
    """A publish, as it registered itself."""

    pipeline: str
    version: int
    """It still needs the changes after this table version, and the files of this version; -1: also those of version
    0."""
    table_id: str
    at: int
    """When it registered, in epoch milliseconds."""
    checkpoint: str


@dataclass(frozen=True)
class Lag:
    """How far a consumer is behind the table."""

    consumer: FeedConsumer
    versions: int
    """How many versions it has not published."""
    since_ms: int | None
    """When the version after the consumer's was committed; None for a consumer that is not behind, or is `lost`."""
    lost: bool = False
    """True when the log no longer has the version it needs next: it cannot continue, whatever VACUUM retains."""

    def seconds(self, now_ms: int) -> float:
        """For how long it has been behind, in seconds."""
        return 0.0 if self.since_ms is None else max(0.0, (now_ms - self.since_ms) / 1000)


class FeedConsumers:
    """The feed consumers that are registered at one table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        location = table.target.path
        if location is None:
            with table_errors(table):
                location = str(table.delta().detail().select("location").collect()[0][0])
        self.table_folder = location
        self.folder = consumers_folder(location)
        self._files = SmallFiles(table.spark, self.folder)

    def register(self, pipeline: str, version: int, checkpoint: str) -> None:
        """Record that `pipeline` has published up to `version`. Raises the store's own error when it refuses."""
        consumer = FeedConsumer(pipeline, version, self._table.id, now_ms(), checkpoint)
        self._files.replace(consumer_file(pipeline), json.dumps(asdict(consumer)))

    def all(self) -> list[FeedConsumer]:
        """The registered consumers of the table, by name; those of an earlier table in this folder are left out.

        Raises TableError for a file that cannot be read, as it is not known what its pipeline still needs.
        """
        pipelines = map(consumer_of, self._files.names())
        consumers = [self._read(pipeline) for pipeline in pipelines if pipeline is not None]
        return [c for c in consumers if c is not None and c.table_id == self._table.id]

    def forget(self, pipeline: str) -> bool:
        """Remove a registration; False when there is none."""
        if consumer_file(pipeline) not in self._files.names():
            return False
        self._files.delete(consumer_file(pipeline))
        return True

    def _read(self, pipeline: str) -> FeedConsumer | None:
        failure: Exception | None = None
        for attempt in range(_READS):
            time.sleep(0.2 * attempt)  # a store without atomic replacement may return a part of it
            try:
                return FeedConsumer(**json.loads(self._files.read(consumer_file(pipeline))))
            except FileNotFoundError:
                return None
            except (ValueError, TypeError) as error:
                failure = error
        raise TableError(
            f"{self._file(pipeline)} cannot be read, so it is not known what the publish {pipeline!r} still needs. Its "
            "next run writes it anew; if it is stopped for good, run `bridge maintain FILE --forget-consumer "
            f"{pipeline}`"
        ) from failure

    def _file(self, pipeline: str) -> str:
        return f"{self.folder}/{consumer_file(pipeline)}"


def lags(table: Table, consumers: Sequence[FeedConsumer]) -> list[Lag]:
    """Measure how far each consumer is behind, in one Spark job over the commits since the slowest of them."""
    if not consumers:
        return []
    newest = latest_version(table)
    with table_errors(table):
        slowest = min(c.version for c in consumers)
        log = table.delta().history(max(1, newest - slowest + 1))
        versions = {v for c in consumers for v in (c.version, c.version + 1)}
        times: dict[int, int] = dict(
            log.where(F.col("version").isin(sorted(versions)))
            .select("version", F.unix_millis("timestamp"))
            .collect()  # at most two rows per consumer
        )
    return [_lag(c, newest, times) for c in consumers]


def _lag(consumer: FeedConsumer, newest: int, times: dict[int, int]) -> Lag:
    versions = newest - consumer.version
    if versions <= 0:
        return Lag(consumer, 0, None)
    following = times.get(consumer.version + 1)
    if following is None:
        return Lag(consumer, versions, None, lost=True)
    return Lag(consumer, versions, times.get(consumer.version, following))
