"""The report: one file, whole, offline, for everyone."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bridge.errors import BridgeError
from bridge.positions import Offsets
from bridge.quality.report import html, to_json, write_report
from bridge.quality.verdict import Outcome, Subject, Verdict

VOID = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = "<script>alert(1)</script>&\"'"
SUBJECT = Subject(
    "orders", "orders", "lake/orders", 1_042, Offsets({("orders", 0): 12_345, ("orders", 1): 7})
)
STARTED = datetime(2024, 5, 6, 7, 8, 9, tzinfo=timezone.utc)
MET = Outcome("t1", "id values must never be null.", ("id",), True, "all 9 values pass", "no nulls", 0, 0.0)
FAILED = Outcome(
    "t2",
    "id is unique: each key occurs once.",
    ("id", "region"),
    False,
    "1 key occurs more than once (2 rows)",
    "each key once",
    2,
    22.2222,
    ({"id": 5, "region": None}, {"id": 6, "region": HOSTILE}),
    "warning",
)
RAISED = Outcome("t3", "The newest at is fresh.", (), False, "", "", reason="column 'at' is not in the table")


def verdict(*outcomes: Outcome, subject: Subject = SUBJECT) -> Verdict:
    success = all(o.success for o in outcomes)
    return Verdict("orders", success, outcomes, 1_234_567, STARTED, 3.14159, subject)


PASSED = verdict(MET)
BROKEN = verdict(MET, FAILED, RAISED)
PAGES = {
    "passed": html(PASSED),
    "broken": html(BROKEN, {"Records per second": 84_000.5, HOSTILE: HOSTILE, "Left out": None}),
    "bare": html(verdict(MET, subject=Subject())),
}
every_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())


class Outline(HTMLParser):
    """Collects what the page is made of, and refuses tags that are not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"line {self.getpos()[0]}: </{tag}> is out of order"

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open:
            self.texts.append((self.open[-1], data.strip()))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@every_page
def test_nothing_outside_is_referred_to(page: str) -> None:
    for reference in ("http:", "https:", "//", "url(", "@import", "src=", "<script", "<link", "<iframe"):
        assert reference not in page.lower()
    for link in Outline(page).all("a"):
        assert (link["href"] or "").startswith("#")


@every_page
def test_page_is_well_formed_and_has_its_landmarks(page: str) -> None:
    outline = Outline(page)
    assert page.startswith("<!DOCTYPE html>")
    assert outline.all("html") == [{"lang": "en"}]
    assert [t for tag, t in outline.texts if tag == "title"]
    for landmark in ("header", "main", "footer", "nav", "h1"):
        assert len(outline.all(landmark)) == 1, landmark
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in outline.all("meta")


@every_page
def test_headings_links_and_tables_can_be_followed(page: str) -> None:
    outline = Outline(page)
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(level <= levels[i] + 1 for i, level in enumerate(levels[1:]))
    ids = [a["id"] for _, a in outline.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert {f"#{i}" for i in ids} >= {a["href"] for a in outline.all("a")}
    assert set(ids) >= {a["aria-labelledby"] for a in outline.all("section")}
    assert all("scope" in th for th in outline.all("th"))
    assert all(svg["aria-hidden"] == "true" for svg in outline.all("svg"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_its_ground(scheme: str) -> None:
    """WCAG 2 AA: a contrast of 4.5 for text."""
    light, dark = PAGES["passed"].split("@media (prefers-color-scheme: dark)", 1)
    source = light if scheme == "light" else dark.split("*, *::before", 1)[0]
    colours = dict(re.findall(r"--([a-z-]+): #([0-9a-f]{6});", source))
    pairs = [
        *[(text, ground) for text in ("ink", "quiet", "link") for ground in ("page", "card")],
        *[(text, "card") for text in ("good", "bad", "odd")],
        *[(text, f"{state}-soft") for state in ("good", "bad") for text in (state, "ink", "quiet")],
        *[("on-state", state) for state in ("good", "bad", "odd")],
    ]
    for text, ground in pairs:
        low, high = sorted((luminance(colours[text]), luminance(colours[ground])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, f"{text} on {ground}"


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def texts(page: str) -> list[str]:
    return [text for _, text in Outline(page).texts]


def test_a_passed_report_says_so_first() -> None:
    shown = texts(PAGES["passed"])
    assert "Passed: lake/orders, quality report" in shown
    assert ("h1", "Passed") in Outline(PAGES["passed"]).texts
    assert "1,234,567" in shown
    assert "What failed" not in shown


def test_a_failed_report_names_what_failed_before_the_rest() -> None:
    shown = texts(PAGES["broken"])
    assert ("h1", "Failed") in Outline(PAGES["broken"]).texts
    said = " ".join(shown)
    assert "2 of 3 expectations are not met, 1 of them because it could not be evaluated." in said
    assert RAISED.reason in shown
    table = said[said.index("All expectations") :]
    assert table.index(RAISED.title) < table.index(FAILED.title) < table.index(MET.title)


def test_example_keys_offsets_and_facts_are_shown_and_escaped() -> None:
    shown = texts(PAGES["broken"])
    assert {"22.22 %", "null", "5", "12,345", "84,000.5", "version 1,042"} <= set(shown)
    assert "Left out" not in shown
    assert shown.count(HOSTILE) == 3
    assert HOSTILE not in PAGES["broken"]


def test_json_is_the_whole_verdict() -> None:
    made = json.loads(to_json(BROKEN))
    assert made["success"] is False
    assert made["started_at"] == "2024-05-06T07:08:09+00:00"
    assert made["subject"]["offsets"] == {"orders": {"0": 12_345, "1": 7}}
    assert [o["success"] for o in made["expectations"]] == [True, False, False]
    assert made["expectations"][1]["example_keys"][0] == {"id": 5, "region": None}
    assert made["expectations"][2]["reason"] == RAISED.reason


def test_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "new" / "report.html"
    assert write_report(BROKEN, {}, target) == target
    assert write_report(PASSED, {"a": 1}, target).read_text(encoding="utf-8") == html(PASSED, {"a": 1})
    folder = tmp_path / "new" / "folder"
    folder.mkdir()
    with pytest.raises(BridgeError, match="folder: the quality report cannot be written: Is a directory"):
        write_report(BROKEN, {}, folder)
    assert sorted(target.parent.iterdir()) == [folder, target]


def test_report_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BridgeError, match="cannot be written"):
        write_report(PASSED, {}, tmp_path / "file" / "report.html")
