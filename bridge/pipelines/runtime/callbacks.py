"""Closes the connection by which the thread of a streaming query calls Python (`foreachBatch`).

py4j opens a connection for each thread of the JVM that calls Python, with a thread of Python that answers it, and never
closes it: the connections of threads that have ended stay for as long as the process lives. Each run of the reader
`spark` starts a streaming query, which is a new thread, so a process that runs many pipelines, or one often, would fill
its threads and open files.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from bridge.spark_versions import or_public


class CallbackConnection:
    """Of one streaming query. Where this Spark has another kind of connection it does nothing."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._opened: tuple[Any, Any] | None = None

    def note(self) -> None:
        """Note the connection of the thread of the JVM that called. Must be called by the callback's own thread.

        A thread of the JVM that is called from its callback answers with what belongs to itself.
        """
        if self._opened is None:
            self._opened = or_public(self._of_this_thread, lambda: None)

    def close(self) -> None:
        """Close what was noted; a second call does nothing. Only after the query has ended, as it calls no more."""
        if self._opened is None:
            return
        client, connection = self._opened
        self._opened = None
        connection.shutdown()
        client.connectionStopped(connection)  # else py4j's list of all connections would hold it

    def _of_this_thread(self) -> tuple[Any, Any] | None:
        gateway: Any = self._spark.sparkContext._gateway
        client = gateway.java_gateway_server.getCallbackClient()
        connection = client.getPerThreadConnection()
        return None if connection is None else (client, connection)
