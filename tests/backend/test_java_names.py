"""Names are looked up once, and give what py4j gives without it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from bridge.backend.java_names import remember_lookups

pytestmark = pytest.mark.versions


@pytest.fixture
def requests(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Gives the number of this thread's requests to the JVM since it was called last.

    Those that tell the JVM of objects collected here, of any test before, do not count, nor do those of listeners.
    """
    gateway: Any = spark.sparkContext._gateway
    client = gateway._gateway_client
    send, sent = client.send_command, [0]

    own = threading.get_ident()

    def counted(command: str, *args: Any, **more: Any) -> Any:
        if threading.get_ident() == own and not command.startswith(MEMORY_COMMAND_NAME):
            sent[0] += 1
        return send(command, *args, **more)

    def since() -> int:
        count, sent[0] = sent[0], 0
        return count

    monkeypatch.setattr(client, "send_command", counted)
    return since


def plain(spark: SparkSession) -> JVMView:
    """The JVM without memory."""
    jvm: Any = spark._jvm
    return JVMView(jvm._gateway_client, jvm._jvm_name, id=jvm._id)


def test_a_call_is_one_request(spark: SparkSession, requests: Callable[[], int]) -> None:
    def made() -> Column:
        return F.upper(F.col("a"))

    first, _ = str(made()), requests()
    assert str(made()) == first == "Column<'upper(a)'>"
    assert requests() <= 6  # of that three to print it


def test_a_class_is_found_by_no_request(spark: SparkSession, requests: Callable[[], int]) -> None:
    jvm: Any = spark._jvm
    found = jvm.org.apache.hadoop.fs.Path
    requests()
    assert jvm.org.apache.hadoop.fs.Path is found and requests() == 0
    assert found("/a/b").getName() == "b"
    assert isinstance(found, JavaClass) and found._fqn == plain(spark).org.apache.hadoop.fs.Path._fqn


def test_a_class_that_is_not_there_is_asked_for_again(
    spark: SparkSession, requests: Callable[[], int]
) -> None:
    jvm: Any = spark._jvm
    for _ in range(2):
        requests()
        assert isinstance(jvm.org.apache.NoSuchClass, JavaPackage)
        assert requests() >= 1
    with pytest.raises(TypeError, match="not callable"):
        jvm.org.apache.NoSuchClass()


def test_a_field_is_read_each_time(spark: SparkSession, requests: Callable[[], int]) -> None:
    jvm: Any = spark._jvm
    assert jvm.java.lang.Integer.MAX_VALUE == 2**31 - 1
    requests()
    assert jvm.java.lang.Integer.MAX_VALUE == plain(spark).java.lang.Integer.MAX_VALUE
    assert requests() > 1
    assert jvm.java.lang.Integer.parseInt("7") == 7


def test_a_session_without_a_jvm_is_left_alone() -> None:
    class Remote:
        """Spark Connect's session has no such attribute."""

    remember_lookups(Remote())  # type: ignore[arg-type]
