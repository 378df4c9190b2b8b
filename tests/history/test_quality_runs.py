"""Results of checks are read from their table, without Spark."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from bridge.errors import TableError
from bridge.history.quality_runs import QualityRun, quality_runs
from bridge.ways import NotThisWay
from tests.pages.files import pipeline

START = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
MS = int(START.timestamp() * 1000)
SUITE = '{"name": "orders", "expectations": []}'


def quality(folder: Path, results: str = "path: results") -> str:
    (folder / "suite.json").write_text(SUITE)
    return f"quality: {{suite: suite.json, results: {{{results}}}}}\n"


def test_what_runs_did_not_meet(tmp_path: Path) -> None:
    definition = pipeline(tmp_path, sections=quality(tmp_path))
    late = START + timedelta(hours=1)
    rows = [
        ("b", "orders", late, "critical", False),
        ("b", "orders", late, "critical", True),
        ("b", "orders", late, "info", False),
        ("a", "orders", START, "warning", False),
        ("of another", "customers", START, "critical", False),
        ("before", "orders", START - timedelta(hours=1), "critical", False),
    ]
    names = ("run_id", "pipeline", "started", "severity", "success")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    write_deltalake(str(tmp_path / "results"), pa.table(columns))
    assert quality_runs(definition, MS) == [
        QualityRun(MS, warning=1, expectations=1),
        QualityRun(MS + 3_600_000, critical=1, info=1, expectations=3),
    ]


def test_there_may_be_none(tmp_path: Path) -> None:
    assert quality_runs(pipeline(tmp_path), 0) is None
    assert quality_runs(pipeline(tmp_path, sections=quality(tmp_path)), 0) is None


def test_why_they_are_not_known(tmp_path: Path) -> None:
    by_name = pipeline(tmp_path, sections=quality(tmp_path, "table: a.b.c"))
    with pytest.raises(NotThisWay, match="a table of a catalog, which only Spark finds"):
        quality_runs(by_name, 0)
    definition = pipeline(tmp_path, sections=quality(tmp_path))
    write_deltalake(str(tmp_path / "results"), pa.table({"another": [1]}))
    with pytest.raises(TableError, match=r"results cannot be read \("):
        quality_runs(definition, 0)
