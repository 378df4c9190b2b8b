"""`delta.sequence-by` in a table of two pipelines: the greatest sequence of each wins for its own columns, and each
remembers its own deletions. Drawn histories, batch by batch, against a dict for each pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget, Engine, MergeSettings
from bridge.delta.column_owners import open_shared_table
from bridge.delta.delete_memory import DeleteMemory
from bridge.delta.engine_choice import Engines
from bridge.delta.merge_semantics import semantics_of
from bridge.delta.table import Table
from bridge.ingest_progress import IngestProgress
from bridge.offsets import Offsets
from tests.delta.tables import NO_VECTORS, content, frame

KEY = ("history", "k")
LONG = T.LongType()
OWN = {
    "names": (T.StructField("name", T.StringType()), T.StructField("version", LONG)),
    "prices": (T.StructField("price", LONG), T.StructField("day", LONG), T.StructField("n", LONG)),
}
SEQUENCE = {"names": ("version",), "prices": ("day", "n")}
Change = tuple[int, str | None, tuple[int, ...], Any, bool]
"""History, key, sequence, value, and whether it sets the row."""


def shared(spark: SparkSession, folder: Path, name: str, properties: dict[str, str] | None = None) -> Table:
    own = OWN[name]
    key = [T.StructField("history", LONG), T.StructField("k", T.StringType())]
    target = DeltaTarget(
        str(folder),
        properties=properties or {},
        merge_columns=tuple(f.name for f in own),
        sequence_by=SEQUENCE[name],
        owner=name,
    )
    return open_shared_table(spark, target, [*key, *own], pipeline=name, key=KEY)


def newest(changes: Sequence[Change]) -> dict[tuple[Any, ...], Change]:
    """The change of each key that counts: of equal sequences the later one."""
    found: dict[tuple[Any, ...], Change] = {}
    for change in changes:
        known = found.get(change[:2])
        if known is None or change[2] >= known[2]:
            found[change[:2]] = change
    return found


def wide(done: dict[str, list[Change]]) -> set[tuple[Any, ...]]:
    """The oracle: the full join of what each pipeline has."""
    rows: dict[tuple[Any, ...], dict[str, tuple[Any, ...]]] = {}
    for name, changes in done.items():
        for key, (_, _, sequence, value, sets) in newest(changes).items():
            if sets:
                rows.setdefault(key, {})[name] = (value, *sequence)
    return {
        (*key, *row.get("names", (None,) * 2), *row.get("prices", (None,) * 3)) for key, row in rows.items()
    }


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[str, Engine, list[Change]]]:
    """Batches of the two pipelines in any order, each with several changes of a key in any order of sequences."""
    if not draw(st.integers(0, 99)):
        return []
    made = []
    for name in draw(st.permutations([name for name in OWN for _ in range(3)])):
        numbers = st.tuples(*(st.integers(0, 3) for _ in SEQUENCE[name]))
        value = st.sampled_from([None, "", "a"]) if name == "names" else st.sampled_from([None, 0, 1])
        change = st.tuples(
            st.integers(0, 9), st.sampled_from([None, "a", "b"]), numbers, value, st.integers(0, 2).map(bool)
        )
        engine = draw(st.sampled_from([Engine.DRIVER, Engine.SPARK]))
        made.append((name, engine, draw(st.lists(change, min_size=10, max_size=30))))
    return made


def merge(table: Table, name: str, engine: Engine, changes: Sequence[Change], batch: int) -> None:
    """As a run does that knows nothing but the table."""
    last = newest(changes).values()
    rows = [
        ("+U" if sets else "-D", *key, value if sets else None, *sequence)
        for *key, sequence, value, sets in last
    ]
    persisted = frame(table, rows).persist()
    progress = IngestProgress(name, "run", batch, Offsets({("t", 0): batch}))
    engines = Engines(MergeSettings(engine), semantics_of(table.target))
    try:
        engines.merge(table, persisted, key=KEY, adds=sum(c[-1] for c in last), progress=progress)
    finally:
        persisted.unpersist()


@pytest.mark.parametrize(
    ("properties", "examples"),
    [
        pytest.param({}, 1, id="deletion vectors", marks=pytest.mark.slow),
        pytest.param(NO_VECTORS, 2, id="rewritten files", marks=pytest.mark.slow),
        pytest.param({}, 6, id="many", marks=pytest.mark.slow),
    ],
)
def test_the_greatest_sequence_of_each_pipeline_counts(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, properties: dict[str, str], examples: int
) -> None:
    @settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
    )
    @given(batches())
    def run(history: list[tuple[str, Engine, list[Change]]]) -> None:
        folder = tmp_path_factory.mktemp("lake") / "t"
        tables = {name: shared(spark, folder, name, properties) for name in OWN}
        done: dict[str, list[Change]] = {name: [] for name in OWN}
        columns = [*KEY, *(f.name for own in OWN.values() for f in own)]
        for number, (name, engine, changes) in enumerate(history):
            merge(tables[name], name, engine, changes, number)
            done[name] += changes
            rows = [tuple(row) for row in tables[name].delta().toDF().select(*columns).collect()]
            assert len(rows) == len(set(rows)) and set(rows) == wide(done)

    run()


@pytest.mark.slow
def test_a_pipeline_forgets_only_its_own_deletions(spark: SparkSession, lake: Path) -> None:
    names, prices = (shared(spark, lake / "t", name) for name in OWN)
    merge(names, "names", Engine.DRIVER, [(1, "a", (5,), None, False)], 0)
    merge(prices, "prices", Engine.DRIVER, [(1, "a", (5, 5), None, False), (2, "a", (5, 5), None, False)], 0)
    memories = [DeleteMemory.open(table, KEY) for table in (names, prices)]
    assert [len(content(memory.stored)) for memory in memories] == [1, 2]
    assert [list(memory.others()) for memory in memories] == [[], []]
    assert names.is_empty()
