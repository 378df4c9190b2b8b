"""A full run writes a page of each part; the pages that are there are linked."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.__main__ import Page, pages
from benchmarks.parts import NORMAL, PARTS

DOCS = Path(__file__).parents[2] / "docs"


def test_a_normal_run_writes_one_page() -> None:
    report = Path("docs/performance.md")
    assert pages(NORMAL, report, full=False) == [Page(NORMAL, "make bench", report)]
    assert pages(("start",), None, full=False) == [Page(("start",), "ONLY=start make bench", None)]
    assert pages(("sql",), Path("sql.md"), full=False) == [Page(("sql",), "make bench-sql", Path("sql.md"))]


def test_a_full_run_writes_a_page_of_each_part() -> None:
    assert pages(("tables", "publish"), Path("docs/performance.md"), full=True) == [
        Page(("tables",), "ONLY=tables make bench-full", Path("docs/performance-tables.md")),
        Page(("publish",), "ONLY=publish make bench-full", Path("docs/performance-publish.md")),
    ]
    assert [page.file for page in pages(("log",), None, full=True)] == [None]


def test_the_pages_that_are_there_are_linked() -> None:
    written = {file.name for file in DOCS.glob("performance*.md")}
    linked = set(re.findall(r"\((performance[a-z0-9-]*\.md)\)", (DOCS / "benchmarks.md").read_text()))
    assert linked == written
    assert written <= {"performance.md", *(f"performance-{part}.md" for part in PARTS)}


def test_each_missed_goal_is_explained() -> None:
    missed = sum(file.read_text().count("| missed |") for file in DOCS.glob("performance*.md"))
    text = (DOCS / "benchmarks.md").read_text().partition(" missed:\n")[2]
    explained = re.findall(r"^- \*\*", text.partition("\nEvery table")[0], re.MULTILINE)
    assert missed == len(explained) > 0
