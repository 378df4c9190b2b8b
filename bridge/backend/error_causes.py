"""The exceptions of Java behind an exception of Spark, by whatever way it came to Python."""

from __future__ import annotations

import re
from collections.abc import Iterator

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

ENGINE_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises: of two stages that fail at once py4j raises its own."""

_CLASS = re.compile(r"^(?:Caused by: )?(?:[a-z]\w*\.)+([A-Z][\w$]*)(?:: ([^\n]*))?$", re.MULTILINE)


def causes(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield the simple class name and the message of a Java exception and of each of its causes.

    Delta's exceptions of Python, which it raises since 4.4 or once `delta.exceptions` is imported, have lost Java's and
    have the name of its class. Through Spark Connect the first message begins with the condition in brackets, as
    Spark's own do, and its class is Python's; the causes are known where the server sends its stack trace, which
    Databricks does not. Nothing for an exception that does not come from Spark.
    """
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None:
        yield java.getClass().getSimpleName(), java.getMessage() or ""
        java = java.getCause()
    if type(error).__module__.startswith("delta.exceptions"):
        yield type(error).__name__, str(error)
    if not type(error).__module__.startswith("pyspark.errors.exceptions.connect"):
        return
    condition, text = error.getCondition(), str(error)  # type: ignore[attr-defined]
    yield type(error).__name__, f"[{condition}] {text}" if condition else text
    trace = error.getStackTrace() if hasattr(error, "getStackTrace") else None
    for found in _CLASS.finditer(trace or text):
        yield found[1].rpartition("$")[2], found[2] or ""
