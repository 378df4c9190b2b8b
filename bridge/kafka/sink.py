"""Sends records to a topic without transactions (`exactly_once` sends with them): one producer per task.

All records of a key are in one task. `ProducerPool` keeps producers beyond their task, in a Python worker that Spark
reuses and in the driver (ADR 015, ADR 046): an idempotent producer without transactions waits half a second for its id
before its first record, by a timer that no setting changes. `StallDetector` detects that this process was suspended:
stopped by a signal, swapped out, or on a machine that slept. Records that it has not sent yet may then be older than
those of another run, so it must discard them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, cast

import confluent_kafka
import pyarrow as pa
from confluent_kafka import KafkaException
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from bridge import failpoints
from bridge.arrow_formats.record_encoder import RecordEncoder
from bridge.backend import ENGINE_ERRORS, Feature, backend_of, require
from bridge.columns import ROUTE
from bridge.definition import DeliveryGuarantee, Topic
from bridge.errors import ConcurrentRunError, KafkaError
from bridge.kafka.arrow_records import ArrowRecords
from bridge.kafka.client import error_text, root_error
from bridge.kafka.client_settings import for_librdkafka, producer_settings
from bridge.kafka.flush_buffer import FlushBuffer
from bridge.kafka.producer import RecordProducer
from bridge.kafka.records import SendCounts
from bridge.kafka.task_errors import TaskErrors
from bridge.kafka.topic_creation import partition_counts
from bridge.kafka.worker_check import expected
from bridge.partitioners import BUILT_IN, TASK_FREE, Partitioner, opened

IDLE_SECONDS = 60.0
"""As long as Spark keeps an idle Python worker."""
MAX_IDLE = 8
"""A worker runs one task at a time, so several idle producers belong to several pipelines; so do those of a driver."""


@dataclass(frozen=True)
class _IdleProducer:
    packing: ArrowRecords
    settings: dict[str, Any]
    checked: bool
    producer: RecordProducer
    since: float


class ProducerPool:
    """Keeps producers for reuse, at most MAX_IDLE of them and each for `idle_seconds`. Threads may share it."""

    def __init__(
        self, idle_seconds: float = IDLE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._idle_seconds, self._clock = idle_seconds, clock
        self._idle: list[_IdleProducer] = []
        self._lock = threading.Lock()

    @property
    def idle_topics(self) -> list[tuple[str, ...]]:
        """The topics of the idle producers, oldest first."""
        return [idle.packing.topics for idle in self._idle]

    @contextmanager
    def producer(
        self,
        packing: ArrowRecords,
        settings: Mapping[str, Any],
        *,
        checked: bool = True,
        partitioner: Partitioner | None = None,
        partition_counts: Mapping[str, int] | None = None,
    ) -> Iterator[RecordProducer]:
        """Provide a RecordProducer for the `with` block, with its guarantees and errors.

        It is new, or an idle one with the same topics and settings, which first refreshes the partitions of its topics.
        A producer is not reused when its block failed, when it has reported any error, after `idle_seconds`, or when
        MAX_IDLE others became idle since.
        """
        own_settings = dict(settings)
        producer = self._take_idle(packing, own_settings, checked, partitioner, partition_counts)
        if producer is None:
            producer = RecordProducer(
                own_settings, checked=checked, partitioner=partitioner, partition_counts=partition_counts
            )
        with producer:
            yield producer
        idle = _IdleProducer(packing, own_settings, checked, producer, self._clock())
        with self._lock:
            # A new list: what is left out ends its threads when it is released, outside of the lock.
            former, self._idle = self._idle, [*self._idle, idle][-MAX_IDLE:]
        del former

    def _take_idle(
        self,
        packing: ArrowRecords,
        settings: dict[str, Any],
        checked: bool,
        partitioner: Partitioner | None,
        partition_counts: Mapping[str, int] | None,
    ) -> RecordProducer | None:
        while (producer := self._taken(packing, settings, checked)) is not None:
            if producer.reset(partitioner, partition_counts):
                return producer
        return None

    def _taken(self, packing: ArrowRecords, settings: dict[str, Any], checked: bool) -> RecordProducer | None:
        """Take the oldest idle producer of these topics and settings out of the pool, and those that are too old."""
        oldest = self._clock() - self._idle_seconds
        with self._lock:
            former, self._idle = self._idle, [idle for idle in self._idle if idle.since > oldest]
            wanted = (packing, settings, checked)
            for place, idle in enumerate(self._idle):
                if (idle.packing, idle.settings, idle.checked) == wanted:
                    return self._idle.pop(place).producer
        del former
        return None


pooled_producer = ProducerPool().producer
"""The pool of this process; see ProducerPool.producer."""


_EVERY_SECONDS = 0.5
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux's other clocks stop while the machine sleeps."""


