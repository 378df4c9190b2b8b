"""Lists and aborts the transactions of a sink's prefix.

librdkafka has no such requests, so Kafka's Java AdminClient makes them, which Spark's source brings along.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from bridge.backend import Feature, backend_of
from bridge.definition import Topic
from bridge.errors import KafkaError, OptionError, UnsupportedError
from bridge.kafka.client_settings import for_java_admin

_TIMEOUT = 30.0
_ADMIN = "org.apache.kafka.clients.admin.Admin"
SHADINGS = ("", "kafkashaded.")  # Databricks ships Kafka's client in a package of its own
_ENDING = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")


@dataclass(frozen=True)
class Transaction:
    """The last transaction of a transactional id. An `Ongoing` one delays readers of committed records."""

    id: str
    state: str
    """In Kafka's terms: Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, Empty, ..."""
    producer_id: int
    epoch: int
    started: str | None
    """When it began, in ISO 8601, by the broker's clock; None when it has ended."""
    seconds: float | None
    """For how long it has been open."""
    timeout_seconds: float
    """After which time the broker aborts it."""
    partitions: tuple[str, ...]
    """The partitions it has written to: `topic-partition`."""
    belongs_to_sink: bool
    """Whether the id has the form of the bridge's own: the prefix itself, or the prefix, '-' and a number."""

    @property
    def ongoing(self) -> bool:
        return self.state == "Ongoing"


def list_transactions(
    spark: SparkSession, topic: Topic, *, timeout: float = _TIMEOUT, shadings: Sequence[str] = SHADINGS
) -> list[Transaction]:
    """Return the transactions of the ids that are the prefix, or begin with the prefix and '-', ordered by id.

    `shadings` are the package prefixes under which Kafka's AdminClient may be. Raises OptionError where the sink has no
    prefix, KafkaError, and UnsupportedError where Spark has no AdminClient.
    """
    prefix = _prefix(topic)
    with _admin(spark, topic, timeout, shadings) as ask:
        return _transactions(ask, prefix)


def abort_transactions(
    spark: SparkSession, topic: Topic, *, others: bool = False
) -> tuple[list[Transaction], list[Transaction]]:
    """Abort the open transactions and wait for their end; return (aborted, others), as they were before.

    It fences their producers, as a restart of the publish would: a publish that is still running fails. Without
    `others` only transactions with `belongs_to_sink` are aborted. Raises as `list_transactions` does.
    """
    prefix, deadline = _prefix(topic), time.monotonic() + _TIMEOUT
    with _admin(spark, topic) as ask:
        ongoing = [t for t in _transactions(ask, prefix) if t.ongoing]
        aborted = [t for t in ongoing if others or t.belongs_to_sink]
        _end(ask, prefix, [t.id for t in aborted], deadline)
        return aborted, [t for t in ongoing if t not in aborted]


def fence_shards(spark: SparkSession, topic: Topic) -> None:
    """Abort the open transactions of the publish's shards, fence their producers, and wait for the end.

    The driver's id, which is the prefix itself, is not fenced. Raises as `list_transactions` does.
    """
    prefix, deadline = _prefix(topic), time.monotonic() + _TIMEOUT
    with _admin(spark, topic) as ask:
        shards = [t.id for t in _transactions(ask, prefix) if t.belongs_to_sink and t.id != prefix]
        _end(ask, prefix, shards, deadline)


def _end(ask: _Ask, prefix: str, ids: Sequence[str], deadline: float) -> None:
    if ids:
        ask("fence producers", lambda admin, java: admin.fenceProducers(java(ids)).all())
    while any(not _ended(t) for t in _transactions(ask, prefix) if t.id in ids):
        if time.monotonic() > deadline:
            raise KafkaError(
                f"the transactions of {', '.join(ids)} are fenced, but have not ended yet; see `bridge txn list`"
            )
        time.sleep(0.1)


def _prefix(topic: Topic) -> str:
    prefix = topic.sink.transactional_id_prefix
    if not prefix:
        raise OptionError(
            "'sink.transactional-id-prefix' is not set: this pipeline does not publish exactly-once, so it has no "
            "transactions. Set it to the prefix of the ids to look for"
        )
    return prefix


def _ended(transaction: Transaction) -> bool:
    return not transaction.ongoing and transaction.state not in _ENDING


_Java = Callable[[Sequence[str]], Any]
_Ask = Callable[[str, Callable[[Any, _Java], Any]], Any]


