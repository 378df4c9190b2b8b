"""The transactions of a sink's prefix: which there are, and how to end those that nobody will.

librdkafka cannot ask for them, so Kafka's own AdminClient does, the one beside Spark's source.
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

from bridge.definition import Topic
from bridge.errors import KafkaError, OptionError, UnsupportedError
from bridge.kafka.client_settings import for_java_admin

__all__ = ["Transaction", "abort_transactions", "fence_shards", "list_transactions"]

_TIMEOUT = 30.0
_ADMIN = "org.apache.kafka.clients.admin.Admin"
_SHADINGS = ("", "kafkashaded.")  # Databricks ships Kafka's client under a name of its own
_ENDING = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")


@dataclass(frozen=True)
class Transaction:
    """The last transaction of a transactional id. One that is `Ongoing` keeps readers of committed records back."""

    id: str
    state: str
    """Kafka's word: Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, Empty, ..."""
    producer_id: int
    epoch: int
    started: str | None
    """When, in ISO 8601, by the clock of the broker; None when there is none under way."""
    seconds: float | None
    """For how long it has been under way."""
    timeout_seconds: float
    """After how long the broker itself aborts it."""
    partitions: tuple[str, ...]
    """What it has written to: `topic-partition`."""
    belongs_to_sink: bool
    """Whether the id is one that the bridge makes from the prefix: the prefix itself, or '-' and a number after it."""

    @property
    def ongoing(self) -> bool:
        return self.state == "Ongoing"


def list_transactions(spark: SparkSession, topic: Topic, *, timeout: float = _TIMEOUT) -> list[Transaction]:
    """What the broker knows of the ids that are the prefix, or begin with the prefix and '-', by id.

    Raises OptionError where the sink has no prefix, KafkaError, and UnsupportedError where Spark has no AdminClient.
    """
    prefix = _prefix(topic)
    with _admin(spark, topic, timeout) as ask:
        return _transactions(ask, prefix)


def abort_transactions(
    spark: SparkSession, topic: Topic, *, others: bool = False, timeout: float = _TIMEOUT
) -> tuple[list[Transaction], list[Transaction]]:
    """End the transactions under way: (those ended, those left alone), as they were before; returns when they are over.

    It fences their producers, as a restart of the publish would: one that is still running fails. Without
    `others` only ids of the bridge's own making are ended. Raises as `listed` does.
    """
    prefix, deadline = _prefix(topic), time.monotonic() + timeout
    with _admin(spark, topic, timeout) as ask:
        ongoing = [t for t in _transactions(ask, prefix) if t.ongoing]
        chosen = [t for t in ongoing if others or t.belongs_to_sink]
        _end(ask, prefix, [t.id for t in chosen], deadline)
        return chosen, [t for t in ongoing if t not in chosen]


def fence_shards(spark: SparkSession, topic: Topic, *, timeout: float = _TIMEOUT) -> None:
    """End what shards of the publish have under way, and keep their producers from sending more; returns when it is
    over. Its driver's id, the prefix itself, is left alone. Raises as `listed` does."""
    prefix, deadline = _prefix(topic), time.monotonic() + timeout
    with _admin(spark, topic, timeout) as ask:
        shards = [t.id for t in _transactions(ask, prefix) if t.belongs_to_sink and t.id != prefix]
        _end(ask, prefix, shards, deadline)


def _end(ask: _Ask, prefix: str, ids: Sequence[str], deadline: float) -> None:
    if ids:
        ask("fence producers", lambda admin, java: admin.fenceProducers(java(ids)).all())
    while any(not _ended(t) for t in _transactions(ask, prefix) if t.id in ids):
        if time.monotonic() > deadline:
            raise KafkaError(
                f"the transactions of {', '.join(ids)} are fenced, but not over yet; see `bridge txn list` in a while"
            )
        time.sleep(0.1)


def _prefix(topic: Topic) -> str:
    prefix = topic.sink.transactional_id_prefix
    if not prefix:
        raise OptionError(
            "'sink.transactional-id-prefix' is not set: this pipeline does not publish exactly-once, so it has no "
            "transactions. Set it to what the ids that you look for begin with"
        )
    return prefix


def _ended(transaction: Transaction) -> bool:
    return not transaction.ongoing and transaction.state not in _ENDING


_Java = Callable[[Sequence[str]], Any]
_Ask = Callable[[str, Callable[[Any, _Java], Any]], Any]


