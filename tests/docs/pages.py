"""The pages of the documentation, taken apart: snippets, code spans, headings and links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_WRITTEN_BY_PROGRAMS = re.compile(r"options|performance.*|reliability.*|sizing|sql-conformance")

_FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Snippet:
    """A fenced block."""

    page: Page
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    """A Markdown file of the repository."""

    path: Path

    def __str__(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def prose(self) -> str:
        """The text with its fenced blocks emptied; lines keep their numbers."""
        return _FENCE.sub(lambda block: "\n" * block[0].count("\n"), self.text)

    @property
    def snippets(self) -> list[Snippet]:
        return [
            Snippet(self, self.text.count("\n", 0, found.start()) + 1, found[1], found[2])
            for found in _FENCE.finditer(self.text)
        ]

    @property
    def code_spans(self) -> list[str]:
        """What stands between single backticks, an escaped pipe of a table unescaped."""
        return [span.replace("\\|", "|") for span in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", self.prose)]

    @property
    def indented_blocks(self) -> list[int]:
        """Lines at which a code block without a fence begins, which has no language."""
        lines = self.prose.splitlines()
        return [
            number
            for number, line in enumerate(lines, 1)
            if line.startswith("    ") and line.strip() and number > 1 and not lines[number - 2].strip()
        ]

    @property
    def links(self) -> list[str]:
        """Targets of links and images that lie in the repository."""
        return [target for target in _LINK.findall(self.prose) if not re.match(r"[a-z]+:", target)]

    @property
    def anchors(self) -> set[str]:
        """Anchors of the headings, as GitHub and MkDocs both make them."""
        titles = re.findall(r"^#+ +(.+?) *$", self.prose, re.MULTILINE)
        return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", title.lower())).strip("-") for title in titles}

    def block_after(self, comment: str) -> str:
        """The text of the block that follows the line `<!-- comment -->`."""
        found = re.search(rf"^<!-- {re.escape(comment)} -->\n```\w*\n(.*?)^```", self.text, re.M | re.S)
        assert found, f"{self}: no block follows <!-- {comment} -->"
        return found[1]

    def rows(self, head: str) -> list[list[str]]:
        """The rows of the table whose first heading cell is `head`, cell by cell."""
        table = re.search(rf"^\| {re.escape(head)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", self.text, re.MULTILINE)
        assert table, f"{self}: no table begins with the column {head}"
        lines = [line.replace("\\|", "\0").strip("|") for line in table[1].splitlines()]
        return [[cell.strip().replace("\0", "|") for cell in line.split("|")] for line in lines]


EVERY = [
    Page(ROOT / "README.md"),
    Page(ROOT / "CONTRIBUTING.md"),
    *(Page(path) for path in sorted(DOCS.glob("*.md"))),
]
"""README.md, CONTRIBUTING.md and the pages in docs/, without the decisions."""

BY_HAND = [page for page in EVERY if not _WRITTEN_BY_PROGRAMS.fullmatch(page.path.stem)]
"""Pages that no program writes."""
