"""Feed consumers: for each publish of a table, the version that it has published.

It is a small file beside the table's data, as VACUUM ignores folders whose names begin with an underscore; where the
publish has `run.state`, a row there, and a property of the table names that state. `maintain` reads both; a publish
continues from its own progress, never from here.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from pyspark.sql import functions as F

from bridge.bridge_folders import consumer_file, consumer_of, consumers_folder, consumers_of
from bridge.definition import DeltaTarget
from bridge.delta.change_feed import latest_version
from bridge.delta.delta_errors import retry_conflicts, table_errors
from bridge.delta.file_state import FileState
from bridge.delta.state_choice import table_state
from bridge.delta.state_store import StateStore
from bridge.delta.table import Table, described, set_properties
from bridge.delta.table_checks import CONSUMERS_PREFIX
from bridge.errors import BridgeError, TableError
from bridge.metrics import now_ms

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
    """The feed consumers that are registered at one table; `state` is where new ones are registered, None for files."""

    def __init__(self, table: Table, state: DeltaTarget | None = None) -> None:
        self._table, self._state = table, state
        location = table.target.path
        if location is None:
            with table_errors(table):
                location = str(table.delta().detail().select("location").collect()[0][0])
        self.table_folder = location
        self._rows = consumers_of(table.id)
        self._own = None if state is None else table_state(table.spark, state)
        self.place = consumers_folder(location) if self._own is None else self._own.place(self._rows)

    def register(self, pipeline: str, version: int, checkpoint: str) -> None:
        """Record that `pipeline` has published up to `version`. Raises the store's own error when it refuses.

        In a state that the table does not name yet, it names it first, in a commit of its own.
        """
        consumer = FeedConsumer(pipeline, version, self._table.id, now_ms(), checkpoint)
        text = json.dumps(asdict(consumer))
        if self._own is None:
            self._files.write(consumer_file(pipeline), text)
        else:
            self._name_state()
            self._own.write(f"{self._rows}/{consumer_file(pipeline)}", text)

    def all(self) -> list[FeedConsumer]:
        """The registered consumers of the table, by name; those of an earlier table in this folder are left out.

        Raises TableError for a registration that cannot be read, as it is not known what its pipeline still needs;
        BridgeError where the files beside the table are not reached, and the table names no state.
        """
        consumers: dict[str, FeedConsumer] = {}
        for state, folder in self._places():
            for pipeline in filter(None, map(consumer_of, state.names(folder))):
                found = self._read(state, folder, pipeline)
                if found is None or found.table_id != self._table.id:
                    continue
                # A publish that has moved to a state leaves its file behind.
                if pipeline not in consumers or consumers[pipeline].at < found.at:
                    consumers[pipeline] = found
        return sorted(consumers.values(), key=lambda consumer: consumer.pipeline)

    def forget(self, pipeline: str) -> bool:
        """Remove a registration; False when there is none."""
        is_there = False
        for state, folder in self._places():
            if consumer_file(pipeline) in state.names(folder):
                state.delete(f"{folder}/{consumer_file(pipeline)}".lstrip("/"))
                is_there = True
        return is_there

    @cached_property
    def _files(self) -> FileState:
        return FileState(self._table.spark, consumers_folder(self.table_folder))

    def _places(self) -> list[tuple[StateStore, str]]:
        # As they are now: a publish may have begun after the table was opened.
        properties = described(self._table.spark, self._table.target).properties
        named = (value for name, value in properties.items() if name.startswith(CONSUMERS_PREFIX))
        targets = [DeltaTarget(**json.loads(value)) for value in named]
        if self._state is not None:
            targets.append(DeltaTarget(self._state.path, self._state.table))
        found: dict[str, tuple[StateStore, str]] = {
            str(target): (table_state(self._table.spark, target), self._rows) for target in targets
        }
        try:
            return [(self._files, ""), *found.values()]
        except BridgeError:  # through Spark Connect, beside a table of the server
            if not found:
                raise
            return [*found.values()]

    def _name_state(self) -> None:
        assert self._state is not None
        value = json.dumps({"path": self._state.path, "table": self._state.table})
        name = CONSUMERS_PREFIX + hashlib.sha256(value.encode()).hexdigest()[:8]
        if self._table.properties.get(name) == value:
            return
        table = self._table
        retry_conflicts(
            table,
            lambda: set_properties(table.spark, table.target, {name: value}),
            f"table {table}: naming {self._state} as a place of registrations",
            "the publish goes on without being registered; run it again at another time",
        )
        self._table = replace(table, properties={**table.properties, name: value})

    def _read(self, state: StateStore, folder: str, pipeline: str) -> FeedConsumer | None:
        failure: Exception | None = None
        name = f"{folder}/{consumer_file(pipeline)}".lstrip("/")
        for attempt in range(_READS):
            time.sleep(0.2 * attempt)  # a store without atomic replacement may return a part of it
            try:
                text = state.read(name)
                return None if text is None else FeedConsumer(**json.loads(text))
            except (ValueError, TypeError) as error:
                failure = error
        raise TableError(
            f"{state.place(name)} cannot be read, so it is not known what the publish {pipeline!r} still needs. Its "
            "next run writes it anew; if it is stopped for good, run `bridge maintain FILE --forget-consumer "
            f"{pipeline}`"
        ) from failure


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
