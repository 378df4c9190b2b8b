"""The words in the field `type` of Canal's and Maxwell's documents, and what each comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.formats.sql import literal, null

__all__ = ["Changes", "Types"]


@dataclass(frozen=True)
class Changes:
    """SQL of what a document's rows come to, by the word in `type`; `missing`: whether there are none."""

    missing: str
    inserted: str
    updated: str
    deleted: str


@dataclass(frozen=True)
class Types:
    """The words; documents with one of `passed_over` hold no rows and are no error."""

    insert: str
    update: str
    delete: str
    passed_over: tuple[str, ...] = ()

    def outcome(self, type: str, made: Changes, none: Callable[[str], str]) -> str:
        """The one of what was `made` that `type` names; `none` is an outcome without rows, of SQL of an error."""
        words = (self.insert, self.update, self.delete, *self.passed_over)
        unknown = f"field 'type' has an unknown value; known are {', '.join(words)}"
        over = ", ".join(map(literal, self.passed_over))
        passed = f"WHEN {type} IN ({over}) THEN {none(null('STRING'))} " if over else ""
        return (
            f"CASE WHEN {type} IS NULL THEN {none(_missing('type'))} "
            f"WHEN {type} NOT IN ({', '.join(map(literal, words))}) THEN {none(literal(unknown))} {passed}"
            f"WHEN {made.missing} THEN {none(_missing('data'))} "
            f"WHEN {type} = {literal(self.insert)} THEN {made.inserted} "
            f"WHEN {type} = {literal(self.delete)} THEN {made.deleted} ELSE {made.updated} END"
        )


def _missing(field: str) -> str:
    return literal(f"field '{field}' is null or missing")
