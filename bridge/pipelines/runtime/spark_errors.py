"""Turns errors of Spark, Java and the disk into errors of the bridge: what was running, why it ended, what to try.

Messages contain the classes of exceptions but not their texts, which may quote a record.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from bridge.backend import ENGINE_ERRORS, backend_of
from bridge.definition import Definition
from bridge.delta.delta_errors import error_names
from bridge.errors import BridgeError, TableError, UnwritableRowError
from bridge.offsets import Offsets
from bridge.watchdog import log_file

_NO_SPACE = ("No space left on device", "Disk quota exceeded")
_MEMORY = ("OutOfMemoryError", "SparkOutOfMemoryError", "ExecutorLostFailure", "MemoryError", "exit code 137")
_CLASS = re.compile(r"\b(?:[a-z]\w*\.)+([A-Z]\w*(?:Error|Exception))\b|^\s*([A-Z]\w*Error): ", re.MULTILINE)
"""Classes of exceptions in a trace of Java, and in one of a Python worker."""
_CRASHED = "Python worker exited unexpectedly"
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] ([^\n]*?)(?: SQLSTATE|$)", re.MULTILINE)
_OF_USER = re.compile(
    r"\[FAILED_EXECUTE_UDF\]|PythonException(?!.*/bridge/(\w+/)*\w+\.py\b).*\bTraceback ", re.DOTALL
)
"""An error in a function of the user, of Java or of Python; a trace of the bridge's own workers has its files."""
_RUST = ("_internal", "deltalake.exceptions", "pyo3_runtime")
"""Modules of delta-rs's exceptions."""
_PART = re.compile(r"^== SQL[^\n]*==\n([^\n]*)\n( *)(\^+)", re.MULTILINE)
"""A line of the query, and the marks under a part of it."""
_BY_ZERO = "a division by zero; NULLIF(x, 0) as divisor gives NULL"
_TOO_LARGE = "a number or time that its type cannot hold; TRY_CAST of its parts gives NULL"
_OF_VALUES = {
    "DIVIDE_BY_ZERO": _BY_ZERO,
    "REMAINDER_BY_ZERO": _BY_ZERO,
    "CAST_INVALID_INPUT": "a CAST of a text that is no value of its type; TRY_CAST gives NULL",
    "ARITHMETIC_OVERFLOW": _TOO_LARGE,
    "NUMERIC_VALUE_OUT_OF_RANGE": _TOO_LARGE,
    "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION": _TOO_LARGE,
    "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION": _TOO_LARGE,
    "DATETIME_OVERFLOW": _TOO_LARGE,
    "NULL_MAP_KEY": "a map with a NULL among its keys, which Spark does not have; filter it",
    "DUPLICATED_MAP_KEY": "a map with a key twice; filter one of them",
}
"""Spark's error conditions of expressions for the values of a row."""
_WRAPPERS = {
    "Error",
    "ExecutionException",
    "ForeachBatchUserFuncException",
    "Py4JException",
    "Py4JJavaError",
    "PYTHON_EXCEPTION",
    "PythonException",
    "SparkException",
    "StreamingQueryException",
}
_SENT = (
    "Some of its records may be in the topic; the next run sends them again with at-least-once, and not twice with "
    "exactly-once"
)
_SHOWN = 4
_FULL_BELOW_BYTES = 4 << 20


@contextmanager
def explain_errors(
    spark: SparkSession, definition: Definition, doing: str, *, sends: bool = False
) -> Iterator[None]:
    """Raise `explained_error` for errors of Spark, Java and the file system inside the block; others pass unchanged.

    Raises TableError, with the table, for a row that a format cannot write.
    """
    try:
        yield
    except UnwritableRowError as row:
        raise _unwritable(definition, doing, str(row)) from None
    except Exception as failure:
        if not is_engine_error(failure):
            raise
        raise explained_error(spark, failure, definition, doing, sends=sends) from failure


def raised_reason(failure: BaseException) -> str | None:
    """Return the text of a raise_error in an error of Spark's, which only the bridge's own SQL contains; else None."""
    raised = _RAISED.search(str(failure))
    return raised and raised[1]


def data_reason(failure: BaseException) -> str | None:
    """Return why a query failed for the values of a row, where that is so, with the way out; None for other errors.

    Of a query of the user, whose rows Flink would fail for, too. The message has the part of the query, and no values.
    """
    if raised := raised_reason(failure):
        return raised
    reason = next((_OF_VALUES[name] for name in error_names(failure) if name in _OF_VALUES), None)
    found = _PART.search(str(failure))
    if reason is None or found is None:
        return reason
    return f"{reason} (in {found[1][len(found[2]) :][: len(found[3])]})"


