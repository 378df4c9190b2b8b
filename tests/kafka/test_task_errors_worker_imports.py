"""A worker does not read the directory of Spark's zip files before each task of the bridge."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.kafka.task_errors import TaskErrors, forget_finders_of_spark

pytestmark = pytest.mark.versions


def reads(rows: Any) -> Iterator[tuple[int, int]]:
    """The process, and how often it has read the directory of a zip file since the first call."""
    import zipimport

    list(rows)  # a worker that has read its rows is kept for other tasks
    module: Any = zipimport
    if not hasattr(module, "_counted"):
        right, module._counted = module._read_directory, []

        def noted(archive: str) -> Any:
            module._counted.append(archive)
            return right(archive)

        module._read_directory = noted
    with suppress(ImportError):
        __import__("no_module_of_this_name")  # is looked for everywhere, as optional packages are
    yield os.getpid(), len(module._counted)


def test_tasks_of_a_worker(spark: SparkSession) -> None:
    def played(task: Any) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for _ in range(6):
            ((process, count),) = spark.sparkContext.parallelize([0], 1).mapPartitions(task).collect()
            found.setdefault(process, []).append(count)
        return found

    plain = played(reads)
    if sys.version_info < (3, 13) and spark.version.startswith("4.1"):
        assert any(counts[-1] > counts[0] for counts in plain.values()), "Spark's own tasks do"
    own = played(TaskErrors().task(reads))
    assert any(len(counts) > 2 for counts in own.values())
    for counts in own.values():
        assert counts[1:] == counts[1:2] * (len(counts) - 1), "read once more at most: before the first task"


def test_other_zip_files_are_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(name: str, module: str) -> str:
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            file.writestr(f"{module}.py", "found = True\n")
        return str(tmp_path / name)

    own, spark, py4j, jar = (
        write(name, f"in_{n}")
        for n, name in enumerate(("x.zip", "pyspark.zip", "py4j-0.10-src.zip", "spark-core_2.13-4.1.1.jar"))
    )
    monkeypatch.setattr(sys, "path", [*sys.path, own, spark, py4j, jar])
    for name in ("in_0", "in_1", "in_2", "in_3"):
        __import__(name)
    assert {own, spark, py4j, jar} <= set(sys.path_importer_cache)
    forget_finders_of_spark()
    assert {own, spark, py4j, jar} & set(sys.path_importer_cache) == {own}
    with pytest.raises(ModuleNotFoundError):
        __import__("in_no_zip_file")
    assert __import__("in_1").found and spark in sys.path_importer_cache
    for name in ("in_0", "in_1", "in_2", "in_3"):
        del sys.modules[name]
    assert __import__("in_2").found, "it is found again"
    for name in ("in_2", own, spark, py4j, jar):
        sys.modules.pop(name, None)
        sys.path_importer_cache.pop(name, None)
