"""The report in a browser: no requests, no errors, no horizontal scrolling, and accessible to screen readers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.quality.report import html, write
from tests.quality.browser import Browser, executable
from tests.quality.verdicts import BROKEN, HISTORY, NOW

PROGRAM = executable()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on the PATH; CHROMIUM may name one")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    with Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> str:
    file = write(html(BROKEN, HISTORY, NOW), tmp_path / "report.html", "the quality report")
    browser.show(1200, "light")
    browser.open(file.as_uri())
    return file.as_uri()


def test_no_requests_and_no_errors(browser: Browser, page: str) -> None:
    assert [sent["request"]["url"] for sent in browser.events_of("Network.requestWillBeSent")] == [page]
    assert browser.events_of("Runtime.exceptionThrown") == []
    assert [e for e in browser.events_of("Log.entryAdded") if e["entry"]["level"] == "error"] == []
    assert [
        c for c in browser.events_of("Runtime.consoleAPICalled") if c["type"] in ("error", "warning")
    ] == []


def test_a_page_with_requests_and_errors_is_detected(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        "<!DOCTYPE html><img src='http://127.0.0.1:9/a.png'><script>console.error('no'); nothing()</script>"
    )
    browser.open((tmp_path / "page.html").as_uri())
    assert len(browser.events_of("Network.requestWillBeSent")) == 2
    assert browser.events_of("Runtime.exceptionThrown") and browser.events_of("Runtime.consoleAPICalled")
    assert [e for e in browser.events_of("Log.entryAdded") if e["entry"]["level"] == "error"]


@pytest.mark.usefixtures("page")
def test_it_fits_every_window_in_both_schemes(browser: Browser) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        for width in (320, 390, 768, 1200):
            browser.show(width, scheme)
            wide = browser.value(
                "[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, .hidden, thead, svg')"
                " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"
            )
            assert wide == [], (scheme, width)
            assert browser.value("document.documentElement.scrollWidth") <= width
        grounds.add(browser.value("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


@pytest.mark.usefixtures("page")
def test_screen_readers_get_headings_and_regions(browser: Browser) -> None:
    nodes = browser.ask("Accessibility.getFullAXTree")["nodes"]
    heard = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]]
    roles = {role for role, _ in heard}
    assert {"banner", "main", "contentinfo", "navigation", "table", "columnheader", "rowheader"} <= roles
    headings = [name for role, name in heard if role == "heading"]
    assert headings[0] == "Failed: 2 of 3 expectations are not met"
    sections = ["Failed expectations", "Trends", "All expectations", "Lineage"]
    assert [name for name in headings if name in sections] == sections
    assert ("region", "Failed expectations") in heard
    pictures = [name for role, name in heard if role in ("image", "img")]
    assert any(name.startswith("Rows in the table Rows in the table over 6 runs") for name in pictures)
    assert "Met in 2 of 5 earlier runs" in pictures
    assert all(pictures)


@pytest.mark.usefixtures("page")
def test_the_first_tab_shows_the_skip_link(browser: Browser) -> None:
    for kind in ("keyDown", "keyUp"):
        browser.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
    focused: dict[str, Any] = browser.value(
        "({text: document.activeElement.textContent, href: document.activeElement.getAttribute('href'),"
        " top: document.activeElement.getBoundingClientRect().top})"
    )
    assert (focused["text"], focused["href"]) == ("Skip to the report", "#main")
    assert focused["top"] >= 0
