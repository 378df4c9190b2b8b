"""Looks at one pipeline from outside of its process, without Spark: its log, topic, checkpoint, events and metrics.

What cannot be seen is a reason in the line of the pipeline; nothing that is wrong there raises.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from bridge.bridge_folders import lease_name, publish_log_batch, publish_log_folder
from bridge.definition import Definition
from bridge.errors import BridgeError
from bridge.history.commits import CommitLog
from bridge.lake.reached_store import reached_store
from bridge.lease_owner import LeaseOwner
from bridge.metrics.monitoring import Monitoring
from bridge.metrics.prometheus import check_installed, parsed
from bridge.offsets import Offsets
from bridge.publish_progress import NOTHING, PublishProgress, logged_progress, newest_progress
from bridge.ways import NotThisWay

_MISSED_HEARTBEATS = 3
_TAIL_BYTES = 1 << 18


@dataclass(frozen=True)
class LeaseState:
    """The lease of one side of a pipeline."""

    was_taken: bool
    is_held: bool
    """Whether its owner is a process that runs here, or sends heartbeats from elsewhere."""


def lease_state(folder: str, side: str, names: Collection[str], now_ms: int) -> LeaseState:
    """Read the lease `side` in a folder. One whose run has none of these names is not counted. Raises the store's
    errors."""
    store, name = reached_store(folder), lease_name(side)
    head = store.head(name)
    if head is None:
        return LeaseState(False, False)
    owner = LeaseOwner.from_json(store.read(name).decode())
    if owner is not None and owner.pipeline not in names:
        return LeaseState(False, False)
    if owner is None or owner.released or owner.is_gone():
        return LeaseState(True, False)
    silent_seconds = now_ms / 1000 - head.modified
    return LeaseState(True, owner.is_running() or silent_seconds <= _MISSED_HEARTBEATS * owner.every)


class PublishLogReader:
    """The publish log of one pipeline, of which each file is read once. For one thread."""

    def __init__(self, checkpoint: str, pipeline: str) -> None:
        self._store, self._pipeline = reached_store(checkpoint), pipeline
        self._place = publish_log_folder(checkpoint)
        self._folder = Path(self._place).name
        self._texts: dict[str, tuple[str, float]] = {}

    def last(self) -> PublishProgress | None:
        """The newest progress, as `newest_progress` returns and raises. Raises the store's errors, too."""
        found = [name for name in self._store.names(self._folder) if publish_log_batch(name) is not None]
        read = ((name, self._texts.get(name) or self._read(name)) for name in found)
        texts = {name: text for name, text in read if text is not None}
        progress = newest_progress(self._place, texts, lambda name: texts[name][0], self._pipeline)
        self._texts = {name: text for name, text in texts.items() if logged_progress(self._place, text[0])}
        return progress

    @property
    def written_ms(self) -> int | None:
        """When the newest file of `last` was written; None without one."""
        return None if not self._texts else int(1000 * self._texts[max(self._texts)][1])

    def version_at(self, at_ms: int, *, at_least: int = NOTHING) -> tuple[int, int] | None:
        """The version that was published at that time, and the time. Where the files of `last` do not reach that
        far, or the version is below `at_least`, it is the first one that they know, and when it was."""
        newest_first = sorted(self._texts.items(), reverse=True)
        found = None
        for _, (text, modified) in newest_first:
            progress, written_ms = logged_progress(self._place, text), int(1000 * modified)
            if progress is None or (found is not None and progress.version < at_least):
                break
            found = progress.version, max(at_ms, written_ms)
            if written_ms < at_ms:
                break
        return found

    def _read(self, name: str) -> tuple[str, float] | None:
        """The text of a file and when it was written; None for one that its run has deleted meanwhile."""
        path = f"{self._folder}/{name}"
        head = self._store.head(path)
        with suppress(FileNotFoundError):
            return None if head is None else (self._store.read(path).decode(), head.modified)
        return None


