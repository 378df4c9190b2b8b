"""The rows of a range are those of its commits, read from their files where these only add rows; gaps are errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.table import Table, create_table
from bridge.delta.timeline import history_fields
from bridge.errors import GapError, TableError
from bridge.history_columns import History
from bridge.pipelines.scripts import source_tables
from bridge.pipelines.scripts.source_tables import SourceRange
from bridge.pipelines.scripts.state import ScriptState
from bridge.session import child_session
from bridge.sql import load_script
from bridge.ways import NotThisWay
from tests.delta.tables import append, log_file, made


@pytest.fixture(params=["files", "delta"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def refuse(*_: object) -> DataFrame:
        raise NotThisWay("by Delta")

    if request.param == "delta":
        for name in ("appended_rows", "rows_at"):
            monkeypatch.setattr(source_tables, name, refuse)
    return str(request.param)


def rows(frame: DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(map(tuple, frame.collect()))


def test_rows_of_a_range(spark: SparkSession, lake: Path, way: str) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (1, "a")])
    append(table, [(2, None)])
    table.delta().optimize().executeCompaction()
    append(table, [(3, "c")])
    session = child_session(spark)
    part = SourceRange(table, 2, 4, appends=True)
    before, added = Counter([(1, "a"), (1, "a")]), Counter([(2, None), (3, "c")])
    assert rows(part.rows_before(session)) == before
    assert rows(part.added_rows(session)) == rows(part.changed_rows(session)) == added
    assert rows(part.whole_rows(session)) == rows(part.rows(session)) == before + added
    assert rows(part.newest_times(session, "id").select("newest")) == Counter([(3000,)])
    assert part.added_rows(session).inputFiles() or way == "delta"
    whole, none = SourceRange(table, 0, 4, appends=True), SourceRange(table, 5, 4, appends=True)
    assert rows(whole.added_rows(session)) == before + added and not rows(whole.rows_before(session))
    assert not rows(none.added_rows(session)) and rows(none.rows_before(session)) == before + added


def test_rows_that_a_user_updated(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    append(table, [(2, "b")])
    table.delta().update("id = 1", {"v": "'u'"})
    session = child_session(spark)
    changed = SourceRange(table, 2, 3, appends=False)
    with pytest.raises(TableError, match="rows were updated or deleted in versions 2 to 3"):
        changed.added_rows(session)
    assert rows(changed.changed_rows(session)) == Counter([(2, "b"), (1, "u")])
    assert rows(SourceRange(table, 4, 4, appends=True).rows_before(session)) == Counter([(1, "u"), (2, "b")])


@pytest.mark.slow
def test_a_history_has_the_column_of_its_starts_in_its_key(spark: SparkSession, lake: Path) -> None:
    of_ddl = [T.StructField(name, T.LongType()) for name in ("id", "s")]
    target = DeltaTarget(path=str(lake / "h"), sequence_by=("s",), history=History("f", "t", "c"))
    create_table(spark, target, [*of_ddl, *history_fields(of_ddl, History("f", "t", "c"), "s")], pipeline="p")

    def opened(key: str) -> None:
        columns = f"id BIGINT, s BIGINT, f BIGINT, PRIMARY KEY ({key}) NOT ENFORCED"
        script = load_script(
            str(lake / "script.sql"),
            text=f"CREATE TABLE h ({columns}) WITH ('connector' = 'delta', 'path' = '{lake}/h');\n"
            f"CREATE TABLE o ({columns}) WITH ('connector' = 'print');\n"
            "INSERT INTO o SELECT id, s, f FROM h;",
        )
        source_tables.open_sources(spark, ScriptState(script), script.inserts[0])

    opened("id, f")
    with pytest.raises(TableError, match=r"is a history .* set the PRIMARY KEY to \(id, f\)"):
        opened("id")


def _with_a_cleaned_log(table: Table, folder: Path) -> None:
    for version in range(3):
        log_file(table, version).unlink()


def _without_files(table: Table, folder: Path) -> None:
    for file in folder.glob("*.parquet"):
        file.unlink()


@pytest.mark.parametrize("lose", [_with_a_cleaned_log, _without_files])
def test_what_is_gone_is_a_gap(
    spark: SparkSession, lake: Path, lose: Callable[[Table, Path], None], way: str
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")], properties={"delta.checkpointInterval": "3"})
    append(table, [(2, "b")])
    append(table, [(3, "c")])
    lose(table, lake / "t")
    with pytest.raises(GapError), feed_errors(table, 2, 3):
        SourceRange(table, 2, 3, appends=True).added_rows(child_session(spark)).collect()
    assert change_feed.latest_version(table) == 3
