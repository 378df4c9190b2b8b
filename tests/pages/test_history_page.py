"""The page of a table's history: its numbers, what of the history it shows, and that it is offline and well-formed.

A time is divided into parts that begin at round times.

The charts of a history add up to what the commits have.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bridge.history.commits import Commit, CommitLog
from bridge.history.quality_runs import QualityRun
from bridge.lake.reached_store import reached_store
from bridge.pages.history_page import TimeAxis, history_charts, history_page, known_quality, median, utc
from bridge.quality.charts import Chart
from tests.history.logs import START_MS, Log
from tests.pages.files import pipeline

VOID = {"meta", "link", "br", "wbr", "rect", "path", "circle"}


class Page(HTMLParser):
    """The text of each table's rows, and what is not well-formed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.loads: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.wrong += self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.loads += [str(v) for k, v in attributes if k in ("src", "href", "data") and v and v[0] != "#"]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, text: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += text


def shown(
    folder: Path, *, most: int = 100, runs: list[QualityRun] | None = None, name: str = "orders"
) -> str:
    log = CommitLog(reached_store(str(folder / "table")), most, with_files=True)
    log.follow()
    text = history_page(pipeline(folder, name), log, runs, "no results of checks are stored", most)
    page = Page(text)
    assert page.wrong == []
    assert page.loads == []
    assert not re.search(r"https?:|<script|@import|url\(|@font-face", text)
    return text


def rows_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in row] for row in Page(text).rows]


@pytest.fixture
def table(tmp_path: Path) -> Log:
    return Log.at(tmp_path / "table")


def test_all_of_a_history(tmp_path: Path, table: Log) -> None:
    table.commit("CREATE TABLE", engineInfo="changelog-bridge/1.0.0")
    table.batch(1000, 500, counts=(900, 20, 3), files=(20_000,), engine="spark (it has 5,000 bytes)")
    table.batch(1500, 900, counts=(300, 7, 1), files=(4_000, 1_000), engine="spark (it has 70 bytes)")
    table.batch(1501, 900, counts=(1, 0, 0), engine="driver", timestamp=START_MS + 3_720_000)
    table.commit("VACUUM END", engineInfo="Spark")
    table.commit("UPDATE", operationMetrics={"numUpdatedRows": "5"}, engineInfo="Databricks")
    text = shown(tmp_path)
    assert "Versions 0 to 5: 6 commits, all that the table has." in text
    assert "27 Nov 2026, 17:20 UTC to 27 Nov 2026, 18:22 UTC" in text
    assert re.findall(r"<dd>(.*?)</dd>", text) == ["2,401", "1,237", "6", "1 hour"]
    rows = rows_of(text)
    assert ["spark", "it has … bytes", "2", "2,400"] in rows
    assert ["driver", "–", "1", "1"] in rows
    assert ["UPDATE", "Databricks", "1", "5", "27 November 2026, 17:25:00 UTC"] in rows
    assert ["VACUUM END", "Spark", "1", "27 November 2026, 17:24:00 UTC"] in rows
    gap = next(row for row in rows if row[-1] == "2 to 3")
    assert gap[:2] == ["1 hour", "27 November 2026, 17:22:00 UTC"]
    committed = "27 November 2026, 17:22:00 UTC"
    assert ["2", committed, "MERGE", "900", "300", "7", "1", "2", "5.0 kB"] in rows
    assert "Quality: no results of checks are stored" in text


def test_no_table_and_one_commit(tmp_path: Path, table: Log) -> None:
    text = shown(tmp_path)
    assert "There is no table yet, or its log is empty." in text
    assert "Over time" not in text.split("<main")[1]
    table.batch(5, counts=(5, 0, 0))
    text = shown(tmp_path)
    assert "Versions 0 to 0: 1 commit, all that the table has." in text
    assert "There is one commit." in text
    assert "None: no other writer changed rows." in text
    assert "Neither OPTIMIZE nor VACUUM ran." in text


