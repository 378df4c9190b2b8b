"""What CONTRIBUTING.md shows of the code is in the code, and the files that it names are there."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT, Page

PAGE = Page(ROOT / "CONTRIBUTING.md")
_FILE = re.compile(
    r"(?:bridge|tests|benchmarks|docs|jobs|conf)/[\w./-]*|\.ci/run|[A-Z]+\.md|[a-z]+\.(?:toml|txt)"
)
_EXCERPTS = re.findall(r"^<!-- from (\S+) -->$", PAGE.text, re.MULTILINE)


@pytest.mark.parametrize("name", _EXCERPTS)
def test_an_excerpt_is_in_its_file(name: str) -> None:
    lines = (ROOT / name).read_text("utf-8").splitlines()
    shown = PAGE.block_after(f"from {name}").splitlines()
    assert shown
    assert [line for line in shown if line not in lines] == []


def test_the_files_that_it_names_are_there() -> None:
    named = {span for span in PAGE.code_spans if _FILE.fullmatch(span)}
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
    beside = {span for span in PAGE.code_spans if re.fullmatch(r"\w+\.py", span)}
    assert beside and beside <= {path.name for path in (ROOT / "bridge" / "expressions").iterdir()}


def test_the_names_that_it_uses_are_in_the_code() -> None:
    """Of functions of SQL, and of what the code calls the tables of them."""
    files = [*(ROOT / "bridge" / "expressions").glob("*.py"), ROOT / "benchmarks/flink_vectors/corpus.py"]
    code = "\n".join(path.read_text("utf-8") for path in files)
    tests = (ROOT / "tests" / "expressions" / "test_functions.py").read_text("utf-8")
    named = {span for span in PAGE.code_spans if re.fullmatch(r"_?[A-Z][A-Z0-9_]{3,}", span)} - {
        "CASES",
        "PYTHONPATH",
        "FUNCTION",
    }
    named |= {"failed", "Refusal", "Call"} & set(PAGE.code_spans)
    assert {"ENTRIES", "_FAMILIES", "LPAD", "failed", "Refusal"} <= named
    assert [name for name in sorted(named) if not re.search(rf"\b{name}\b", code)] == []
    assert "def test_refused(" in tests
