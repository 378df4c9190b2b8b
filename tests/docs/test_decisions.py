"""Each decision says whether it is in force, and which decisions change which."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS

DECISIONS = {path.name[:3]: path for path in sorted((DOCS / "adr").glob("*.md"))}

_LINK = r"\[ADR (\d{3})\]\(([\w.-]+\.md)\)"
_LIST = rf"{_LINK} \([^()]+\)(?:, {_LINK} \([^()]+\))*"
_STATES = ("Proposed", "Accepted", f"Superseded by {_LIST}")
_PARTS = ("Supersedes", "Amends", "Amended by")
_STATUS = re.compile(rf"({'|'.join(_STATES)})\." + "".join(rf"(?: {part} {_LIST}\.)?" for part in _PARTS))
_ANSWERS = {"Amends": "Amended by", "Supersedes": "Superseded by"}


def _status(path: Path) -> str:
    """The paragraph between the title and the text, on one line."""
    title, status, *_ = path.read_text("utf-8").split("\n\n")
    assert title.startswith(f"# {path.name[:3]}: ") and status.startswith("**Status.** "), path.name
    return " ".join(status.removeprefix("**Status.** ").split())


def _named(path: Path, part: str) -> dict[str, str]:
    """The decisions that the status names after the words `part`, with the names of their files."""
    found = re.search(rf"(?:^|\. ){part} ({_LIST})", _status(path))
    return dict(re.findall(_LINK, found[1])) if found else {}


@pytest.mark.parametrize("path", DECISIONS.values(), ids=lambda path: path.name[:3])
def test_a_decision_has_a_status(path: Path) -> None:
    status = _status(path)
    assert _STATUS.fullmatch(status), (
        f"docs/adr/000-template.md says how a status is written; this one is: {status}"
    )
    for part in (*_ANSWERS, *_ANSWERS.values()):
        for number, name in _named(path, part).items():
            assert DECISIONS[number].name == name


def test_both_decisions_name_the_change() -> None:
    for part, answer in _ANSWERS.items():
        said = {(new, old) for new, path in DECISIONS.items() for old in _named(path, part)}
        answered = {(new, old) for old, path in DECISIONS.items() for new in _named(path, answer)}
        assert said == answered, f"{part}: {sorted(said ^ answered)}"
        assert all(new > old for new, old in said)
