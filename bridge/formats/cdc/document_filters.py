"""Leaves out change documents by patterns of their fields, as Canal's `database.include` and `table.include` do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bridge.formats.json.fast_path import FROM_JSON
from bridge.formats.sql import literal, null
from bridge.schema import quote

__all__ = ["CORRUPT", "DocumentFilters"]

CORRUPT = "__corrupt"
"""The field of `DocumentFilters.parse` that is not null for malformed JSON."""

_START, _END = r"\A", r"\z"


@dataclass(frozen=True)
class DocumentFilters:
    """`patterns` has fields of the document, each with the pattern that it must match for the document to be read."""

    patterns: Mapping[str, str]

    def parse(self, text: str) -> str:
        """Return the struct of the fields of a document, and CORRUPT."""
        fields = ", ".join(f"{quote(name)}: STRING" for name in self.patterns)
        schema = literal(f"STRUCT<{fields}, {CORRUPT}: STRING>")
        return f"from_json({text}, {schema}, {FROM_JSON.format(corrupt=literal(CORRUPT))})"

    def branches(self, field: Callable[[str], str], none: Callable[[str], str], whole: str = "TRUE") -> str:
        """Return branches of a CASE for the documents to leave out; '' without patterns.

        `field` makes SQL of a field, `none` the result without rows of SQL of an error. Other errors in such a document
        are ignored, as long as the condition `whole` is true.
        """
        branches = []
        for name, pattern in self.patterns.items():
            missing = literal(f"field '{name}' is null or missing, and '{name}.include' is a pattern for it")
            matches = f"{field(name)} RLIKE {literal(f'{_START}(?:{pattern}){_END}')}"
            branches.append(f"WHEN {whole} AND {field(name)} IS NULL THEN {none(missing)} ")
            branches.append(f"WHEN {whole} AND NOT {matches} THEN {none(null('STRING'))} ")
        return "".join(branches)
