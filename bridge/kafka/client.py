"""Sends requests to brokers by librdkafka, with retries and errors that name the way out.

`expired_certificate` finds an expired certificate where librdkafka only reports that verification failed.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillWaiting
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, TypeVar

import confluent_kafka
from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType, TopicDescription  # type: ignore[attr-defined]
from cryptography import x509

from bridge.errors import KafkaError, TopicMissingError
from bridge.kafka.client_settings import for_librdkafka, read_committed
from bridge.offsets import Offsets

_T = TypeVar("_T")
_Request = Callable[..., Mapping[Any, Future[_T]]]
_Code = confluent_kafka.KafkaError

_CERTIFICATE_SECONDS = 5.0
_REQUEST_SECONDS = 3.0
# librdkafka retries these forever, although a wrong password stays wrong.
LOGIN_ERRORS = (_Code._AUTHENTICATION, _Code._SSL, _Code.SASL_AUTHENTICATION_FAILED)
# The broker answers, and a retry will succeed soon (a topic just created, a coordinator just elected).
_RETRIABLE = (
    _Code.LEADER_NOT_AVAILABLE,
    _Code.NOT_LEADER_FOR_PARTITION,
    _Code.COORDINATOR_LOAD_IN_PROGRESS,
    _Code.COORDINATOR_NOT_AVAILABLE,
    _Code.NOT_COORDINATOR,
    _Code.OFFSET_NOT_AVAILABLE,
    # After a restart the broker may know fewer elections than the client, or more.
    _Code.UNKNOWN_LEADER_EPOCH,
    _Code.FENCED_LEADER_EPOCH,
)
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_NO_ANSWER = (_Code._TIMED_OUT, _Code._TRANSPORT, _Code._ALL_BROKERS_DOWN, _Code._RESOLVE)
_NOT_READY = (
    _Code.NOT_COORDINATOR,
    _Code.COORDINATOR_NOT_AVAILABLE,
    _Code.COORDINATOR_LOAD_IN_PROGRESS,
)
"""Retriable by Kafka's protocol; librdkafka retries them for commits, but not for every request for offsets."""
_NOT_READY_SECONDS = 0.1

_log = logging.getLogger("bridge.kafka")
_log.addHandler(logging.NullHandler())


def expired_certificate(servers: str, error_text: str) -> str:
    """Return when the certificate of a broker expired, as a note to librdkafka's `error_text`; else an empty text.

    It looks at the first of `servers` that shows a certificate, and only if verification failed. It opens a TLS
    connection without a client certificate and sends nothing else.
    """
    if "certificate verify failed" not in error_text:
        return ""
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            pem = ssl.get_server_certificate((host.strip("[]"), int(port)), timeout=_CERTIFICATE_SECONDS)
            expiry = x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc
        except (OSError, ValueError):
            continue
        if expiry < datetime.now(timezone.utc):
            return f" (the certificate of {server.strip()} has expired: it was valid until {expiry:%Y-%m-%d %H:%M} UTC)"
        return ""
    return ""


@contextmanager
def settings_accepted() -> Iterator[None]:
    """Raise KafkaError where librdkafka refuses the settings of a client that is made in this block."""
    try:
        yield
    except KafkaException as refused:
        raise KafkaError(f"librdkafka refuses the 'properties.*': {error_text(refused.args[0])}") from None


class LastError:
    """An `error_cb` that stores the last meaningful error, without a reference that would keep its client alive."""

    error: confluent_kafka.KafkaError | None = None

    def __call__(self, error: confluent_kafka.KafkaError) -> None:
        # "All brokers down" follows the error with the reason.
        if error.code() != _Code._ALL_BROKERS_DOWN or self.error is None:
            self.error = error


def group_refusal(consumer: Consumer) -> confluent_kafka.KafkaError | None:
    """Return the error of a group that the login may not use; None for others.

    Only `poll` reports it, and the consumer must have no partitions assigned.
    """
    while (message := consumer.poll(0)) is not None:
        error = message.error()
        if error is not None and error.code() == _Code.GROUP_AUTHORIZATION_FAILED:
            return error
    return None


