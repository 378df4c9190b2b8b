"""The site is built without a warning, and its pages load nothing from the network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}
"""Elements that make a browser fetch something, and the attribute that says what. Links are not among them."""


class Loaded(HTMLParser):
    """Collects what a page makes a browser fetch, and how deep its tables are nested."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.classes: set[str] = set()
        self.depth = self.deepest = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.classes |= set((given.get("class") or "").split())
        if address := given.get(LOADS.get(tag, "")):
            self.addresses.append(address)
        self.depth += tag == "table"
        self.deepest = max(self.deepest, self.depth)

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == "table"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def pages(site: Path) -> dict[str, Loaded]:
    return {str(path.relative_to(site)): Loaded(path.read_text("utf-8")) for path in site.rglob("*.html")}


def test_every_page_is_built(site: Path) -> None:
    written = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")}
    assert written - {"adr/000-template.html"} == set(pages(site)) - {"404.html"}
    assert not (site / "hooks.py").exists()
    assert not (site / "reliability.jsonl").exists()


def test_commits_since_a_measurement_are_counted(site: Path) -> None:
    """Where the site is built beside a repository; elsewhere the page keeps the command."""
    for page in ("performance-sql", "reliability", "sizing"):
        text = (site / f"{page}.html").read_text("utf-8")
        counted = re.search(r"since(</td>\n?<td>|: )\d+(</td>|\.)", text)
        assert bool(counted) is (ROOT / ".git").exists(), page
        assert ("git rev-list" in text) is not bool(counted), page


def test_no_page_loads_from_the_network(site: Path) -> None:
    for name, page in pages(site).items():
        outside = [address for address in page.addresses if re.match(r"(\w+:)?//", address)]
        assert outside == [], name
        assert page.addresses, name


def test_what_a_page_loads_is_there(site: Path) -> None:
    for name, page in pages(site).items():
        if name == "404.html":  # it may be shown for any address, so its own begin with a slash
            continue
        for address in page.addresses:
            assert (site / name).parent.joinpath(address.partition("#")[0]).resolve().is_file(), (
                name,
                address,
            )


def test_no_style_loads_from_the_network(site: Path) -> None:
    for path in site.rglob("*.css"):
        text = path.read_text("utf-8")
        found = re.findall(r"(?:url\(|@import)\s*['\"]?((?!data:)[^'\")\s]+)", text)
        assert [address for address in found if "//" in address] == [], path.name


def test_nothing_makes_the_theme_s_script_fetch_something(site: Path) -> None:
    """It would fetch mermaid for a diagram, and counts of stars for a repository."""
    for name, page in pages(site).items():
        assert not page.classes & {"mermaid", "md-source"}, name


def test_angle_brackets_are_no_tags(site: Path) -> None:
    assert "List&lt;String&gt;" in (site / "options.html").read_text("utf-8")
    assert {name: page.deepest for name, page in pages(site).items() if page.deepest > 1} == {}


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_search_works_from_a_folder(site: Path) -> None:
    address = f"{(site / 'index.html').as_uri()}?q=quarantine"
    command = [
        str(CHROMIUM),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=10000",
        "--disable-background-networking",
        "--disable-component-update",
    ]
    done = subprocess.run(
        [*command, "--dump-dom", address], capture_output=True, text=True, timeout=120, check=True
    )
    assert re.search(r"\b\d+ matching documents", done.stdout)
    assert 'href="ingest.html' in done.stdout
