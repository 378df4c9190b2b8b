"""Checks a Python worker of Spark's before its first task: an executor that joins during a run was not asked before it.

The check at the start of a run (`pipelines.runtime.executors`) asks the executors that are there by then, and tells
this module which brokers they are to reach. Each worker process repeats it once, so a healthy one pays a connection per
broker. What it finds comes home as an error of the task (see `task_errors`).
"""

from __future__ import annotations

import logging
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bridge.errors import KafkaError, MissingPackageError
from bridge.kafka.client_settings import for_librdkafka

PACKAGES = ("changelog-bridge", "confluent-kafka", "pyarrow")
"""Whose versions are compared with the driver's."""
_CONNECT_SECONDS = 3.0
_PAUSE_SECONDS = 0.5

Address = tuple[str, int]

_log = logging.getLogger(__name__)

_reachable: dict[str, tuple[Address, ...]] = {}
"""In the driver: the brokers that executors are to reach, by bootstrap servers."""
_passed: set[tuple[Any, ...]] = set()
"""In a worker: what it has been checked for."""


@dataclass(frozen=True)
class WorkerCheck:
    """What a worker must have, as plain values. Contains secrets in clear text, so `repr` hides them."""

    addresses: tuple[Address, ...]
    versions: Mapping[str, str]
    """Those of the driver's packages."""
    settings: Mapping[str, Any]
    """librdkafka's, for an admin client."""
    retry_seconds: float = 10.0
    """How long a broker may be away, as one that restarts is."""

    def __repr__(self) -> str:
        return f"WorkerCheck({self.addresses})"

    def once(self) -> None:
        """Check this process, unless it has passed this check before.

        Raises MissingPackageError for a package in another version than the driver's, and KafkaError for a broker that
        cannot be reached; both name the host. A broker that has left the cluster since the run began is none.
        """
        key = (self.addresses, *sorted(self.versions.items()))
        if key in _passed:
            return
        for package, there in installed().items():
            here = self.versions.get(package)
            if here is not None and differs(package, there, here):
                raise version_error(package, there, here, f"host {socket.gethostname()}, {sys.executable}")
        for address in self.addresses:
            self._reach(address)
        _passed.add(key)

    def _reach(self, address: Address) -> None:
        deadline = time.monotonic() + self.retry_seconds
        while (why := _refused(address)) is not None:
            if time.monotonic() > deadline:
                raise unreachable_error(f"{address[0]}:{address[1]}", socket.gethostname(), why)
            if not self._is_broker(address):
                return
            time.sleep(_PAUSE_SECONDS)

    def _is_broker(self, address: Address) -> bool:
        """Whether the cluster has the broker now; yes where no broker tells."""
        try:
            brokers = (
                AdminClient(dict(self.settings), logger=_log).list_topics(timeout=_CONNECT_SECONDS).brokers
            )
        except KafkaException:
            return True
        return address in [(str(broker.host), int(broker.port)) for broker in brokers.values()]


def expect_reachable(properties: Mapping[str, str], addresses: Sequence[Address]) -> None:
    """Remember, in the driver, which brokers of a cluster each executor is to reach."""
    _reachable[properties["bootstrap.servers"]] = tuple(addresses)


def expected(properties: Mapping[str, str]) -> WorkerCheck | None:
    """Return the check for workers of a job on this cluster of Kafka; None where no run has asked executors, as on a
    local master."""
    addresses = _reachable.get(properties["bootstrap.servers"])
    if addresses is None:
        return None
    return WorkerCheck(addresses, installed(), for_librdkafka(properties))


def installed() -> dict[str, str]:
    """Return the versions of `PACKAGES` in this process, as far as they have metadata."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def differs(package: str, there: str, here: str) -> bool:
    """Return whether two versions do not fit: the bridge itself must be the same, of others the first number."""
    if package == "changelog-bridge":
        return here != there
    return here.partition(".")[0] != there.partition(".")[0]


def version_error(package: str, there: str, here: str, where: str) -> MissingPackageError:
    """Return the error of an executor (`where`: its host and Python) with another version than the driver's, `here`."""
    return MissingPackageError(
        f"{package} is {there} on the executors ({where}) and {here} in the driver: install "
        "the driver's version there, or ship both from one build (`make pack`: --py-files, --archives)"
    )


def unreachable_error(address: str, host: str, why: str) -> KafkaError:
    """Return the error of an executor on `host` that does not reach a broker."""
    return KafkaError(
        f"{address} cannot be reached from Spark's executors (host {host}: {why}), though the driver "
        "reaches it: open the way from the executors' network, or correct the brokers' advertised.listeners"
    )


def _refused(address: Address) -> str | None:
    try:
        socket.create_connection(address, _CONNECT_SECONDS).close()
    except OSError as failed:
        return str(failed)
    return None
