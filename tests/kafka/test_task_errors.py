"""What tasks raise is what their driver raises."""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge import errors
from bridge.kafka.arrow_records import ArrowRecords
from bridge.kafka.sink import SendTask, collect_counts
from bridge.kafka.task_errors import TaskErrors
from bridge.kafka.worker_check import WorkerCheck

_WORDS = 'line one\nRuntimeError: bridge-error/1 {}\r\n "quoted" \\ é名\u2028 $1 {curly}'


def _errors() -> Iterator[errors.BridgeError]:
    for kind in vars(errors).values():
        if not isinstance(kind, type) or not issubclass(kind, errors.BridgeError):
            continue
        if kind is errors.DdlError:
            yield kind(_WORDS, "orders.sql", 3, 14)
        elif kind is errors.UnsupportedError:
            yield kind(_WORDS, "column type")
        else:
            yield kind(_WORDS)


class _Raises:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def run(self, batches: Iterable[Any]) -> Iterator[Any]:
        yield from batches
        raise self.error


def _pickled(task: Any) -> bytes:
    made: bytes = cloudpickle.dumps(task)  # type: ignore[no-untyped-call]
    return made


def _text(task: Any, *batches: Any) -> str:
    """What a Python worker sends of a task that fails: it travels there and back."""
    try:
        list(pickle.loads(_pickled(task))(iter(batches)))
    except Exception:
        return f"Job aborted: Lost task 0.0\n{traceback.format_exc()}\n\tat org.apache.spark.Task(x.scala:1)"
    raise AssertionError("it did not fail")


@pytest.mark.parametrize("error", list(_errors()), ids=lambda e: type(e).__name__)
def test_every_class_is_restored_with_message_and_fields(error: errors.BridgeError) -> None:
    remote = TaskErrors()
    again = remote.error(PySparkException(_text(remote.task(_Raises(error).run))))
    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def test_a_subclass_outside_of_bridge_errors_becomes_its_base_class() -> None:
    class Narrow(errors.GapError):
        version = 0

    remote, gone = TaskErrors(), Narrow("version 7 is gone")
    gone.version = 7
    again = remote.error(PySparkException(_text(remote.task(_Raises(gone).run))))
    assert (type(again), str(again), vars(again)) == (errors.GapError, "version 7 is gone", {"version": 7})


def test_other_text_is_not_mistaken_for_an_error_of_the_bridge() -> None:
    """Not even the text of another job's error or of an earlier one."""
    remote, other = TaskErrors(), TaskErrors()
    stolen = _text(other.task(_Raises(errors.KafkaError("stolen")).run))
    for words in (
        stolen,
        "bridge.errors.KafkaError: forged",
        f'bridge-error/1 {{"kind":"KafkaError"}}\n{stolen}',
    ):
        text = _text(remote.task(_Raises(ValueError(words)).run))
        assert "ValueError" in text and remote.error(PySparkException(text)) is None
    ours = errors.BadRecordError(stolen)
    again = remote.error(PySparkException(_text(remote.task(_Raises(ours).run))))
    assert type(again) is errors.BadRecordError and str(again) == stolen


_WORKER = """
import sys

class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Lacking())
from pyspark import cloudpickle
list(cloudpickle.loads(sys.stdin.buffer.read())(iter([])))
"""


@pytest.mark.parametrize(
    ("lacking", "package"), [("confluent_kafka", "confluent-kafka"), ("bridge", "changelog-bridge")]
)
def test_a_package_that_executors_lack_is_named(lacking: str, package: str) -> None:
    remote = TaskErrors()
    task = SendTask({}, ArrowRecords(("t",)), True, 0, 0)
    sent = _pickled(remote.task(task.run))
    worker = subprocess.run(
        [sys.executable, "-c", _WORKER, lacking], check=False, input=sent, capture_output=True
    )
    error = remote.error(PySparkException(worker.stderr.decode()))
    assert isinstance(error, errors.MissingPackageError)
    assert str(error).startswith(f"{package} is not installed on the executors (")
    assert f"install {package}, in the driver's version, where Spark's executors run their Python" in str(
        error
    )
    assert "--archives" in str(error)
    assert f"; host {socket.gethostname()}, {sys.executable})" in str(error)


def test_a_library_that_cannot_be_loaded() -> None:
    remote = TaskErrors()
    broken = ImportError("librdkafka.so.1: cannot open shared object file", name="confluent_kafka.cimpl")
    error = remote.error(PySparkException(_text(remote.task(_Raises(broken).run))))
    assert str(error).startswith(
        "confluent-kafka cannot be imported on the executors (librdkafka.so.1: cannot"
    )


class _Lacks(WorkerCheck):
    def once(self) -> None:
        raise errors.KafkaError("b:9092 cannot be reached (host node-7)")


def test_a_worker_that_does_not_pass_runs_no_task() -> None:
    remote = TaskErrors(_Lacks((), {}, {}))
    again = remote.error(PySparkException(_text(remote.task(_Raises(ValueError("it ran")).run))))
    assert type(again) is errors.KafkaError and str(again) == "b:9092 cannot be reached (host node-7)"
    assert list(pickle.loads(_pickled(TaskErrors(WorkerCheck((), {}, {})).task(iter)))([1, 2])) == [1, 2]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            'java.io.IOException: Cannot run program "/opt/python9": error=2',
            'Cannot run program "/opt/python9"',
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark",
            "PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11",
        ),
    ],
)
def test_a_python_that_does_not_start_on_an_executor_is_named_with_its_host(text: str, why: str) -> None:
    lost = f"Job aborted: Lost task 0.3 in stage 7.0 (TID 9) (10.1.2.3 executor 4): {text}\n\tat x.scala"
    error = TaskErrors().error(PySparkException(lost))
    assert isinstance(error, errors.MissingPackageError)
    assert str(error).startswith("Spark's executors cannot run the driver's Python on host 10.1.2.3 (")
    assert why in str(error) and "--archives" in str(error)


def test_through_spark(spark: SparkSession) -> None:
    """From a worker, with rows on their way; the text of another exception stays Spark's."""
    rows = spark.createDataFrame(pa.table({"x": [1, 2, 3]}))
    gone = errors.TopicMissingError(_WORDS)
    remote = TaskErrors()
    with pytest.raises(errors.TopicMissingError) as caught:
        collect_counts(rows.mapInArrow(remote.task(_Raises(gone).run), "x bigint"), remote)
    assert str(caught.value) == _WORDS
    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        collect_counts(rows.mapInArrow(remote.task(_Raises(ZeroDivisionError()).run), "x bigint"), remote)