def _transactions(ask: _Ask, prefix: str) -> list[Transaction]:
    listings = ask("list transactions", lambda admin, _: admin.listTransactions().all())
    ids = sorted(x for t in listings if (x := t.transactionalId()) == prefix or x.startswith(f"{prefix}-"))
    if not ids:
        return []
    own_id = re.compile(re.escape(prefix) + "(-[0-9]+)?")
    described = ask("describe transactions", lambda admin, java: admin.describeTransactions(java(ids)).all())
    return [_transaction(name, described[name], own_id.fullmatch(name) is not None) for name in ids]


def _transaction(name: str, description: Any, belongs_to_sink: bool) -> Transaction:
    start = description.transactionStartTimeMs()
    state = str(description.state().toString())
    # For a transaction that has ended the broker returns the start of the last one.
    is_open = start.isPresent() and state in ("Ongoing", *_ENDING)
    began = start.getAsLong() / 1000 if is_open else None
    return Transaction(
        id=name,
        state=state,
        producer_id=int(description.producerId()),
        epoch=int(description.producerEpoch()),
        started=None if began is None else datetime.fromtimestamp(began, timezone.utc).isoformat(),
        seconds=None if began is None else max(0.0, time.time() - began),
        timeout_seconds=description.transactionTimeoutMs() / 1000,
        partitions=tuple(sorted(str(p.toString()) for p in description.topicPartitions())),
        belongs_to_sink=belongs_to_sink,
    )


@contextmanager
def _admin(
    spark: SparkSession, topic: Topic, timeout: float = _TIMEOUT, shadings: Sequence[str] = SHADINGS
) -> Iterator[_Ask]:
    """Open an AdminClient and provide a function for its requests, which raises KafkaError for their exceptions."""
    jvm = _jvm(spark)
    admin_class = _class(jvm, shadings)
    settings = jvm.java.util.HashMap()
    for key, value in for_java_admin(topic.properties).items():
        settings.put(key, value)
    servers, unit = topic.bootstrap_servers, jvm.java.util.concurrent.TimeUnit.MILLISECONDS

    def java(names: Sequence[str]) -> Any:
        java_list = jvm.java.util.ArrayList()
        for name in names:
            java_list.add(name)
        return java_list

    try:
        admin = admin_class.create(settings)
    except Py4JError as refused:
        if not isinstance(refused, Py4JJavaError):  # Databricks lets Python call listed classes only
            raise _unsupported("a Spark whose JVM is closed to Python") from None
        raise KafkaError(f"Kafka's AdminClient refuses the 'properties.*': {_causes(refused)[-1]}") from None

    def ask(action: str, request: Callable[[Any, _Java], Any]) -> Any:
        try:
            return request(admin, java).get(int(timeout * 1000), unit)
        except Py4JJavaError as failed:
            raise _error(failed, action, servers, timeout) from None

    try:
        yield ask
    finally:
        admin.close(jvm.java.time.Duration.ofSeconds(5))


def _jvm(spark: SparkSession) -> Any:
    if backend_of(spark).can(Feature.TRANSACTIONS) is not None:
        raise _unsupported("Spark Connect")
    return spark._jvm


def _class(jvm: Any, shadings: Sequence[str]) -> Any:
    for shading in shadings:
        member = jvm
        for part in (shading + _ADMIN).split("."):
            member = getattr(member, part)
        if isinstance(member, JavaClass):
            return member
    raise _unsupported("a Spark without Kafka's AdminClient")


def _unsupported(where: str) -> UnsupportedError:
    return UnsupportedError(
        f"transactions cannot be listed from {where}: run this command where the bridge starts its own Spark, or use "
        "Kafka's kafka-transactions.sh",
        "bridge txn",
    )


def _error(failed: Py4JJavaError, action: str, servers: str, timeout: float) -> KafkaError:
    chain = _causes(failed)
    kinds, reason = " ".join(text.partition(":")[0] for text in chain), chain[-1]
    if reason.startswith("TimeoutException:"):
        return KafkaError(
            f"no answer from {servers} within {timeout:.0f} s ({action}); check 'properties.bootstrap.servers' and "
            "that the broker runs and can be reached from here"
        )
    if re.search("Authentication|Sasl|Ssl", kinds):
        return KafkaError(
            f"{servers} refuses the login ({action}): {reason}; check 'properties.security.protocol', "
            "'properties.sasl.*' and 'properties.ssl.*'"
        )
    return KafkaError(f"{servers} refuses to {action}: {reason}")


def _causes(failed: Py4JJavaError) -> list[str]:
    """Return classes and messages of the exception and its causes, the last cause last."""
    error, causes = failed.java_exception, []
    while error is not None:
        causes.append(" ".join(f"{error.getClass().getSimpleName()}: {error.getMessage()}".split()))
        error = error.getCause()
    return causes