def committed_offsets(
    consumer: Consumer, partitions: list[TopicPartition], timeout: float, last_error: LastError
) -> list[TopicPartition]:
    """Return the committed offsets of the consumer's group.

    Raises KafkaException, at once for a refused login or a missing right, which librdkafka would retry until `timeout`.
    A coordinator that is not ready, as in the first seconds of a broker, is asked again.
    """
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        try:
            return consumer.committed(partitions, timeout=max(0.1, min(_REQUEST_SECONDS, left)))
        except KafkaException as failed:
            refused = group_refusal(consumer)
            if refused is None and last_error.error is not None and last_error.error.code() in LOGIN_ERRORS:
                refused = last_error.error
            if refused is not None:
                raise KafkaException(refused) from None
            if failed.args[0].code() not in (_Code._TIMED_OUT, *_NOT_READY) or time.monotonic() > deadline:
                raise
            if failed.args[0].code() in _NOT_READY:
                time.sleep(_NOT_READY_SECONDS)


class AdminSession:
    """An admin client for one task of at most `timeout` seconds.

    Every method raises KafkaError with the addresses, the request and librdkafka's last error. A failed login is
    reported at once and as such, not as a broker that does not answer.
    """

    def __init__(self, properties: Mapping[str, str], timeout: float) -> None:
        self.servers = properties["bootstrap.servers"]
        self._committed = read_committed(properties)
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._last_error = LastError()
        settings: dict[str, Any] = {**for_librdkafka(properties), "error_cb": self._last_error}
        with settings_accepted():
            self._client = AdminClient(settings, logger=_log)

    def request(self, action: str, method: _Request[_T], *args: Any, **more: Any) -> dict[Any, _T]:
        """Call one `method` of AdminClient and return its results by name; retries while a broker elects a leader."""
        while True:
            futures = method(self._client, *args, request_timeout=self._seconds_left(), **more)
            try:
                return {name: self._result(future) for name, future in futures.items()}
            except KafkaException as failed:
                error = failed.args[0]
                if error.code() not in _RETRIABLE or time.monotonic() > self._deadline:
                    names = [
                        name
                        for name, future in futures.items()
                        if future.done() and future.exception() is failed
                    ]
                    raise self._error(action, error, names[0] if names else None) from None
                time.sleep(0.05)

    def list_offsets(
        self, partitions: Iterable[tuple[str, int]], spec: OffsetSpec, *, committed: bool | None = None
    ) -> Offsets:
        """Return the offset that `spec` selects in each partition.

        It is what a reader with the isolation level of the properties sees, or with read_committed if `committed` is
        true, else read_uncommitted. Partitions without such an offset (no record since a timestamp) are left out.
        """
        specs = {TopicPartition(t, p): spec for t, p in partitions}
        committed = self._committed if committed is None else committed
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        results = self.request("list offsets", AdminClient.list_offsets, specs, isolation_level=level)
        return Offsets.of((tp.topic, tp.partition, r.offset) for tp, r in results.items() if r.offset >= 0)

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        """Return the descriptions of topics by name. Raises TopicMissingError for a missing topic."""
        return self.request("describe topics", AdminClient.describe_topics, TopicCollection(list(names)))

    def brokers(self) -> list[tuple[str, int]]:
        """Return host and port of every broker, as the cluster tells them to its clients."""
        try:
            found = self._client.list_topics(timeout=self._seconds_left()).brokers.values()
        except KafkaException as failed:
            raise self._error("list brokers", failed.args[0]) from None
        return sorted((str(broker.host), int(broker.port)) for broker in found)

    def broker_settings(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the settings `keys` of one broker; unknown ones are absent."""
        try:
            number, *_ = self._client.list_topics(timeout=self._seconds_left()).brokers
        except KafkaException as failed:
            raise self._error("list brokers", failed.args[0]) from None
        resource = ConfigResource(ResourceType.BROKER, str(number))
        found = self.request("describe a broker's configuration", AdminClient.describe_configs, [resource])
        return {key: str(config[key].value) for config in found.values() for key in keys if key in config}

    def newest_timestamps(self, partitions: Iterable[tuple[str, int]]) -> list[int]:
        """Return the largest timestamp, in epoch milliseconds, of each partition that has one."""
        newest: Any = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
        specs = {TopicPartition(t, p): newest for t, p in partitions}
        results = self.request("list offsets", AdminClient.list_offsets, specs)
        return [result.timestamp for result in results.values() if result.timestamp >= 0]

    def topic_names(self) -> list[str]:
        """Return all topics that this user may see, without Kafka's internal ones."""
        try:
            topics = self._client.list_topics(timeout=self._seconds_left()).topics
        except KafkaException as failed:
            raise self._error("list topics", failed.args[0]) from None
        return sorted(name for name in topics if name not in _INTERNAL)

    def topic_exists(self, name: str) -> bool:
        """Return whether the topic can be described now."""
        try:
            self.request(f"describe topic '{name}'", AdminClient.describe_topics, TopicCollection([name]))
        except TopicMissingError:
            return False
        return True

    def wait_for_topic(self, name: str) -> None:
        """Wait until a created topic can be described, which takes the broker a moment."""
        while not self.topic_exists(name):
            if time.monotonic() > self._deadline:
                raise KafkaError(f"topic '{name}' was created on {self.servers}, but cannot be seen yet")
            time.sleep(0.02)

    def _result(self, future: Future[_T]) -> _T:
        while True:
            try:
                result = future.result(timeout=min(0.1, self._seconds_left()))
                # Group offsets are refused partition by partition, inside a successful result.
                for partition in getattr(result, "topic_partitions", ()):
                    if partition.error is not None:
                        raise KafkaException(partition.error)
                return result
            except StillWaiting:
                self._client.poll(0)
                if self._last_error.error is not None and self._last_error.error.code() in LOGIN_ERRORS:
                    raise KafkaException(self._last_error.error) from None
            except KafkaException:
                self._client.poll(0)  # delivers the error that caused this one
                raise

    def _seconds_left(self) -> float:
        return max(0.1, self._deadline - time.monotonic())

    def _error(self, action: str, error: confluent_kafka.KafkaError, name: Any = None) -> KafkaError:
        if error.code() in (_Code.UNKNOWN_TOPIC_OR_PART, _Code._UNKNOWN_TOPIC) and isinstance(name, str):
            return TopicMissingError(
                f"topic '{name}' does not exist on {self.servers}; create it with `bridge topics FILE --create`, "
                "which compacts the topics of upsert-kafka tables (a publish creates it if the pipeline file has "
                "topic.create)"
            )
        if error.code() in _NO_ANSWER and self._last_error.error is not None:
            error = self._last_error.error
        if error.code() in LOGIN_ERRORS:
            return KafkaError(
                f"{self.servers} refuses the login ({action}): {error_text(error)}"
                f"{expired_certificate(self.servers, error.str())}; "
                "check 'properties.security.protocol', 'properties.sasl.*' and 'properties.ssl.*'"
            )
        if error.code() == _Code.TOPIC_AUTHORIZATION_FAILED:
            topic = name.topic if isinstance(name, TopicPartition) else name
            which = f"topic '{topic}'" if isinstance(topic, str) else "the topic"
            return KafkaError(
                f"{self.servers}: the login may not use {which} ({action}): {error_text(error)}; give it DESCRIBE, "
                "and READ for an ingest or WRITE for a publish"
            )
        if error.code() in _NO_ANSWER:
            return KafkaError(
                f"no answer from {self.servers} within {self._timeout:.0f} s ({action}): {error_text(error)}; "
                "check 'properties.bootstrap.servers' and that the broker runs and can be reached from here"
            )
        return KafkaError(f"{self.servers} refuses to {action}: {error_text(error)}")


def error_text(error: confluent_kafka.KafkaError) -> str:
    """Return librdkafka's name and text of an error, in one line."""
    return " ".join(f"{error.name()}: {error.str()}".split())


def root_error(failed: BaseException) -> KafkaException | KafkaError:
    """Return the Kafka error that `failed` is or was caused by.

    The client raises a fatal error, such as being fenced, before it has run all callbacks. Python makes a SystemError
    of it, with or without its cause.
    """
    error: BaseException | None = failed
    while error is not None:
        if isinstance(error, (KafkaException, KafkaError)):
            return error
        error = error.__cause__
    return KafkaException(_Code(_Code._FAIL, f"the client lost the reason ({failed})"))
