"""The charts of a history add up to what the commits have."""

from __future__ import annotations

from pathlib import Path

from bridge.history.commits import Commit, CommitLog
from bridge.history.quality_runs import QualityRun
from bridge.lake.reached_store import reached_store
from bridge.pages.history_page import TimeAxis, history_charts, median
from bridge.quality.charts import Chart
from tests.history.logs import START_MS, Log

MINUTE = 60_000


def commits_of(folder: Path) -> list[Commit]:
    log = CommitLog(reached_store(str(folder)), 100, with_files=True)
    log.follow()
    return list(log.commits)


def drawn(commits: list[Commit], runs: list[QualityRun] | None = None) -> dict[str, Chart]:
    axis = TimeAxis(START_MS // 1000, 60, len(commits))
    return {chart.id: chart for chart in history_charts(commits, runs, axis)}


def test_they_add_up(tmp_path: Path) -> None:
    log = Log.at(tmp_path)
    log.commit("CREATE TABLE")
    log.batch(600, counts=(500, 20, 3), files=(20_000,))
    log.batch(900, counts=(100, 7, 1), files=(4_000, 1_000))
    log.commit("UPDATE", operationMetrics={"numUpdatedRows": "5"})
    charts = drawn(commits_of(tmp_path))
    assert list(charts) == ["throughput", "changes", "freshness", "commits", "size"]
    assert charts["throughput"].now == "900"
    assert charts["throughput"].note == "records per minute, mean of each minute"
    assert [bar.height for bar in charts["throughput"].bars] == [100, 50]
    assert charts["changes"].now == "636"
    assert charts["changes"].legend == (
        ("inserted", "inserted", "600"),
        ("updated", "updated", "32"),
        ("deleted", "deleted", "4"),
    )
    assert [value for _, _, value in charts["commits"].legend] == ["2", "1", "1"]
    assert (charts["size"].now, charts["size"].note) == (
        "25.0 kB",
        "size of data files added, kB per minute",
    )


def test_freshness_is_drawn_where_commits_know_it(tmp_path: Path) -> None:
    log = Log.at(tmp_path)
    log.batch(1)
    assert not drawn(commits_of(tmp_path))["freshness"].known
    for number, seconds in enumerate((4, 40, 5), 1):
        log.batch(1, newest=START_MS + number * MINUTE - 1000 * seconds)
    chart = drawn(commits_of(tmp_path))["freshness"]
    assert (chart.known, chart.now) == (True, "5 seconds")
    assert chart.note == "median, from newest record to commit; bars: the worst of each minute, in seconds"
    assert chart.zeros == ()
    assert [tick.label for tick in chart.ticks] == ["0", "20", "40"]


def test_checks_are_drawn_where_there_are_some(tmp_path: Path) -> None:
    Log.at(tmp_path).batch(1)
    runs = [QualityRun(START_MS, critical=2, info=1, expectations=8), QualityRun(START_MS, expectations=8)]
    chart = drawn(commits_of(tmp_path), runs)["quality"]
    assert chart.now == "3"
    assert chart.note == "in 2 checks of 16 expectations, per minute"
    assert [value for _, _, value in chart.legend] == ["2", "0", "1"]


def test_median() -> None:
    assert median([5, 1, 9]) == 5
    assert median([4, 1]) == 1