def test_what_of_many_commits_was_read(tmp_path: Path, table: Log) -> None:
    for offset in range(40):
        table.batch(offset)
    assert "Versions 30 to 39: 10 commits. Older ones were not read; --commits reads more." in shown(
        tmp_path, most=10
    )
    assert len([row for row in rows_of(shown(tmp_path)) if "MERGE" in row]) == 30
    for version in range(5):
        (tmp_path / "table" / "_delta_log" / f"{version:020}.json").unlink()
    text = shown(tmp_path)
    assert "Versions 5 to 39: 35 commits. The log does not have older ones any more." in text


def test_text_of_writers_is_escaped(tmp_path: Path, table: Log) -> None:
    table.commit("<b>UPDATE", engineInfo="<script>alert(1)</script>")
    text = shown(tmp_path)
    assert "&lt;b&gt;UPDATE" in text
    assert "&lt;script&gt;" in text


def test_checks(tmp_path: Path, table: Log) -> None:
    table.batch(1)
    assert "Expectations not met" in shown(tmp_path, runs=[QualityRun(START_MS, critical=1, expectations=3)])
    assert "Quality: no check ran in this time" in shown(tmp_path, runs=[])


def test_why_checks_are_not_known(tmp_path: Path, table: Log) -> None:
    (tmp_path / "suite.json").write_text('{"name": "orders", "expectations": []}')
    log = CommitLog(reached_store(str(tmp_path / "table")), 10)
    by_name = "quality: {suite: suite.json, results: {table: a.b.c}}\n"
    told = "quality.results names a table of a catalog, which only Spark finds"
    assert known_quality(pipeline(tmp_path, sections=by_name), log) == (None, told)
    assert known_quality(pipeline(tmp_path), log) == (None, "no results of checks are stored")


NOON = 1_769_860_800_000  # 31 January 2026, 12:00:00 UTC
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("span", "width", "parts", "labels"),
    [
        (0, "1 second", 1, ["12:00:00", "12:00:01"]),
        (25 * MINUTE, "30 seconds", 51, ["12:00:00", "12:06:30", "12:13:00", "12:19:00", "12:25:30"]),
        (50 * MINUTE, "1 minute", 51, ["12:00", "12:13", "12:26", "12:38", "12:51"]),
        (10 * HOUR, "15 minutes", 41, ["12:00", "14:30", "17:00", "19:45", "22:15"]),
        (2 * DAY, "1 hour", 49, ["31 Jan 12:00", "1 Feb 12:00", "2 Feb 13:00"]),
        (30 * DAY, "1 day", 31, ["31 Jan", "8 Feb", "16 Feb", "23 Feb", "3 Mar"]),
        (400 * DAY, "7 days", 58, ["Jan 2026", "May 2026", "Aug 2026", "Dec 2026", "Mar 2027"]),
    ],
)
def test_parts_and_labels(span: int, width: str, parts: int, labels: list[str]) -> None:
    axis = TimeAxis.of(NOON, NOON + span)
    assert (axis.width, axis.parts) == (width, parts)
    assert [label for label, _ in axis.labels()] == labels
    places = [place for _, place in axis.labels()]
    assert (places[0], places[-1], places) == (0, 100, sorted(places))


def test_any_time_has_at_most_sixty_parts() -> None:
    """A writer whose clock is wrong by centuries."""
    axis = TimeAxis.of(0, NOON * 50)
    assert axis.parts == 60
    assert (axis.place(0), axis.place(NOON * 50)) == (0, 59)


def test_each_item_is_in_the_part_of_its_time() -> None:
    axis = TimeAxis(NOON // 1000, 60, 3)
    at = [NOON, NOON + MINUTE - 1, NOON + MINUTE, NOON + 2 * MINUTE, NOON + HOUR]
    assert axis.sums(at, lambda ms: ms, lambda ms: 1) == [2, 1, 2]
    assert (axis.each, TimeAxis(0, 120, 1).each) == ("minute", "2 minutes")


def test_utc() -> None:
    assert utc(NOON).isoformat() == "2026-01-31T12:00:00+00:00"


HISTORY_CHARTS_MINUTE = 60_000


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
        log.batch(1, newest=START_MS + number * HISTORY_CHARTS_MINUTE - 1000 * seconds)
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
