"""Groups of the rows that a Delta table got, computed by the driver and by Spark; nothing is committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from bridge.delta.changes_in_driver import collect_changes
from bridge.pipelines.scripts import driver_groups as driver
from bridge.pipelines.scripts.driver_groups import driver_groups
from bridge.pipelines.scripts.refresh import Method, refreshed
from bridge.pipelines.scripts.result import Result, open_result
from bridge.pipelines.scripts.source_tables import SourceRange, open_sources
from bridge.pipelines.scripts.state import ScriptState
from bridge.sql import Script, load_script
from tests.delta.tables import create_fed
from tests.refusals import optional


def insert(
    types: Mapping[str, str], name: str, key: Sequence[str], columns: Sequence[tuple[str, str, str]]
) -> tuple[str, str]:
    """A sink and its INSERT; `types` are those of the key, `columns` are a name, a type and a function."""
    typed = [*((c, types[c], c) for c in key), *columns]
    declared = ", ".join(f"{c} {type}" for c, type, _ in typed)
    sink = f"CREATE TABLE {name} ({declared}, PRIMARY KEY ({', '.join(key)}) NOT ENFORCED) WITH ('connector' = 'print')"
    query = f"SELECT {', '.join(f for *_, f in typed)} FROM e GROUP BY {', '.join(key)}"
    return sink, f"INSERT INTO {name} {query}"


def counts(columns: list[str], of: str = "COUNT({})") -> list[tuple[str, str, str]]:
    return [(f"n{len(of)}_{c}", "BIGINT", of.format(c)) for c in columns]


DISTINCT = "COUNT(DISTINCT {})"


def load(lake: Path, inserts: Mapping[str, tuple[str, str]], columns: Mapping[str, str]) -> Script:
    """A script of INSERTs from `e`, which has these columns in Flink's words."""
    declared = ", ".join(f"{name} {type}" for name, type in columns.items())
    parts = [f"CREATE TABLE e ({declared}) WITH ('connector' = 'delta', 'path' = 'e')"]
    text = ";\n".join(
        [*parts, *(sink for sink, _ in inserts.values()), *(query for _, query in inserts.values())]
    )
    return load_script(lake / "groups.sql", text=f"{text};")


def create(spark: SparkSession, lake: Path, columns: str) -> None:
    """The source `e`, with these columns in Spark's words."""
    create_fed(spark, lake / "e", columns, more=", delta.feature.timestampNtz = 'supported'")


def opened(
    spark: SparkSession, script: Script, name: str, version: int | None = None
) -> tuple[Result, dict[str, SourceRange]]:
    """The result of an INSERT, and what its source got since, or in that version."""
    state = ScriptState(script)
    plan = next(plan for plan in script.inserts if plan.name == name)
    result = open_result(spark, state, plan)
    assert result.progress is not None
    ranges = open_sources(spark, state, plan).ranges(result.progress.offsets)
    if version is not None:
        ranges = {name: replace(source, first=version, last=version) for name, source in ranges.items()}
    return result, ranges


def in_driver(spark: SparkSession, script: Script, name: str, version: int | None = None) -> pa.Table | None:
    """The changes of an INSERT that the driver computes; none is committed."""
    result, ranges = opened(spark, script, name, version)
    return optional(driver_groups)(result.plan, result.table, ranges)


def by_spark(
    spark: SparkSession, script: Script, name: str, patch: pytest.MonkeyPatch, version: int | None = None
) -> pa.Table:
    """The same that Spark computes."""
    result, ranges = opened(spark, script, name, version)
    with patch.context() as patched:
        patched.setattr(driver, "MOST_BYTES", -1)
        found = refreshed(spark, result.plan, result.table, ranges, Method.ADDED_GROUPS)
    assert isinstance(found.changes, DataFrame) and found.is_few
    return collect_changes(result.table.on(found.changes.sparkSession), found.changes)


def same(found: pa.Table | None, expected: pa.Table) -> None:
    """Compare the rows of both ways."""
    assert found is not None and found.column_names == expected.column_names
    rows, others = (Counter(map(repr, t.cast(expected.schema).to_pylist())) for t in (found, expected))
    assert rows == others
