"""Transfers errors of tasks from executors to the driver: class, message and fields.

Spark gives the driver one text for an exception of a Python worker: its own message, a stack trace and the exception's
message. The bridge adds a line of a random mark, drawn for each job, followed by JSON, which has no line breaks. Text
of a record, a user's class or a library cannot contain the mark, so it is never mistaken for an error of the bridge.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias
from zipimport import zipimporter

from pyspark import cloudpickle

from bridge import errors
from bridge.errors import BridgeError, MissingPackageError
from bridge.kafka.worker_check import WorkerCheck

_OF_SPARK = re.compile(r"pyspark\.zip|py4j-[\w.]+-src\.zip|spark-core_[\w.-]+\.jar")
"""Files that stay as they are while Spark runs. Others, such as `--py-files`, are looked at as ever."""


def forget_finders_of_spark() -> None:
    """Leave the finders of Spark's zip files out of the cache of the path, until the next import. For the end of a
    task; what is imported stays.

    Before each task a worker calls `importlib.invalidate_caches`, for files that `SparkContext.addPyFile` may have
    added. Since Python 3.10 that reads the directory of each zip file on the path again, in Python, and once more for
    each package in it: of Spark's own for some 80 ms, as long as a small task takes itself. A finder that is left out
    is made anew when something is imported, from the directories that Python has read already.
    """
    for place, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and _OF_SPARK.fullmatch(os.path.basename(finder.archive)):
            del sys.path_importer_cache[place]


Run: TypeAlias = Callable[[Iterable[Any]], Iterator[Any]]
_PACKAGES = {"bridge": "changelog-bridge", "confluent_kafka": "confluent-kafka"}
"""The package of a module, where it has another name."""
_NOT_STARTED = re.compile(
    r"PYTHON_VERSION_MISMATCH\] Python in worker has different version[^,\n]{0,40}"
    r"|(?<=java\.io\.IOException: )Cannot run program \"[^\"\n]*\"|Python worker failed to connect back"
)
"""What Spark says of a Python that does not start; the rest of the text may quote a record."""
_HOST = re.compile(r"\(([\w.:\[\]-]+) executor [\w-]+\)")


class TaskErrors:
    """Encodes the errors of one job's tasks, and decodes them in the driver."""

    def __init__(self, check: WorkerCheck | None = None) -> None:
        self._check = check
        self._mark = f"bridge-error/1 {secrets.token_hex(16)} "

    def task(self, run: Run) -> Run:
        """Wrap `run` for mapInArrow, so that `error` finds its errors of the bridge and missing modules.

        The wrapper contains `run` as bytes. So it also runs, and reports the missing module, on executors where the
        bridge or one of its dependencies cannot be imported. A worker process passes `check` before its first task.
        """
        mark, pickled = self._mark, cloudpickle.dumps((self._check, run))  # type: ignore[no-untyped-call]

        def guarded(batches: Any) -> Any:
            import json
            import pickle
            import socket
            import sys

            try:
                check, run = pickle.loads(pickled)
                if check is not None:
                    check.once()
                yield from run(batches)

                from bridge.kafka.task_errors import forget_finders_of_spark

                forget_finders_of_spark()
            except ImportError as missing:
                where = f"host {socket.gethostname()}, {sys.executable}"
                fields = {"module": missing.name, "why": str(missing), "where": where}
                raise RuntimeError(mark + json.dumps(fields)) from missing
            except Exception as failed:
                from bridge.kafka.task_errors import error_as_json

                line = error_as_json(failed)
                if line is None:
                    raise
                raise RuntimeError(mark + line) from failed

        return guarded

    def error(self, failure: BaseException) -> BridgeError | None:
        """Return the bridge's error in Spark's `failure` of a task of this job; None where there is none.

        For a module that an executor lacks, and a Python that does not start there, it is a MissingPackageError that
        names what is missing and the way out.
        """
        lines = re.findall(rf"{self._mark}(\{{.*\}})\s*$", str(failure), re.MULTILINE)
        if not lines:
            text = str(failure)
            return no_python(text, type(failure).__name__) if _NOT_STARTED.search(text) else None
        fields = json.loads(lines[-1])
        return missing_module(**fields) if "module" in fields else _restore(**fields)


def error_as_json(failed: BaseException) -> str | None:
    """Return an error of the bridge as one line of JSON in ASCII; None for every other exception.

    An instance of a subclass outside of `bridge.errors` becomes one of its base class in `bridge.errors`.
    """
    for kind in type(failed).__mro__:
        if kind.__module__ == errors.__name__:
            encoded = {"kind": kind.__name__, "args": failed.args, "fields": vars(failed)}
            return json.dumps(encoded, default=str)
    return None


def _restore(kind: str, args: list[Any], fields: dict[str, Any]) -> BridgeError:
    error_class = getattr(errors, kind)
    # Not by __init__, which may have other parameters than the subclass that was encoded.
    error: BridgeError = error_class.__new__(error_class, *args)
    vars(error).update(fields)
    return error


def missing_module(module: str | None, why: str, where: str = "") -> MissingPackageError:
    """Return the error of a module that Spark's executors lack or cannot load. `where`: the host and its Python."""
    name = (module or "").partition(".")[0]
    package = _PACKAGES.get(name, name)
    reason = f"{why}; {where}" if where else why
    if package and why.startswith("No module named"):
        what = f"{package} is not installed on the executors ({reason})"
    else:
        what = f"{package or 'a package'} cannot be imported on the executors ({reason})"
    return MissingPackageError(
        f"{what}: install {package or 'it'}, in the driver's version, where Spark's executors run their Python "
        "(spark.pyspark.python), or ship an environment that has it: `make pack` makes one for --archives"
    )


def no_python(text: str, kind: str) -> MissingPackageError:
    """Return the error of executors that cannot run the driver's Python; `text` and `kind` are of Spark's error."""
    why = found[0] if (found := _NOT_STARTED.search(text)) else kind
    where = f" on host {host[1]}" if (host := _HOST.search(text)) else ""
    return MissingPackageError(
        f"Spark's executors cannot run the driver's Python{where} ({why}): let PYSPARK_PYTHON or spark.pyspark.python "
        "name a Python of the driver's minor version there, or ship one with --archives (`make pack`)"
    )