def is_engine_error(failure: BaseException) -> bool:
    """True for errors of Spark, Java and delta-rs, and for a full disk; False when the JVM itself has ended."""
    full = isinstance(failure, OSError) and failure.errno in (errno.ENOSPC, errno.EDQUOT)
    rust = type(failure).__module__ in _RUST
    return full or rust or isinstance(failure, ENGINE_ERRORS)


def is_out_of_memory_or_space(text: str) -> bool:
    """True if the text of an exception contains a sign of exhausted memory or disk space."""
    return any(sign in text for sign in (*_MEMORY, *_NO_SPACE))


def explained_error(
    spark: SparkSession, failure: BaseException, definition: Definition, doing: str, *, sends: bool = False
) -> BridgeError:
    """Return an error that says why `doing` (the beginning of a sentence) failed, and the way out where it is known.

    `sends`: tasks send records meanwhile, some of which may have arrived.
    """
    if raised := raised_reason(failure):
        return _unwritable(definition, doing, raised)
    text = f"{type(failure).__name__} {failure}"
    what = f"{definition.name!r}: {doing} failed"
    if isinstance(failure, OSError) or any(sign in text for sign in _NO_SPACE):
        places = _full_places(spark, definition)
        where = f": {', '.join(places)}" if places else " of a disk that it writes to"
        return BridgeError(
            f"{what}, as there is no space left on the device{where}. All commits are complete; free some space, "
            "then start it again: it continues there"
        )
    reasons = f"{what}: {', '.join(_causes(failure, text))}"
    log = f"Spark's log has the details ({log_file()})"
    if any(sign in text for sign in _MEMORY):
        return BridgeError(
            f"{reasons}. Make batches smaller (`run: {{max-offsets-per-batch: 100000}}`) or give Spark more "
            f"memory (spark.driver.memory, spark.executor.memory), then start it again. {log}"
        )
    if _OF_USER.search(text) and (called := _own_functions(definition)):
        return TableError(
            f"{reasons}, raised by a function of your own: {called}. Nothing of it is committed. Such an error is no "
            f"bad record: let the function return NULL for a value that it does not take. {log}"
        )
    left = _SENT if sends else "Nothing of it is committed"
    return BridgeError(
        f"{reasons}. {left}. Start it again: it begins with the same offsets or versions; if that fails, too, find the "
        f"cause with smaller batches (`run.max-offsets-per-batch`). {log}"
    )


def _own_functions(definition: Definition) -> str:
    columns = [c for c in definition.topic.schema.computed if c.own_functions]
    return ", ".join(
        f"{' and '.join(c.own_functions)} in computed column {c.name!r}, {c.expression}" for c in columns
    )


def _unwritable(definition: Definition, doing: str, reason: str) -> TableError:
    return TableError(f"{definition.name!r}: {doing} failed, table {definition.delta}: {reason}")


def offsets_between(start: Offsets, end: Offsets) -> str:
    """List the offsets from `start` to `end` (exclusive) by partition; of many partitions the first four."""
    before = start.by_partition
    parts = [
        f"{t}-{p} offsets {before.get((t, p), 0)} to {o - 1}" for t, p, o in end if o > before.get((t, p), 0)
    ]
    more = f" and {len(parts) - _SHOWN} more partitions" if len(parts) > _SHOWN else ""
    return ", ".join(parts[:_SHOWN]) + more


def _causes(failure: BaseException, text: str) -> list[str]:
    classes = [java or python for java, python in _CLASS.findall(text)]
    candidates = dict.fromkeys([*sorted(error_names(failure)), *classes])
    causes = [name for name in candidates if name not in _WRAPPERS]
    if _CRASHED in text:
        causes.insert(0, f"a {_CRASHED}")
    return causes[:_SHOWN] or [type(failure).__name__]


def _full_places(spark: SparkSession, definition: Definition) -> list[str]:
    """The local locations of the run that have no space left."""
    places = {
        "delta.path": definition.delta.path,
        "run.checkpoint": definition.run.checkpoint,
        "spark.local.dir": backend_of(spark).setting("spark.local.dir") or "/tmp",
    }
    return [f"{name} {path}" for name, path in places.items() if path and _is_full(path)]


def _is_full(path: str) -> bool:
    folder = Path(path.removeprefix("file:"))
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        space = os.statvfs(folder)
    except OSError:
        return False
    return space.f_bavail * space.f_frsize < _FULL_BELOW_BYTES
