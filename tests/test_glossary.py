"""GLOSSARY.md is short, sorted into one line per term, and the code uses its words for what it defines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROWS = re.findall(
    r"^\| ([^|]+) \| ([^|]+) \|$", (ROOT / "GLOSSARY.md").read_text(encoding="utf-8"), re.MULTILINE
)
TERMS = [(term.strip(), meaning.strip()) for term, meaning in ROWS if term.strip() != "Term"]

RETIRED = {
    "stretch": "publish range",
    "slot": "shard",
    "outlet": "delivery",
    "glance": "fast path",
    "doubtful": "needs full decode",
    "survey": "batch stats",
    "presence": "consumer registration",
    "manner": "plan fingerprint",
    "holder": "lease owner",
    "lent": "pooled",
    "leaf": "scalar",
    "mended": "repaired",
}
"""Words that the code used for what the glossary names by another one."""


def _definitions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Names of classes, functions, parameters and fields, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.lineno


def _words(name: str) -> set[str]:
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return {form for word in words for form in (word.lower(), word.lower().removesuffix("s"))}


def test_the_glossary_has_at_most_thirty_terms_of_one_sentence_or_two() -> None:
    assert 20 <= len(TERMS) <= 30
    assert len({term for term, _ in TERMS}) == len(TERMS)
    assert all(len(meaning) <= 130 and meaning.endswith(".") for _, meaning in TERMS)


def test_no_definition_uses_a_retired_word() -> None:
    wrong = []
    for path in sorted((ROOT / "bridge").rglob("*.py")):
        place = path.relative_to(ROOT)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [*_definitions(tree), *((part, 0) for part in place.with_suffix("").parts)]
        wrong += [
            f"{place}:{line}: {name} (say {RETIRED[word]})"
            for name, line in names
            for word in sorted(_words(name) & RETIRED.keys())
        ]
    assert not wrong
