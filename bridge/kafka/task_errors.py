"""Errors of tasks, brought home from executors whole: their class, their message and their fields.

Of what a Python worker raises the driver gets a text: Spark's words, a trace, and whatever the exception says. One line
in it is ours: a mark that is drawn for this one job, so that nothing else can know it, and behind it JSON, which has no
line breaks. What a record, a user's class or a library says can thus not pass for an error of the bridge.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from pyspark import cloudpickle

from bridge import errors
from bridge.errors import BridgeError, KafkaError

__all__ = ["TaskErrors", "error_as_json"]

Run: TypeAlias = Callable[[Iterable[Any]], Iterable[Any]]
_PACKAGES = {"bridge": "changelog-bridge", "confluent_kafka": "confluent-kafka"}
"""What is to be installed for a module, where that is not its own name."""


class TaskErrors:
    """One job's tasks, and what they raise."""

    def __init__(self) -> None:
        self._mark = f"bridge-error/1 {secrets.token_hex(16)} "

    def task(self, run: Run) -> Run:
        """`run` for mapInArrow; what it raises of ours, and a module that it lacks, `error` finds again.

        It travels as code, with `run` as bytes in it: so it works where neither the bridge nor what the bridge needs
        can be imported, and says so.
        """
        mark, pickled = self._mark, cloudpickle.dumps(run)  # type: ignore[no-untyped-call]

        def guarded(batches: Any) -> Any:
            import json
            import pickle

            try:
                yield from pickle.loads(pickled)(batches)
            except ImportError as missing:
                told = {"module": missing.name, "why": str(missing)}
                raise RuntimeError(mark + json.dumps(told)) from missing
            except Exception as failed:
                from bridge.kafka.task_errors import error_as_json

                line = error_as_json(failed)
                if line is None:
                    raise
                raise RuntimeError(mark + line) from failed

        return guarded

    def error(self, failure: BaseException) -> BridgeError | None:
        """The bridge's error in what Spark raised for a task of this job; None where there is none. Where an executor
        lacks a module, it is a KafkaError that names the package and the way out."""
        lines = re.findall(rf"{self._mark}(\{{.*\}})\s*$", str(failure), re.MULTILINE)
        if not lines:
            return None
        told = json.loads(lines[-1])
        return _missing(**told) if "module" in told else _restored(**told)


def error_as_json(failed: BaseException) -> str | None:
    """An error of the bridge as one line of JSON in ASCII; None for every other exception. A subclass that is not of
    `bridge.errors` is carried as the class that is."""
    for kind in type(failed).__mro__:
        if kind.__module__ == errors.__name__:
            told = {"kind": kind.__name__, "args": failed.args, "fields": vars(failed)}
            return json.dumps(told, default=str)
    return None


def _restored(kind: str, args: list[Any], fields: dict[str, Any]) -> BridgeError:
    found = getattr(errors, kind)
    made: BridgeError = found.__new__(found, *args)  # not by __init__, which may not know what a subclass had
    vars(made).update(fields)
    return made


def _missing(module: str | None, why: str) -> KafkaError:
    name = (module or "").partition(".")[0]
    package = _PACKAGES.get(name, name)
    if package and why.startswith("No module named"):
        what = f"{package} is not installed on the executors ({why})"
    else:
        what = f"{package or 'a package'} cannot be imported on the executors ({why})"
    return KafkaError(
        f"{what}: install {package or 'it'}, in the driver's version, where Spark's executors run their Python "
        "(spark.pyspark.python), or ship an environment that has it (--archives, with PYSPARK_PYTHON in it)"
    )
