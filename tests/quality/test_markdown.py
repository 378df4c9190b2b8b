"""The Markdown summary: readable as text, harmless as markup."""

from __future__ import annotations

from dataclasses import replace

from bridge.quality.markdown import markdown
from bridge.quality.verdict import History
from tests.quality.verdicts import BROKEN, FAILED, HISTORY, MET, NOW, PASSED, RAISED, verdict


def test_a_headline_sentences_and_a_table_with_failures_first() -> None:
    lines = markdown(BROKEN, HISTORY, NOW).splitlines()
    assert lines[0] == "## orders: Failed: 2 of 3 expectations are not met"
    assert lines[2].startswith("“The newest at is fresh” is not met: it could not be evaluated.")
    assert lines[4] == "| Result | Severity | Expectation | Observed | History |"
    table = lines[6:9]
    assert [row.split(" | ")[0] for row in table] == ["| ❓ **not evaluated**", "| ⚠️ not met", "| ✅ met"]
    assert all(row.count(" | ") == 4 for row in table)
    assert str(RAISED.reason) in table[0] and "New: met in the last run" in table[0]
    assert "e.g. id = 5, region = None; id = 6" in table[1]
    assert "table lake/orders version 1042" in lines[-1]


def test_text_stays_text() -> None:
    odd = replace(MET, title="a | b <b>*c*</b> [d](http://e) @team\nnext `f` & g", observed="1|2")
    text = markdown(verdict(odd, FAILED), History(), NOW)
    assert "<script>" not in text and "<b>" not in text and "[d](" not in text and "@team" not in text
    assert r"a \| b &lt;b&gt;\*c\*&lt;/b&gt; \[d\]\(http://e\) @" in text
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 3


def test_a_passed_run_says_so() -> None:
    text = markdown(PASSED, HISTORY, replace(NOW, lag=0))
    assert text.startswith("## orders: Passed: the one expectation is met\n")
    assert "The table is up to date with its topic." in text