def last_event(file: str, runs: Collection[tuple[str, str]]) -> dict[str, Any] | None:
    """The newest event of one of these runs, each a pipeline and a verb, among the last ones of an events file; None
    where there is none. Raises OSError for a file that is there and cannot be read."""
    try:
        with open(file, "rb") as opened:
            opened.seek(max(0, os.fstat(opened.fileno()).st_size - _TAIL_BYTES))
            lines = opened.read().splitlines()
    except FileNotFoundError:
        return None
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:  # a part of a line
            continue
        if isinstance(event, dict) and (event.get("pipeline"), event.get("verb")) in runs:
            return event
    return None


_SECONDS = 2.0
_MOST_BYTES = 8 << 20
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


@dataclass(frozen=True)
class Scraped:
    """The samples of one endpoint: name, labels and value of each."""

    samples: tuple[tuple[str, Mapping[str, str], float], ...]

    def of(self, pipeline: str, verb: str) -> dict[str, float]:
        """The values of a pipeline's verb that have no other labels, by their names without `bridge_`."""
        return {name: value for name, labels, value in self._of(pipeline, verb) if len(labels) == 3}

    def reader(self, pipeline: str, verb: str) -> str | None:
        """What read most of the batches; None where nothing was read."""
        counts: dict[str, float] = {}
        for name, labels, value in self._of(pipeline, verb):
            if name == "batches_total":
                counts[labels["reader"]] = counts.get(labels["reader"], 0) + value
        return max(counts, key=lambda reader: counts[reader], default=None)

    def _of(self, pipeline: str, verb: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
        for name, labels, value in self.samples:
            if (labels.get("pipeline"), labels.get("verb")) == (pipeline, verb):
                yield name.removeprefix("bridge_"), labels, value


def scrape(target: str) -> Scraped | None:
    """Ask the endpoint of `run.metrics`; None where nothing answers, and where it is no address: files and gateways
    keep the values of runs that have ended.

    Raises DefinitionError where prometheus-client is missing.
    """
    place = parsed(target)
    if isinstance(place, str):
        return None
    check_installed("run.metrics")
    from prometheus_client.parser import text_string_to_metric_families

    host, port = place
    url = f"http://{_EVERYWHERE.get(host, host)}:{port}/metrics"
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=_SECONDS) as answer:
            text = answer.read(_MOST_BYTES).decode()
        families = list(text_string_to_metric_families(text))
    except (URLError, OSError, ValueError):
        return None
    return Scraped(tuple((s.name, s.labels, s.value) for family in families for s in family.samples))


_T = TypeVar("_T")
_COMMITS = 200
_RATE_SECONDS = 300
_KAFKA_SECONDS = 5.0
_BY_NAME = "delta.table names a table of a catalog, which only Spark finds"
_IN_A_TABLE = "leases and the progress of publishes are in run.state, a table, which only Spark reads"


@dataclass(frozen=True)
class Watched:
    """A pipeline to look at."""

    definition: Definition
    verbs: tuple[str, ...] = ("ingest", "publish")
    """What its file may be run with; those that never ran have no line of their own."""
    monitoring: Monitoring | None = None
    """Where its runs show what they do, if that is not `run` of the definition."""
    lease: tuple[str, str] | None = None
    """The folder and the side of the lease of its runs, if they have one with other pipelines."""
    run: tuple[str, str] | None = None
    """What events call such runs: pipeline and verb."""


@dataclass(frozen=True)
class Line:
    """What is known of one direction of a pipeline now. None where it is not known."""

    file: str
    pipeline: str
    verb: str | None = None
    """`ingest` or `publish`; None where neither ever ran."""
    state: str = "unknown"
    """`running`, `stopped`, `never ran` or `unknown`."""
    records_per_second: float | None = None
    """By the metrics of the run, of the last minute; else by commits, of the last five minutes, or for
    how long they are known."""
    lag: int | None = None
    """Offsets of an ingest, versions of a publish."""
    lag_by_partition: Mapping[str, int] = field(default_factory=dict)
    """`topic-0` -> offsets; of an ingest only."""
    freshness_seconds: float | None = None
    """From the timestamp of the newest record of the last batch to its commit."""
    last_commit: str | None = None
    """When the last batch was committed, ISO 8601 in UTC."""
    last_commit_seconds: float | None = None
    """How long ago that was."""
    version: int | None = None
    """The version of the last batch; of a publish, up to which all is sent."""
    engine: str | None = None
    reader: str | None = None
    error: str | None = None
    """That ended the last run, by `run.events`."""
    reason: str | None = None
    """Why something is not known."""


