"""The pages hang together: none is too long, links and anchors lead somewhere, the site shows each of them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.docs.pages import BY_HAND, DOCS, EVERY, ROOT, Page

ADRS = [Page(path) for path in sorted((DOCS / "adr").glob("*.md"))]
MOST_LINES = 200


def nav() -> list[str]:
    """The pages and folders that mkdocs.yml names."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    def leaves(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        parts = entry.values() if isinstance(entry, dict) else entry
        return [leaf for part in parts for leaf in leaves(part)]

    return leaves(settings["nav"])


@pytest.mark.parametrize("page", BY_HAND, ids=str)
def test_a_page_is_short(page: Page) -> None:
    assert len(page.text.splitlines()) < MOST_LINES


@pytest.mark.parametrize("page", [*EVERY, *ADRS], ids=str)
def test_links_and_anchors_lead_somewhere(page: Page) -> None:
    for link in page.links:
        target, _, anchor = link.partition("#")
        path = (page.path.parent / target).resolve() if target else page.path
        assert path.exists(), f"{page} links to {link}"
        assert path.is_relative_to(ROOT), link
        if anchor:
            assert anchor in Page(path).anchors, (
                f"{page} links to {link}; there: {sorted(Page(path).anchors)}"
            )


@pytest.mark.parametrize("page", [page for page in EVERY if page.path.parent == DOCS], ids=str)
def test_the_site_has_what_a_page_links_to(page: Page) -> None:
    outside = [
        link for link in page.links if not (DOCS / link.partition("#")[0]).resolve().is_relative_to(DOCS)
    ]
    assert outside == [], "the site holds docs/ alone: name the file in code, without a link"


def test_nav_names_every_page() -> None:
    named = nav()
    assert len(named) == len(set(named))
    folders = [name for name in named if name.endswith("/")]
    files = [path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))]
    assert sorted(name for name in named if name not in folders) == [
        name for name in files if not name.startswith(tuple(folders))
    ]
    assert all((DOCS / folder).is_dir() for folder in folders)


def test_readme_leads_to_every_page_by_hand() -> None:
    linked = {link.partition("#")[0] for page in BY_HAND for link in page.links}
    names = {link.rpartition("/")[2] for link in linked}
    assert {page.path.name for page in EVERY[1:]} - names == set()
