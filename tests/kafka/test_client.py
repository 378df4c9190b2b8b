"""Passing errors of a restarted broker are retried.

A run without a right ends within 30 seconds with the missing right or wrong login, never with a missing topic.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as Told
from pyspark.sql import SparkSession

from bridge.errors import BridgeError, KafkaError, TopicMissingError
from bridge.kafka.client import AdminSession, LastError, committed_offsets
from bridge.metrics import BatchReport, Summary
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.doctor import examine
from bridge.pipelines.operations.surroundings import Outcome
from bridge.pipelines.publish.run import publish
from bridge.watchdog import log_file
from tests.kafka.certificates import PASSWORD
from tests.kafka.places import SECRETS, WRONG, Place, jaas
from tests.pipelines.world import World, upsert

PASSING = (Told.UNKNOWN_LEADER_EPOCH, Told.FENCED_LEADER_EPOCH, Told.NOT_LEADER_FOR_PARTITION)


class Request:
    """A request that is answered with an error for a number of times."""

    def __init__(self, code: int, times: int) -> None:
        self.code, self.times, self.asked = code, times, 0

    def __call__(self, client: object, **_: Any) -> dict[str, Future[int]]:
        self.asked += 1
        answer: Future[int] = Future()
        if self.asked <= self.times:
            answer.set_exception(KafkaException(Told(self.code)))
        else:
            answer.set_result(7)
        return {"t": answer}


@pytest.mark.parametrize("code", PASSING)
def test_requests_are_retried_during_an_election_or_a_restart(code: int) -> None:
    request = Request(code, 2)
    talk = AdminSession({"bootstrap.servers": "localhost:9"}, 20.0)
    assert talk.request("list offsets", request) == {"t": 7}
    assert request.asked == 3


def test_final_errors_are_raised_at_once_and_passing_ones_after_the_timeout() -> None:
    for code, timeout in ((Told.TOPIC_AUTHORIZATION_FAILED, 20.0), (Told.UNKNOWN_LEADER_EPOCH, 0.2)):
        request = Request(code, 1000)
        with pytest.raises(KafkaError):
            AdminSession({"bootstrap.servers": "localhost:9"}, timeout).request("list offsets", request)
        assert (request.asked == 1) == (code == Told.TOPIC_AUTHORIZATION_FAILED)


class Coordinated:
    """A consumer whose group has no coordinator that is ready yet."""

    def __init__(self, code: int, times: int) -> None:
        self.code, self.times, self.asked = code, times, 0

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self.asked += 1
        if self.asked <= self.times:
            raise KafkaException(Told(self.code))
        return partitions

    def poll(self, timeout: float) -> None:
        return None


@pytest.mark.parametrize(
    "code", [Told.NOT_COORDINATOR, Told.COORDINATOR_NOT_AVAILABLE, Told.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_a_coordinator_that_is_not_ready_is_asked_again(code: int) -> None:
    """A broker that has just started, with its first group (test_group_offsets alone finds it on a fast machine)."""
    places = [TopicPartition("t", 0)]
    consumer = Coordinated(code, 2)
    assert committed_offsets(cast(Consumer, consumer), places, 20.0, LastError()) == places
    assert consumer.asked == 3
    for other, timeout in ((Told.INVALID_GROUP_ID, 20.0), (code, 0.15)):
        refusing = Coordinated(other, 1000)
        with pytest.raises(KafkaException):
            committed_offsets(cast(Consumer, refusing), places, timeout, LastError())
        assert (refusing.asked == 1) == (other == Told.INVALID_GROUP_ID)


Run = Callable[..., Summary]


@dataclass
class Guest:
    """Bob's pipeline: a topic with a record, a table with a row."""

    place: Place
    world: World

    def options(self, **more: str) -> None:
        self.world.options = {
            "properties.bootstrap.servers": self.place.listeners.address("SASL_PLAINTEXT"),
            "properties.security.protocol": "SASL_PLAINTEXT",
            "properties.sasl.mechanism": "SCRAM-SHA-256",
            "properties.sasl.jaas.config": jaas("bob").replace("'", "''"),
            **more,
        }

    def exactly_once(self) -> None:
        given = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": self.world.topic}
        self.options(**given)

    def refused(
        self, pipeline: Run, *words: str, seconds: float = 30, run: Mapping[str, object] | None = None
    ) -> str:
        """Run it: the reason is there in time, and no secret with it."""
        began = time.monotonic()
        with pytest.raises(KafkaError) as caught:
            pipeline(self.world.spark, self.world.definition(run=run))
        took, message = time.monotonic() - began, str(caught.value)
        print(f"{took:.1f} s: {message}")
        assert not isinstance(caught.value, TopicMissingError), message
        assert all(word in message for word in words), message
        assert not [secret for secret in SECRETS if secret in message], message
        assert took < seconds, f"{took:.1f} s: {message}"
        return message


