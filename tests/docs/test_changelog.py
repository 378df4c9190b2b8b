"""CHANGELOG.md has the form of Keep a Changelog, and its newest release is the version of the package."""

from __future__ import annotations

import re
from datetime import date

import pytest
from packaging.version import Version

from tests.docs.pages import ROOT

HEADINGS = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
RELEASES = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", heading) for heading in HEADINGS[1:]]


def test_unreleased_changes_come_first_and_releases_by_date() -> None:
    assert HEADINGS[0] == "[Unreleased]"
    assert RELEASES and all(RELEASES), HEADINGS
    found = [(Version(release[1]), date.fromisoformat(release[2])) for release in RELEASES if release]
    assert found == sorted(found, reverse=True)
    assert len({version for version, _ in found}) == len(found)


def test_the_newest_release_is_the_version_of_the_package() -> None:
    written = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert written and RELEASES[0]
    assert written[1] == RELEASES[0][1]
    assert Version(written[1]).major > 0


@pytest.mark.parametrize("kind", ["Added", "Changed", "Fixed"])
def test_a_kind_of_change_is_a_heading_once_in_a_release(kind: str) -> None:
    releases = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    assert all(release.count(f"\n### {kind}\n") <= 1 for release in releases)