class StallDetector:
    """A context manager with a thread that reads the clock twice a second.

    The thread runs on while the process computes or waits, so only a suspended process misses a beat."""

    def __init__(self, patience: float = 6.0) -> None:
        """`patience` is in seconds; the default is as long as a lease on a local disk survives without a heartbeat."""
        self._patience = patience
        self._longest = 0.0
        self._over = threading.Event()
        # Shared by threads: two numbers. The producer that it guards is its caller's alone.
        self._thread = threading.Thread(target=self._run, name="stall-detector", daemon=True)

    def __enter__(self) -> StallDetector:
        self._last = time.clock_gettime(_CLOCK)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Raise ConcurrentRunError when the process was suspended for longer than `patience` since the block began."""
        stalled = max(self._longest, time.clock_gettime(_CLOCK) - self._last)
        if stalled > self._patience:
            raise ConcurrentRunError(
                f"a task that sends records stood still for {stalled:.0f} s (a stopped process, a machine that slept): "
                "another run may have taken over, so the task has discarded the records that it had not sent"
            )

    def _run(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            now = time.clock_gettime(_CLOCK)
            self._longest = max(self._longest, now - self._last)
            self._last = now


COUNTS_SCHEMA = "records bigint, tombstones bigint, bytes bigint, lost bigint, transactions bigint"
_FATAL_ERROR_SECONDS = 5.0


class UnencodedRecords(Protocol):
    """Records without key and value: whoever sends them chooses where these are made, by whether it needs the keys."""

    def encoded(self) -> DataFrame:
        """The records with key and value, which Spark SQL makes before they are moved or sorted."""
        ...

    def for_tasks(self) -> tuple[DataFrame, RecordEncoder]:
        """What `encode.leave_to_tasks` gives, and what makes key and value of it in the tasks that send the records."""
        ...


def counts_batch(counts: SendCounts) -> pa.RecordBatch:
    """Return a task's result: one row of COUNTS_SCHEMA."""
    return pa.RecordBatch.from_pydict({name: [count] for name, count in asdict(counts).items()})


def collect_counts(counts: DataFrame, task_errors: TaskErrors) -> SendCounts:
    """Run the tasks of `counts` and return the sum of what they sent.

    Raises the bridge's error of a task where `task_errors` finds one, else Spark's.
    """
    try:
        # One row per task, collected because an aggregate would need a second stage.
        rows = counts.collect()
    except ENGINE_ERRORS as failed:
        error = task_errors.error(failed)
        if error is None:
            raise
        raise error from None
    return SendCounts(*(sum(of_tasks) for of_tasks in zip(*rows, strict=True)))


class RowsTask(Protocol):
    """What sends rows, in a task or in this process."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Send all rows and yield one row of counts."""
        ...


def send_rows(rows: DataFrame, task: RowsTask, topic: Topic) -> SendCounts:
    """Send the rows of each partition in a task of Spark's, or in this process, partition after partition, where tasks
    do not reach the brokers. Raises what the task raises, and Spark's errors."""
    backend = backend_of(rows.sparkSession)
    if backend.can(Feature.KAFKA_IN_TASKS) is not None:
        return _sent_here(task, backend.batches(rows))
    task_errors = TaskErrors(expected(topic.properties))
    return collect_counts(rows.mapInArrow(task_errors.task(task.run), COUNTS_SCHEMA), task_errors)