@pytest.fixture
def guest(spark: SparkSession, place: Place, lake: Path, unique: Callable[[str], str]) -> Guest:
    world = World.make(spark, place.broker, lake, unique, partitions=1)
    world.send([upsert(1, "a")])
    world.create_table()
    spark.sql(f"INSERT INTO delta.`{lake}/table` VALUES (7, 'x', 1)")
    made = Guest(place, world)
    made.options()
    return made


def test_a_wrong_password(guest: Guest) -> None:
    guest.options(**{"properties.sasl.jaas.config": jaas("bob", WRONG)})
    for run in (ingest, publish):
        guest.refused(run, "refuses the login", "uthentication failed")
    guest.exactly_once()
    guest.world.options = {**guest.world.options, "properties.sasl.jaas.config": jaas("bob", WRONG)}
    guest.refused(publish, "refuses the login", "uthentication failed")


def test_no_right_to_the_topic(guest: Guest) -> None:
    """Not even to see it; then to see, but neither to read nor to write it."""
    topic = guest.world.topic
    for run in (ingest, publish):
        guest.refused(run, topic, "TOPIC_AUTHORIZATION_FAILED")
    guest.place.allow("topic", topic, "describe")
    guest.refused(
        ingest, f"{topic}-0 from offset 0 on cannot be read: TOPIC_AUTHORIZATION_FAILED", "give it READ"
    )
    guest.refused(publish, topic, "CLUSTER_AUTHORIZATION_FAILED", "give it WRITE on the topic")
    for sends, right in ((False, "READ"), (True, "WRITE")):
        findings = examine(guest.world.spark, guest.world.definition(), sends=sends)
        told = [f.text for f in findings if f.outcome is Outcome.FAILS]
        assert told == [f"the login has no {right} on topic '{topic}': give it this ACL"]
        assert "DESCRIBE_CONFIGS" in next(f.text for f in findings if f.outcome is Outcome.WARNING)


@pytest.mark.slow
def test_no_right_to_the_topic_in_a_transaction(guest: Guest) -> None:
    topic = guest.world.topic
    guest.exactly_once()
    guest.place.allow("transactional_id", topic, "write", "describe")
    guest.place.allow("group", topic, "read")
    guest.refused(publish, topic, "TOPIC_AUTHORIZATION_FAILED")
    guest.place.allow("topic", topic, "describe")
    guest.refused(publish, topic, "TOPIC_AUTHORIZATION_FAILED", "WRITE and READ")


def test_no_right_to_transactions(guest: Guest) -> None:
    """Neither to the transactional id, nor to the group with the progress."""
    topic = guest.world.topic
    guest.exactly_once()
    guest.place.allow("topic", topic, "describe", "read", "write")
    guest.refused(
        publish, f"begin with '{topic}'", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "WRITE and DESCRIBE"
    )
    guest.place.allow("transactional_id", topic, "write", "describe")
    guest.refused(
        publish, f"group '{topic}'", "GROUP_AUTHORIZATION_FAILED", "needs READ on groups that begin"
    )


@pytest.mark.slow
def test_a_group_that_may_not_be_used_is_a_warning_of_an_ingest(guest: Guest) -> None:
    """The group is for monitoring."""
    guest.place.allow("topic", guest.world.topic, "describe", "read")
    done = ingest(guest.world.spark, guest.world.definition())
    assert done.records_in == 1 and done.warning and "GROUP_AUTHORIZATION_FAILED" in done.warning


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_right_to_write_that_is_revoked_during_a_run(guest: Guest, guarantee: str) -> None:
    world, topic, reports = guest.world, guest.world.topic, list[BatchReport]()
    if guarantee == "exactly-once":
        guest.exactly_once()
        guest.place.allow("transactional_id", topic, "write", "describe")
        guest.place.allow("group", topic, "read")
    guest.place.allow("topic", topic, "describe", "read", "write")

    def heard(report: BatchReport) -> None:
        reports.append(report)
        guest.place.forbid("topic", topic)
        world.spark.sql(f"INSERT INTO delta.`{world.folder}/table` VALUES (8, 'y', 1)")

    guest.refused(
        lambda s, d: publish(s, d, listener=heard),
        topic,
        "AUTHORIZATION_FAILED",
        run={"trigger": "200 ms"},
        seconds=120,
    )
    assert len(reports) == 1


