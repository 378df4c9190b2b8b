"""What a process and its Spark hold: threads, open files, memory, and Spark's own lists."""

from __future__ import annotations

import gc
import os
import threading
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Resources:
    """Numbers at one moment, after garbage collections of Python and Java."""

    python_threads: int
    java_threads: int
    python_files: int
    java_files: int
    """Open files and sockets, brokers' among them."""
    java_objects: int
    """That Python holds."""
    persisted: int
    """Frames in Spark's cache."""
    listeners: int
    """Of Spark's events; each session with a streaming query adds one."""
    temp_views: int
    queries: int
    """Streaming queries at work."""
    heap_mb: float
    resident_mb: float
    """Of Python."""

    @classmethod
    def of(cls, spark: SparkSession) -> Resources:
        """Look at this process and its JVM."""
        jvm: Any = spark._jvm
        for _ in range(3):  # what Python lets go of, Java may collect
            gc.collect()
            jvm.java.lang.System.gc()
        runtime = jvm.java.lang.Runtime.getRuntime()
        pid = int(jvm.java.lang.ProcessHandle.current().pid())
        context = spark.sparkContext._jsc
        return cls(
            python_threads=threading.active_count(),
            java_threads=int(jvm.java.lang.management.ManagementFactory.getThreadMXBean().getThreadCount()),
            python_files=len(os.listdir("/proc/self/fd")),
            java_files=len(os.listdir(f"/proc/{pid}/fd")),
            java_objects=sum(isinstance(each, JavaObject) for each in gc.get_objects()),
            persisted=int(context.getPersistentRDDs().size()),
            listeners=int(context.sc().listenerBus().listeners().size()),
            temp_views=sum(table.isTemporary for table in spark.catalog.listTables()),
            queries=len(spark.streams.active),
            heap_mb=(runtime.totalMemory() - runtime.freeMemory()) / 1e6,
            resident_mb=int(Path("/proc/self/statm").read_text().split()[1])
            * os.sysconf("SC_PAGE_SIZE")
            / 1e6,
        )

    def grown(self, since: Resources) -> dict[str, float]:
        """What is more than at `since`, by name."""
        return {
            each.name: more
            for each in fields(self)
            if (more := getattr(self, each.name) - getattr(since, each.name)) > 0
        }