class Look:
    """One pipeline, looked at again and again by one thread."""

    def __init__(self, file: str, watched: Watched) -> None:
        self._file, self._watched, self._definition = file, watched, watched.definition
        self._log: CommitLog | None = None
        self._sent: PublishLogReader | None = None
        self._reasons: list[str] = []

    def lines(self, now_ms: int) -> list[Line]:
        """A line for each direction that ever ran; one without a direction where none did."""
        self._reasons = []
        monitoring = self._watched.monitoring or self._definition.run.monitoring
        target = monitoring.metrics
        scraped = self._try(lambda: scrape(target)) if target else None
        log = self._try(self._followed)
        common = tuple(self._reasons)
        lines = []
        for verb in self._watched.verbs:
            self._reasons = [*common]
            line = self._seen(verb, log, scraped, monitoring.events, now_ms)
            lines.append(replace(line, reason="; ".join(dict.fromkeys(self._reasons)) or None))
        ran = [line for line in lines if line.state != "never ran"]
        if ran or len(self._watched.verbs) == 1:
            return ran or lines
        return [replace(lines[0], verb=None)]

    def _seen(
        self, verb: str, log: CommitLog | None, scraped: Scraped | None, events: str | None, now_ms: int
    ) -> Line:
        name = self._definition.name
        values = scraped.of(name, verb) if scraped else {}
        state = "running" if values else self._try(lambda: self._state(verb, now_ms)) or "unknown"
        line = Line(self._file, name, verb, state)
        if events not in (None, "stdout"):
            line = self._try(lambda: self._with_events(line, str(events))) or line
        progress = self._ingested if verb == "ingest" else self._published
        found = self._try(lambda: progress(line, log, now_ms)) or line
        if found.state == "never ran" and found.version is not None:
            found = replace(found, state="stopped")  # its checkpoint was lost
        return _with_metrics(found, values, scraped)

    def _followed(self) -> CommitLog:
        path = self._definition.delta.path
        if path is None:
            raise NotThisWay(_BY_NAME)
        self._log = self._log or CommitLog(reached_store(path), _COMMITS)
        self._log.follow()
        return self._log

    def _state(self, verb: str, now_ms: int) -> str:
        if self._watched.lease is None and self._definition.run.state is not None:
            raise NotThisWay(_IN_A_TABLE)
        folder, side = self._watched.lease or (self._definition.run.checkpoint, verb)
        names = {self._definition.name, *(self._watched.run or ())[:1]}
        lease = lease_state(folder, side, names, now_ms)
        if lease.is_held:
            return "running"
        return "stopped" if lease.was_taken else "never ran"

    def _ingested(self, line: Line, log: CommitLog | None, now_ms: int) -> Line:
        if log is None:
            return line
        found = log.progress.get(self._definition.name)
        if found is None:
            if line.state != "never ran" and log.newest >= 0:
                self._reasons.append(f"no batch among the last {len(log.commits)} commits")
            return line
        progress, version = found
        own = [commit for commit in log.commits if commit.pipeline == self._definition.name]
        newest = own[-1] if own else None
        since = max(now_ms - 1000 * _RATE_SECONDS, _known_since(log))
        records = sum(c.records or 0 for c in own if c.at_ms > since)
        line = replace(
            line,
            version=version,
            engine=progress.engine or None,
            reader=progress.reader or None,
            records_per_second=_rate(records, since, now_ms),
        )
        if newest is not None:
            line = _committed(line, newest.at_ms, now_ms)
            if newest.newest_ms is not None:
                line = replace(line, freshness_seconds=max(0, newest.at_ms - newest.newest_ms) / 1000)
        lags = self._try(lambda: self._lags(progress.offsets))
        return line if lags is None else replace(line, lag=sum(lags.values()), lag_by_partition=lags)

    def _lags(self, offsets: Offsets) -> dict[str, int]:
        from bridge.kafka import admin

        topic = admin.resolve(self._definition.topic, timeout=_KAFKA_SECONDS)
        end = admin.describe(topic, timeout=_KAFKA_SECONDS).end
        return {f"{t}-{p}": max(0, last - (offsets.get(t, p) or 0)) for t, p, last in end}

    def _published(self, line: Line, log: CommitLog | None, now_ms: int) -> Line:
        if self._definition.run.state is not None:
            raise NotThisWay(_IN_A_TABLE)
        checkpoint = self._definition.run.checkpoint
        self._sent = self._sent or PublishLogReader(checkpoint, self._definition.name)
        progress, written_ms = self._sent.last(), self._sent.written_ms
        if progress is None or written_ms is None:
            return line
        line = _committed(line, written_ms, now_ms)
        if progress.version == NOTHING:
            return line
        line = replace(line, version=progress.version)
        if log is None:
            return line
        line = replace(line, lag=max(0, log.newest - progress.version))
        first = log.commits[0].version if log.commits else 0
        began = self._sent.version_at(now_ms - 1000 * _RATE_SECONDS, at_least=first - 1)
        if began is None:
            return line
        before, since = began
        sent = sum(c.rows for c in log.commits if before < c.version <= progress.version)
        return replace(line, records_per_second=_rate(sent, since, now_ms))

    def _with_events(self, line: Line, file: str) -> Line:
        own = (line.pipeline, str(line.verb))
        event = last_event(file, {own, self._watched.run or own})
        if event is None:
            return line
        if event.get("event") == "failed":
            told = ": ".join(str(event[name]) for name in ("error", "message") if event.get(name))
            line = replace(line, error=told or None)
        return replace(line, reader=event.get("reader") or None)

    def _try(self, work: Callable[[], _T]) -> _T | None:
        """What fails is a reason, and None. Texts of errors that are not the bridge's may hold anything."""
        try:
            return work()
        except (BridgeError, NotThisWay) as error:
            self._reasons.append(str(error))
        except OSError as error:
            self._reasons.append(f"{error.filename or type(error).__name__}: {error.strerror}")
        except Exception as error:
            self._reasons.append(type(error).__name__)
        return None