@pytest.mark.slow
def test_a_right_to_read_that_is_revoked_during_a_run(guest: Guest) -> None:
    topic = guest.world.topic
    guest.place.allow("topic", topic, "describe", "read")

    def heard(report: BatchReport) -> None:
        guest.place.forbid("topic", topic)
        guest.world.send([upsert(2, "b")])

    guest.refused(
        lambda s, d: ingest(s, d, listener=heard), topic, "uthoriz", run={"trigger": "200 ms"}, seconds=40
    )


@pytest.fixture
def expired(place: Place) -> Iterator[str]:
    """The address of a server whose certificate was valid until yesterday."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place.stores["expired PEM"])
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                with (
                    socket.socket.accept(listening)[0] as one,
                    context.wrap_socket(one, server_side=True) as talk,
                ):
                    talk.recv(1)
            except OSError:
                continue

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.2)
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        over.set()
        thread.join()


def test_an_expired_certificate(guest: Guest, expired: str) -> None:
    trust = guest.place.stores["trust PEM"]
    tls = {
        "properties.bootstrap.servers": expired,
        "properties.security.protocol": "SASL_SSL",
        "properties.ssl.truststore.type": "PEM",
        "properties.ssl.truststore.location": str(trust),
    }
    guest.options(**tls)
    for run in (ingest, publish):
        guest.refused(run, "refuses the login", "has expired: it was valid until")


@pytest.mark.slow
def test_no_secret_is_left_anywhere(
    guest: Guest, lake: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not in logs, output, plans and settings as Spark's UI shows them, nor in the log, rows and properties of tables,
    quarantine, checkpoint and progress: a login by ${env:} and a store's password by ${file:}."""
    world, topic = guest.world, guest.world.topic
    monkeypatch.setenv("BOBS_LOGIN", jaas("bob"))
    (lake.parent / "store-password").write_text(PASSWORD)
    tls = {
        "properties.bootstrap.servers": guest.place.listeners.address("SASL_SSL"),
        "properties.security.protocol": "SASL_SSL",
        "properties.sasl.jaas.config": "${env:BOBS_LOGIN}",
        "properties.ssl.truststore.type": "JKS",
        "properties.ssl.truststore.location": str(guest.place.stores["trust JKS"]),
        "properties.ssl.truststore.password": f"${{file:{lake.parent}/store-password}}",
    }
    once = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": topic}
    guest.place.allow("topic", topic, "describe", "read", "write")
    guest.place.allow("group", topic, "read")
    guest.place.allow("transactional_id", topic, "describe", "write")
    guest.options(**tls)
    world.sections = "ingest: {bad-records: quarantine}\n"
    world.send([('{"id":', "cut"), upsert(2, "b")])
    assert ingest(world.spark, world.definition()).bad_records == 1
    guest.options(**tls, **once)
    assert publish(world.spark, world.definition()).records_out == 3
    world.sections = ""
    guest.options(**tls)
    world.send([("[", "worse")])
    with pytest.raises(BridgeError) as bad:
        ingest(world.spark, world.definition())
    places = {"the error": str(bad.value), "the output": "".join(capfd.readouterr())}
    places |= {str(f): f.read_bytes().decode("latin-1") for f in lake.rglob("*") if f.is_file()}
    places |= {str(f): f.read_text() for f in log_file().parent.glob("*.log*")}
    places |= dict(_shown_by_spark(world.spark))
    leaks = {where for where, text in places.items() for secret in SECRETS if secret in text}
    assert not leaks
    assert any("MERGE" in text for text in places.values()) and any(
        "kafka" in where.lower() for where in places
    )


def _shown_by_spark(spark: SparkSession) -> Iterator[tuple[str, str]]:
    """What the pages SQL and Environment of the UI, and their REST calls, are made of."""
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    for n in range(executions.size()):
        execution = executions.apply(n)
        plan = str(execution.physicalPlanDescription())
        yield (
            f"query {n} {'of kafka' if 'kafka' in plan else ''}",
            f"{execution.description()} {execution.details()} {plan}",
        )
    environment = spark.sparkContext._jsc.sc().statusStore().environmentInfo()
    for part in ("sparkProperties", "hadoopProperties", "systemProperties"):
        yield part, getattr(environment, part)().mkString("\n")