def _sent_here(task: RowsTask, batches: Iterable[pa.RecordBatch]) -> SendCounts:
    (counts,) = task.run(batches)
    return SendCounts(**counts.to_pylist()[0])


def refuse_speculation(spark: SparkSession) -> None:
    """Raise KafkaError when Spark may run two attempts of a task at the same time."""
    if (backend_of(spark).setting("spark.speculation") or "").lower() == "true":
        raise KafkaError(
            "spark.speculation must be false: a second attempt of a task sends old values behind new ones"
        )


@dataclass(frozen=True)
class SendTask:
    """Everything a task needs, as plain values. Contains secrets in clear text, so `repr` hides them."""

    settings: Mapping[str, Any]
    packing: ArrowRecords
    checked: bool
    buffer_rows: int
    buffer_interval_ms: int
    partitioner: str = "default"
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    """Each topic's number of partitions when the batch began."""
    tasks: int = 1
    """How many tasks send; some partitioners use it."""

    def __repr__(self) -> str:
        return f"SendTask({self.packing.pattern or ', '.join(self.packing.topics)})"

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Send all records of `batches` and yield one row of counts. Raises KafkaError, ConcurrentRunError."""
        try:
            yield self._send(batches)
        except (KafkaException, SystemError) as failed:
            cause = root_error(failed)
            if isinstance(cause, KafkaError):
                raise cause from None
            error = cause.args[0]
            if error.code() == confluent_kafka.KafkaError._FAIL:
                error = self._fatal_error() or error
            raise KafkaError(self._error_message(error)) from None

    def _fatal_error(self) -> confluent_kafka.KafkaError | None:
        """Return why the broker refuses a producer, by a new producer; None when it does not answer soon.

        With nothing to send, no other callback can coincide with a fatal error and hide it.
        """
        producer = confluent_kafka.Producer({**self.settings, "log_level": 2})
        deadline = time.monotonic() + _FATAL_ERROR_SECONDS
        try:
            while time.monotonic() < deadline:
                producer.poll(0.2)
        except KafkaException as refused:
            return cast(confluent_kafka.KafkaError, refused.args[0])
        return None

    def _error_message(self, error: confluent_kafka.KafkaError) -> str:
        topic = self.packing.pattern or ", ".join(self.packing.topics)
        if error.code() == confluent_kafka.KafkaError.CLUSTER_AUTHORIZATION_FAILED:
            return (
                f"the login may not send to {topic}: {error_text(error)}; give it WRITE on the topic "
                "(before Kafka 2.8 also IDEMPOTENT_WRITE on the cluster)"
            )
        return f"the producer to {topic} failed: {error_text(error)}"

    def _send(self, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
        context = TaskContext.get()
        partitioner = opened(self.partitioner, context.partitionId() if context else 0, self.tasks)
        with (
            StallDetector() as stall_detector,
            pooled_producer(
                self.packing,
                self.settings,
                checked=self.checked,
                partitioner=partitioner,
                partition_counts=self.partition_counts,
            ) as producer,
        ):
            if self.buffer_rows:
                buffer = FlushBuffer(
                    producer.send, max_rows=self.buffer_rows, interval_ms=self.buffer_interval_ms
                )
                for batch in batches:
                    stall_detector.check()
                    buffer.add(self.packing.records(batch))
                buffer.flush()
            else:
                for batch in batches:
                    stall_detector.check()
                    failpoints.hit("sink.sending")
                    producer.send(self.packing.records(batch))
        return counts_batch(producer.counts)


def needs_no_key(topic: Topic, *, unique_keys: bool) -> bool:
    """Whether `produce` chooses the task that sends a record without its key."""
    return topic.key is None or _sends_where_made(topic, unique_keys)


def _sends_where_made(topic: Topic, unique_keys: bool) -> bool:
    return unique_keys and topic.sink.parallelism is None and topic.sink.partitioner == "default"


def produce(
    records: DataFrame | UnencodedRecords,
    topic: Topic,
    *,
    order_by: Sequence[str] = (),
    unique_keys: bool = False,
) -> SendCounts:
    """Send `records` (key, value; optional timestamp, headers, topic; columns of `order_by`) and wait for it.

    One task sends all records of a key, in the order of `order_by`, to the partition that Java's default partitioner
    (or `sink.partitioner`) chooses for it by the topic's number of partitions at the time of this call. Without a key
    format `__route` takes the key's place, and without that any task sends any record. `unique_keys` promises that no
    key has two records: where the key alone decides the partition, the tasks that make the records send them. Records
    that are not encoded yet are by the tasks that send them where `needs_no_key` is true, else before.

    Returns after the broker has acknowledged every record (with the guarantee `none`: after all have been tried,
    failures counted). A repeated task sends its records again, in order. A task that was stopped for seconds discards
    what is not sent and raises ConcurrentRunError. Buffering (`sink.buffer-flush.*`) sends the last record of a key per
    task and flush. Raises KafkaError when a record cannot be delivered, with topic, partition and reason; other records
    may have been sent or not.
    """
    encoder: RecordEncoder | None = None
    if isinstance(records, DataFrame):
        frame = records
    elif needs_no_key(topic, unique_keys=unique_keys):
        frame, encoder = records.for_tasks()
    else:
        frame = records.encoded()
    spark = frame.sparkSession
    refuse_speculation(spark)
    if topic.sink.parallelism is not None:
        require(spark, Feature.KAFKA_IN_TASKS, f"'sink.parallelism' = '{topic.sink.parallelism}'")
    if topic.sink.partitioner not in TASK_FREE:  # it places a record by the task that sends it
        require(spark, Feature.KAFKA_IN_TASKS, f"'sink.partitioner' = '{topic.sink.partitioner}'")
    tasks = topic.sink.parallelism or backend_of(spark).parallelism
    task = _send_task(topic, encoder, tasks)
    assigned = frame
    if _sends_where_made(topic, unique_keys):
        assigned, order_by = frame.coalesce(tasks), ()
    elif topic.key is not None:
        assigned = frame.repartition(tasks, "key")
    elif ROUTE in frame.columns:
        assigned = frame.repartition(tasks, ROUTE)
    elif topic.sink.parallelism or topic.sink.partitioner not in BUILT_IN:
        assigned = frame.repartition(tasks)  # a partitioner depends on the number of tasks
    if order_by:
        # By the fields of a position: Spark's sort has no binary prefix to compare structs by.
        order = [part for name in order_by for part in _fields(frame, name)]
        assigned = assigned.sortWithinPartitions(*order)
    columns = task.packing.columns(frame.columns)
    return send_rows(assigned.select(*columns), task, topic)


def _fields(frame: DataFrame, name: str) -> list[str]:
    type = frame.schema[name].dataType
    return [f"{name}.{part}" for part in type.names] if isinstance(type, T.StructType) else [name]


def produce_in_driver(records: pa.Table, topic: Topic, encoder: RecordEncoder) -> SendCounts:
    """Send `records`, as `UnencodedRecords.for_tasks` has them, from this process and in their order: for as few that
    starting tasks would take longer than to send them. Guarantees, waits and raises as `produce` does."""
    task = _send_task(topic, encoder, tasks=1)
    return _sent_here(task, records.to_batches())


def _send_task(topic: Topic, encoder: RecordEncoder | None, tasks: int) -> SendTask:
    checked = topic.sink.delivery_guarantee is not DeliveryGuarantee.NONE
    return SendTask(
        settings=producer_settings(for_librdkafka(topic.properties, "producer"), checked=checked),
        packing=ArrowRecords.of(topic, encoder),
        checked=checked,
        buffer_rows=topic.sink.buffer_rows,
        buffer_interval_ms=topic.sink.buffer_interval_ms,
        partitioner=topic.sink.partitioner,
        partition_counts=partition_counts(topic),
        tasks=tasks,
    )
