"""The history in a browser: no requests, no horizontal scrolling, no labels on each other, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.history.commits import CommitLog
from bridge.history.quality_runs import QualityRun
from bridge.lake.reached_store import reached_store
from bridge.pages.history_page import history_page
from tests.history.logs import START_MS, Log
from tests.pages.files import pipeline
from tests.quality.browser import Browser, executable

PROGRAM = executable()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on the PATH; CHROMIUM may name one")
HOUR = 3_600_000
TOO_WIDE = (
    "[...document.querySelectorAll('main *')].filter(e => !e.closest('.hidden, thead, svg')"
    " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"
)
ON_EACH_OTHER = """[...document.querySelectorAll('.times, .scale')].filter(axis => {
  const at = [...axis.children].map(e => e.getBoundingClientRect()).filter(r => r.width)
  return at.some((a, i) => at.slice(i + 1).some(
    b => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom))
}).map(axis => axis.textContent)"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    with Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as running:
        yield running


def page(folder: Path, commits: int, apart_ms: int) -> str:
    """A page of so many batches, and of a few other commits."""
    log = Log.at(folder / "table")
    for number in range(commits):
        at = START_MS + number * apart_ms
        records, engine = 1_234_567 * number, f"spark ({'a-reason-of-one-long-word' * 4} and {number})"
        log.batch(records, counts=(900_000, 80_000, 7), files=(9_000_000,), timestamp=at, engine=engine)
    if commits:
        log.commit("UPDATE", engineInfo="Databricks-Runtime/16.4.x-scala2.12", timestamp=START_MS)
        log.commit("OPTIMIZE", engineInfo="Apache-Spark/4.1.1 Delta-Lake/4.3.1", timestamp=START_MS)
    read = CommitLog(reached_store(str(folder / "table")), 100, with_files=True)
    read.follow()
    runs = [QualityRun(START_MS, critical=1, warning=2, expectations=8)] if commits else None
    text = history_page(pipeline(folder), read, runs, "no results of checks are stored", 100)
    (folder / "history.html").write_text(text)
    return (folder / "history.html").as_uri()


@pytest.mark.parametrize(
    ("commits", "apart_ms"), [(0, 0), (1, 0), (60, HOUR // 60), (50, HOUR), (50, 40 * HOUR), (30, 600 * HOUR)]
)
def test_it_fits_every_window_in_both_schemes(
    browser: Browser, tmp_path: Path, commits: int, apart_ms: int
) -> None:
    browser.show(1280, "light")
    url = page(tmp_path, commits, apart_ms)
    browser.open(url)
    assert [sent["request"]["url"] for sent in browser.events_of("Network.requestWillBeSent")] == [url]
    grounds = set()
    for scheme in ("light", "dark"):
        for width in (320, 390, 768, 1000, 1280):
            browser.show(width, scheme)
            assert browser.value(TOO_WIDE) == [], width
            assert browser.value("document.documentElement.scrollWidth") <= width
            assert browser.value(ON_EACH_OTHER) == [], width
        grounds.add(browser.value("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_screen_readers_get_headings_and_pictures(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, 3, HOUR))
    nodes = browser.ask("Accessibility.getFullAXTree")["nodes"]
    heard = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]]
    assert {"banner", "main", "navigation", "table", "columnheader", "rowheader"} <= {
        role for role, _ in heard
    }
    headings = [name for role, name in heard if role == "heading"]
    assert {"Over time", "Ways taken", "Commits of other writers", "Last commits"} <= set(headings)
    pictures = [name for role, name in heard if role in ("image", "img")]
    assert len(pictures) >= 5 and all(pictures)
    assert any("Rows changed: 2,940,021 in all; rows per 5 minutes" in name for name in pictures), pictures
