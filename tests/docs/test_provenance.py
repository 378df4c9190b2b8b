"""The pages that a program has written name commits that are in the history, and what counts those since."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT

_LEDGERS = sorted(DOCS.glob("*.jsonl"))
_MEASURED = sorted(
    page
    for page in DOCS.glob("*.md")
    if re.match(r"(performance|reliability|sizing|sql-conformance)", page.stem)
    or "| commit |" in page.read_text("utf-8")
)
_HASH = re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{12}\b")

pytestmark = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="no repository: these files were unpacked"
)


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)


def _lost(commit: str) -> str | None:
    """Why a commit is no ancestor of HEAD."""
    if _git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0:
        return None
    if _git("rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        return f"{commit} cannot be looked up in a shallow clone: git fetch --unshallow"
    return f"{commit} is not in the history of HEAD: measure again, at a commit that is"


def _commits(page: Path) -> list[str]:
    """The commits that a page says it was measured at."""
    text = page.read_text("utf-8")
    row = re.search(r"^\| commit \| (.+) \|$", text, re.MULTILINE)
    sentence = re.search(r"Measured by `[^`]+` at (.+) on$", text, re.MULTILINE)
    found = row or sentence
    return _HASH.findall(found[1]) if found else []


@pytest.mark.parametrize("page", _MEASURED, ids=lambda page: page.stem)
def test_the_commit_of_a_page_is_in_the_history(page: Path) -> None:
    commits = _commits(page)
    assert commits, f"{page.name} does not say at which commit it was measured"
    assert [why for commit in commits if (why := _lost(commit))] == [], page.name
    command = f"git rev-list --count {commits[-1]}..HEAD -- bridge"
    assert f"`{command}`" in page.read_text("utf-8"), (
        f"{page.name} does not say how to count the commits since"
    )
    counted = _git(*command.split()[1:])
    assert counted.returncode == 0 and counted.stdout.strip().isdigit(), counted.stderr


def test_pages_of_each_kind_are_looked_at() -> None:
    assert {re.sub(r"-.*", "", page.stem) for page in _MEASURED} == {
        *("performance", "reliability", "sizing", "sql"),
    }
    assert len(_MEASURED) >= 8 and len(_LEDGERS) == 2


@pytest.mark.parametrize("ledger", _LEDGERS, ids=lambda ledger: ledger.stem)
def test_the_commits_of_a_ledger_are_in_the_history(ledger: Path) -> None:
    plays = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
    assert plays
    assert [why for play in plays for commit in play["commits"] if (why := _lost(commit))] == []


def test_a_commit_that_is_not_there_is_named() -> None:
    assert (_lost("bfe0e0b589dc") or "").startswith("bfe0e0b589dc ")
    assert _lost(_git("rev-parse", "HEAD").stdout.strip()) is None
