"""What Spark, Java or the disk did to a run, as an error of the bridge: what was under way, why it ended, and what to
try. Classes of exceptions are named, their texts are not: these may quote a record."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.delta.delta_errors import error_names
from bridge.errors import BridgeError
from bridge.offsets import Offsets
from bridge.session import log_file

__all__ = [
    "explain_errors",
    "explained_error",
    "is_engine_error",
    "is_out_of_memory_or_space",
    "offsets_between",
]

_NO_SPACE = ("No space left on device", "Disk quota exceeded")
_MEMORY = ("OutOfMemoryError", "SparkOutOfMemoryError", "ExecutorLostFailure", "MemoryError", "exit code 137")
_CLASS = re.compile(r"\b(?:[a-z]\w*\.)+([A-Z]\w*(?:Error|Exception))\b|^\s*([A-Z]\w*Error): ", re.MULTILINE)
"""Java's in a trace, and Python's in a worker's."""
_CRASHED = "Python worker exited unexpectedly"
_RUST = ("_internal", "deltalake.exceptions", "pyo3_runtime")
"""Where delta-rs says that its errors are from."""
_WRAPPERS = {
    "Error",
    "ExecutionException",
    "ForeachBatchUserFuncException",
    "Py4JException",
    "Py4JJavaError",
    "SparkException",
    "StreamingQueryException",
}
_SHOWN = 4
_LITTLE_BYTES = 4 << 20


@contextmanager
def explain_errors(spark: SparkSession, definition: Definition, doing: str) -> Iterator[None]:
    """Raise `explained` for what Spark, Java or the file system raises inside; everything else passes."""
    try:
        yield
    except Exception as failure:
        if not is_engine_error(failure):
            raise
        raise explained_error(spark, failure, definition, doing) from failure


def is_engine_error(failure: BaseException) -> bool:
    """True for what Spark, Java and delta-rs raise, and for a full disk; not when Java itself has gone."""
    full = isinstance(failure, OSError) and failure.errno in (errno.ENOSPC, errno.EDQUOT)
    rust = type(failure).__module__ in _RUST
    return full or rust or isinstance(failure, (PySparkException, Py4JJavaError))


def is_out_of_memory_or_space(text: str) -> bool:
    """True when an exception's text tells of memory or space that ran out, wherever that happened to be noticed."""
    return any(sign in text for sign in (*_MEMORY, *_NO_SPACE))


def explained_error(
    spark: SparkSession, failure: BaseException, definition: Definition, doing: str
) -> BridgeError:
    """An error that says what `doing` (a sentence's beginning) ended with, and the way out where it is known."""
    text = f"{type(failure).__name__} {failure}"
    what = f"{definition.name!r}: {doing} failed"
    if isinstance(failure, OSError) or any(sign in text for sign in _NO_SPACE):
        places = _full_places(spark, definition)
        where = f": {', '.join(places)}" if places else " of a disk that it writes to"
        return BridgeError(
            f"{what}, as there is no space left on the device{where}. What was committed is whole; make room, then "
            "start it again: it goes on there"
        )
    reasons = f"{what}: {', '.join(_causes(failure, text))}"
    log = f"Spark's log has the whole story ({log_file()})"
    if any(sign in text for sign in _MEMORY):
        return BridgeError(
            f"{reasons}. Let it take less at a time (`run: {{max-offsets-per-batch: 100000}}`) or give Spark more "
            f"memory (spark.driver.memory, spark.executor.memory), then start it again. {log}"
        )
    return BridgeError(
        f"{reasons}. Nothing of it is committed. Started again it begins with the same; if that fails, too, smaller "
        f"batches narrow it down (`run.max-offsets-per-batch`). {log}"
    )


def offsets_between(start: Offsets, end: Offsets) -> str:
    """The offsets from `start` up to `end`, exclusive, by partition; of very many the first few."""
    before = start.by_partition
    parts = [
        f"{t}-{p} offsets {before.get((t, p), 0)} to {o - 1}" for t, p, o in end if o > before.get((t, p), 0)
    ]
    more = f" and {len(parts) - _SHOWN} more partitions" if len(parts) > _SHOWN else ""
    return ", ".join(parts[:_SHOWN]) + more


def _causes(failure: BaseException, text: str) -> list[str]:
    classes = [java or python for java, python in _CLASS.findall(text)]
    found = dict.fromkeys([*sorted(error_names(failure)), *classes])
    kept = [name for name in found if name not in _WRAPPERS]
    if _CRASHED in text:
        kept.insert(0, f"a {_CRASHED}")
    return kept[:_SHOWN] or [type(failure).__name__]


def _full_places(spark: SparkSession, definition: Definition) -> list[str]:
    """Which of the places that a run writes to are local and full."""
    places = {
        "delta.path": definition.delta.path,
        "run.checkpoint": definition.run.checkpoint,
        "spark.local.dir": spark.conf.get("spark.local.dir", "/tmp"),
    }
    return [f"{name} {path}" for name, path in places.items() if path and _is_full(path)]


def _is_full(path: str) -> bool:
    there = Path(path.removeprefix("file:"))
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        found = os.statvfs(there)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _LITTLE_BYTES
