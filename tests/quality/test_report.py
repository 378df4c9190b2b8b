"""The report is one well-formed, accessible file without external resources."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.errors import BridgeError
from bridge.quality.report import html, write
from bridge.quality.verdict import History
from tests.quality.pages import HOSTILE, Outline
from tests.quality.verdicts import BROKEN, FAILED, HISTORY, MET, NOW, PASSED, RAISED, verdict

PAGES = {
    "passed": html(PASSED, HISTORY, NOW),
    "broken": html(BROKEN, HISTORY, NOW),
    "warned": html(verdict(MET, FAILED), HISTORY, NOW),
    "first": html(PASSED, History(), NOW),
    "bare": html(
        verdict(MET, subject=type(PASSED.subject)()), History(), replace(NOW, lag=None, event_time=None)
    ),
    "since": html(
        replace(BROKEN, changed_rows=12, subject=replace(BROKEN.subject, since=1_000)), HISTORY, NOW
    ),
}
every_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())


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
    assert set(ids) >= {a["aria-labelledby"] for a in outline.all("section") + outline.all("figure")}
    assert all("scope" in th for th in outline.all("th"))
    for svg in outline.all("svg"):
        named = "aria-label" in svg or set((svg.get("aria-labelledby") or "-").split()) <= set(ids)
        assert svg.get("aria-hidden") == "true" or (svg["role"] == "img" and named)
    assert all("tabindex" in a for _, a in outline.tags if a.get("class") == "scroll")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_text_and_background(scheme: str) -> None:
    """WCAG 2 AA: a contrast of 4.5 for text, 3 for shapes."""
    light, dark = PAGES["passed"].split("@media (prefers-color-scheme: dark)", 1)
    source = light if scheme == "light" else dark.split("*, *::before", 1)[0]
    colours = dict(re.findall(r"--([a-z-]+): #([0-9a-f]{6});", source))
    pairs = [
        *[(text, ground) for text in ("ink", "quiet", "link") for ground in ("page", "card")],
        *[(text, "card") for text in ("good", "bad", "odd")],
        *[(text, f"{state}-soft") for state in ("good", "bad", "odd") for text in (state, "ink", "quiet")],
        *[("on-state", state) for state in ("good", "bad", "odd")],
    ]
    for text, ground in pairs:
        low, high = sorted((luminance(colours[text]), luminance(colours[ground])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, f"{text} on {ground}"
    for shape in ("link", "inserted", "updated", "deleted", "bad", "odd", "good"):
        low, high = sorted((luminance(colours[shape]), luminance(colours["card"])))
        assert (high + 0.05) / (low + 0.05) >= 3, f"{shape} in a chart"


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def texts(page: str) -> list[str]:
    return [text for _, text in Outline(page).texts]


def test_a_passed_report_says_so_first() -> None:
    shown = texts(PAGES["passed"])
    assert "Passed: the one expectation is met · orders, quality report" in shown
    assert ("h1", "Passed: the one expectation is met") in Outline(PAGES["passed"]).texts
    assert "1,234,567" in shown
    assert "Failed expectations" not in shown


def test_a_failed_report_names_what_failed_before_the_rest() -> None:
    outline = Outline(PAGES["broken"])
    assert ("h1", "Failed: 2 of 3 expectations are not met") in outline.texts
    assert outline.all("body") == [{"class": "failed"}]
    page_text = " ".join(texts(PAGES["broken"]))
    assert "“The newest at is fresh” is not met: it could not be evaluated. One of these was met" in page_text
    assert str(RAISED.reason) in page_text
    table = page_text[page_text.index("All expectations") :]
    assert table.index(RAISED.title) < table.index(FAILED.title) < table.index(MET.title)


def test_a_warning_is_not_a_failure() -> None:
    outline = Outline(PAGES["warned"])
    assert ("h1", "Passed with warnings: 1 of 2 expectations is not met") in outline.texts
    assert outline.all("body") == [{"class": "warned"}]


def test_new_and_continuing_failures_are_marked() -> None:
    shown = texts(PAGES["broken"])
    assert "New: met in the last run, 6 May 2024, 04:08 UTC" in shown
    assert "Failing since 6 May 2024, 02:08 UTC (4 runs)" in shown
    assert not any(text.startswith(("New:", "Failing")) for text in texts(html(BROKEN, History(), NOW)))


def test_example_keys_offsets_and_facts_are_shown_and_escaped() -> None:
    shown = texts(PAGES["broken"])
    assert {"22.22 %", "null", "5", "12,345", "schedule", "0.1.0", "run-7", "1", "hour old"} <= set(shown)
    assert shown.count(HOSTILE) == 1
    assert HOSTILE not in PAGES["broken"]


def test_a_check_of_changed_rows_says_so() -> None:
    page_text = " ".join(texts(PAGES["since"]))
    assert (
        "Checked 12 rows that changed since version 1000, and all 1,234,567 rows for expectations"
        in page_text
    )
    assert "rows changed since version 1,000" in page_text


def test_trends_are_drawn_from_the_second_run_on() -> None:
    assert "This is the first stored run. Trends appear from the second run on." in texts(PAGES["first"])
    assert not Outline(PAGES["first"]).all("figure")
    assert ("th", "Runs") not in Outline(PAGES["first"]).texts and ("th", "Runs") in Outline(
        PAGES["passed"]
    ).texts
    outline = Outline(PAGES["broken"])
    assert [f["aria-labelledby"] for f in outline.all("figure")] == [
        f"chart-{name}" for name in ("rows", "lag", "failures", "mix")
    ]
    described = [text for tag, text in outline.texts if tag == "desc"]
    assert described[0] == (
        "Rows in the table over 6 runs from 6 May 2024, 00:08 UTC to 6 May 2024, 07:08 UTC: between 1,000 and "
        "1,234,567 rows, now 1,234,567."
    )
    assert described[3].endswith("before this one: 40 inserted, 50 updated, 60 deleted.")
    assert ("caption", "Runs, newest first") in outline.texts


def test_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "new" / "report.html"
    assert write(PAGES["broken"], target, "the quality report") == target
    assert write(PAGES["passed"], target, "the quality report").read_text(encoding="utf-8") == PAGES["passed"]
    folder = tmp_path / "new" / "folder"
    folder.mkdir()
    with pytest.raises(BridgeError, match="folder: the quality report cannot be written: Is a directory"):
        write(PAGES["broken"], folder, "the quality report")
    assert sorted(target.parent.iterdir()) == [folder, target]


def test_report_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BridgeError, match="cannot be written"):
        write(PAGES["passed"], tmp_path / "file" / "report.html", "the quality report")