def _transactions(ask: _Ask, prefix: str) -> list[Transaction]:
    everybody = ask("list transactions", lambda admin, _: admin.listTransactions().all())
    ids = sorted(x for t in everybody if (x := t.transactionalId()) == prefix or x.startswith(f"{prefix}-"))
    if not ids:
        return []
    made = re.compile(re.escape(prefix) + "(-[0-9]+)?")
    described = ask("describe transactions", lambda admin, java: admin.describeTransactions(java(ids)).all())
    return [_transaction(name, described[name], made.fullmatch(name) is not None) for name in ids]


def _transaction(name: str, told: Any, ours: bool) -> Transaction:
    begun = told.transactionStartTimeMs()
    state = str(told.state().toString())
    lives = begun.isPresent() and state in (
        "Ongoing",
        *_ENDING,
    )  # of those that are over it tells the last start
    began = begun.getAsLong() / 1000 if lives else None
    return Transaction(
        id=name,
        state=state,
        producer_id=int(told.producerId()),
        epoch=int(told.producerEpoch()),
        started=None if began is None else datetime.fromtimestamp(began, timezone.utc).isoformat(),
        seconds=None if began is None else max(0.0, time.time() - began),
        timeout_seconds=told.transactionTimeoutMs() / 1000,
        partitions=tuple(sorted(str(p.toString()) for p in told.topicPartitions())),
        belongs_to_sink=ours,
    )


@contextmanager
def _admin(spark: SparkSession, topic: Topic, timeout: float) -> Iterator[_Ask]:
    """Something to ask an AdminClient with; what the client answers with an exception is a KafkaError."""
    jvm = _jvm(spark)
    kind = _class(jvm)
    settings = jvm.java.util.HashMap()
    for key, value in for_java_admin(topic.properties).items():
        settings.put(key, value)
    servers, unit = topic.bootstrap_servers, jvm.java.util.concurrent.TimeUnit.MILLISECONDS

    def java(names: Sequence[str]) -> Any:
        made = jvm.java.util.ArrayList()
        for name in names:
            made.add(name)
        return made

    try:
        admin = kind.create(settings)
    except Py4JError as refused:
        if not isinstance(refused, Py4JJavaError):  # Databricks lets Python call classes of its choice only
            raise _unsupported("a Spark whose JVM is closed to Python") from None
        raise KafkaError(f"Kafka's AdminClient refuses the 'properties.*': {_causes(refused)[-1]}") from None

    def ask(doing: str, request: Callable[[Any, _Java], Any]) -> Any:
        try:
            return request(admin, java).get(int(timeout * 1000), unit)
        except Py4JJavaError as failed:
            raise _error(failed, doing, servers, timeout) from None

    try:
        yield ask
    finally:
        admin.close(jvm.java.time.Duration.ofSeconds(5))


def _jvm(spark: SparkSession) -> Any:
    try:
        return spark._jvm
    except Exception:  # Spark Connect has no JVM to reach, and says so with errors of several kinds
        raise _unsupported("Spark Connect") from None


def _class(jvm: Any) -> Any:
    for shading in _SHADINGS:
        found = jvm
        for part in (shading + _ADMIN).split("."):
            found = getattr(found, part)
        if isinstance(found, JavaClass):
            return found
    raise _unsupported("a Spark without Kafka's AdminClient")


def _unsupported(where: str) -> UnsupportedError:
    return UnsupportedError(
        f"transactions cannot be listed from {where}: run this command where the bridge starts its own Spark, or use "
        "Kafka's kafka-transactions.sh",
        "bridge txn",
    )


def _error(failed: Py4JJavaError, doing: str, servers: str, timeout: float) -> KafkaError:
    chain = _causes(failed)
    kinds, reason = " ".join(text.partition(":")[0] for text in chain), chain[-1]
    if reason.startswith("TimeoutException:"):
        return KafkaError(
            f"no answer from {servers} within {timeout:.0f} s ({doing}); check 'properties.bootstrap.servers' and that "
            "the broker runs and can be reached from here"
        )
    if re.search("Authentication|Sasl|Ssl", kinds):
        return KafkaError(
            f"{servers} refuses the login ({doing}): {reason}; check 'properties.security.protocol', "
            "'properties.sasl.*' and 'properties.ssl.*'"
        )
    return KafkaError(f"{servers} refuses to {doing}: {reason}")


def _causes(failed: Py4JJavaError) -> list[str]:
    """Classes and texts of what went wrong, from the wrapping to the last cause."""
    error, found = failed.java_exception, []
    while error is not None:
        found.append(" ".join(f"{error.getClass().getSimpleName()}: {error.getMessage()}".split()))
        error = error.getCause()
    return found