def _known_since(log: CommitLog) -> int:
    """When the oldest commit was, if those before it are not read; else 0."""
    return log.commits[0].at_ms if len(log.commits) == log.commits.maxlen else 0


def _rate(count: int, since_ms: int, now_ms: int) -> float:
    return count / max(1.0, (now_ms - since_ms) / 1000)


def _committed(line: Line, at_ms: int, now_ms: int) -> Line:
    at = datetime.fromtimestamp(at_ms / 1000, timezone.utc).isoformat(timespec="seconds")
    return replace(line, last_commit=at, last_commit_seconds=max(0, now_ms - at_ms) / 1000)


def _with_metrics(line: Line, values: Mapping[str, float], scraped: Scraped | None) -> Line:
    """What the run itself says is newer than what it has committed."""
    if not values or scraped is None:
        return line
    of_ingest = line.verb == "ingest"
    lag = values.get("pendingRecords" if of_ingest else "pending_versions")
    emitted = values.get("currentEmitEventTimeLag")
    return replace(
        line,
        records_per_second=values.get(
            "numRecordsInPerSecond" if of_ingest else "numRecordsOutPerSecond", line.records_per_second
        ),
        lag=line.lag if line.lag is not None or lag is None else int(lag),
        freshness_seconds=line.freshness_seconds if emitted is None else max(0.0, emitted / 1000),
        reader=scraped.reader(line.pipeline, str(line.verb)) or line.reader,
    )
