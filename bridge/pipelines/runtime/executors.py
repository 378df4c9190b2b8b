"""Looks at Spark's executors before a run begins: their Python and packages, their way to the brokers and the table.

Without it the first batch would find out, minutes later and in the words of a stack trace. One small job asks every
executor that is registered by then. On a local master nothing is asked, as tasks run in the driver's environment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bridge.backend import ENGINE_ERRORS, Feature, backend_of, is_connect
from bridge.bridge_folders import scratch_name
from bridge.definition import Definition, Reader
from bridge.errors import BridgeError, TableError
from bridge.kafka.client import AdminSession
from bridge.kafka.task_errors import missing_module, no_python
from bridge.kafka.worker_check import (
    PACKAGES,
    Address,
    differs,
    expect_reachable,
    installed,
    unreachable_error,
    version_error,
)

_TASKS = (
    "pyarrow",
    "confluent_kafka",
    "bridge.kafka.latest_rows",
    "bridge.kafka.shard_task",
    "bridge.kafka.sink",
)
"""What tasks import; a part of the bridge brings in what it depends on."""
_ADMIN_SECONDS = 20.0
_CONNECT_SECONDS = 3.0
_MOST_TASKS = 1_000


@dataclass(frozen=True)
class Executor:
    """What one executor has answered."""

    host: str
    python: str
    """The path of its Python."""
    versions: dict[str, str]
    """Packages with metadata, by name."""
    missing: list[str] | None
    """The module that could not be imported, and why."""
    unreachable: list[str] | None
    """The address that could not be reached, and why."""
    sees_table: bool
    """Whether it sees a file that the driver has put beside the table."""


def check_executors(spark: SparkSession, definition: Definition, *, sends: bool) -> None:
    """Raise an error that names host, package or address and the way out, where tasks of this run could not work.

    A publish `sends`: its tasks need the packages. Those of an ingest need them only under `ingest.reader: consumer`,
    as `auto` leaves to Spark's reader what executors lack; no task of Spark's reader runs Python. An address counts
    that the driver reaches and an executor does not. A table on a local disk must be on one that all machines see: a
    small file is there while the executors are asked.

    Raises MissingPackageError, TableError, and KafkaError for an address, or for brokers that the driver cannot reach.
    It sees the executors that exist now: one that joins later is checked with the first Python task that it gets (see
    `kafka.worker_check`), and where it only runs Spark's reader once that has failed (`executors_error`).
    """
    backend = backend_of(spark)
    if re.match(r"local(\[|$)", backend.master) or backend.can(Feature.KAFKA_IN_TASKS) is not None:
        return
    required = sends or definition.reader is Reader.CONSUMER
    python = sends or definition.reader is not Reader.SPARK
    brokers = AdminSession(definition.topic.properties, _ADMIN_SECONDS).brokers()
    reached = [address for address in brokers if look((), (address,)).unreachable is None]
    expect_reachable(definition.topic.properties, reached)
    try:
        with _marker(spark, definition) as marker:
            executors = _ask(spark, reached, marker)
    except ENGINE_ERRORS as failure:
        if not required:
            return  # nobody can be asked, and Spark's reader needs no Python
        raise no_python(str(failure), type(failure).__name__) from failure
    for executor in executors:
        if error := _error(executor, definition, required=required, python=python):
            raise error


def executors_error(spark: SparkSession, definition: Definition) -> BridgeError | None:
    """Return what `check_executors` says now, for a job of Spark's reader that has failed; None if nothing is wrong."""
    try:
        check_executors(spark, definition, sends=False)
    except BridgeError as found:
        return found
    return None


def look(modules: Sequence[str], addresses: Sequence[Address]) -> Executor:
    """Look at this process as the tasks do at theirs."""
    return _executor(next(_probe(modules, addresses, None)(())))


@contextmanager
def _marker(spark: SparkSession, definition: Definition) -> Iterator[Path | None]:
    """A file beside the table, or in the nearest folder above that exists, if that is on a local disk.

    Delta creates no table in a folder that holds files, so it is not in the table's own."""
    path = definition.delta.path
    local = backend_of(spark).files.local_path(path) if path and not is_connect(spark) else None
    if local is None:
        yield None
        return
    folder = next(each for each in local.parents if each.is_dir())
    marker = folder / scratch_name("seen-by-executors")
    try:
        marker.touch()
    except OSError:  # the run itself will say what it may not write
        yield None
        return
    try:
        yield marker
    finally:
        marker.unlink(missing_ok=True)


def _ask(spark: SparkSession, addresses: Sequence[Address], marker: Path | None) -> list[Executor]:
    """Ask with as many tasks as run at once, which Spark spreads over its executors."""
    backend = backend_of(spark)
    probe = _probe(_TASKS, addresses, marker)
    found = backend.run_tasks(probe, range(min(backend.parallelism, _MOST_TASKS)))
    return [_executor(line) for line in dict.fromkeys(found)]


def _probe(
    modules: Sequence[str], addresses: Sequence[Address], marker: Path | None
) -> Callable[[Iterable[Any]], Iterator[str]]:
    """What a task does. It is pickled by value and uses Python's own modules only: the bridge may be missing."""
    packages, seconds, file = PACKAGES, _CONNECT_SECONDS, str(marker or "")

    def probe(_: Iterable[Any]) -> Iterator[str]:
        import importlib
        import json
        import os
        import socket
        import sys
        from importlib import metadata

        versions: dict[str, str] = {}
        for package in packages:
            try:
                versions[package] = metadata.version(package)
            except metadata.PackageNotFoundError:
                continue
        missing = unreachable = None
        for module in modules:
            try:
                importlib.import_module(module)
            except ImportError as failed:
                missing = [failed.name or module, str(failed)]
                break
        for host, port in addresses:
            try:
                socket.create_connection((host, port), seconds).close()
            except OSError as failed:
                unreachable = [f"{host}:{port}", str(failed)]
                break
        answer: dict[str, Any] = {"missing": missing, "unreachable": unreachable, "versions": versions}
        answer["sees_table"] = not file or os.path.exists(file)
        yield json.dumps({"host": socket.gethostname(), "python": sys.executable, **answer})

    return probe


def _executor(answer: str) -> Executor:
    return Executor(**json.loads(answer))


def _error(executor: Executor, definition: Definition, *, required: bool, python: bool) -> BridgeError | None:
    where = f"host {executor.host}, {executor.python}"
    if executor.missing and required:
        module, why = executor.missing
        return missing_module(module, why, where)
    if python and not executor.missing:
        own = installed()
        for package, there in executor.versions.items():
            if package in own and differs(package, there, own[package]):
                return version_error(package, there, own[package], where)
    if executor.unreachable:
        address, why = executor.unreachable
        return unreachable_error(address, executor.host, why)
    if not executor.sees_table:
        return TableError(
            f"{definition.delta.path} is on a disk of the driver's machine, which Spark's executors do not see (host "
            f"{executor.host}): put table and checkpoint where all of them see the same files (HDFS, an object store, "
            "a shared mount), or run on one machine (--master local[*])"
        )
    return None
