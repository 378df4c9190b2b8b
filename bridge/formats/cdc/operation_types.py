"""The values of the field `type` of Canal's and Maxwell's documents, and the outcome of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.format_rules.change_documents import Operations
from bridge.formats.sql import literal, null


@dataclass(frozen=True)
class Changes:
    """SQL of the outcome of a document's rows by its type; `missing`: whether a row is missing."""

    missing: str
    inserted: str
    updated: str
    deleted: str


@dataclass(frozen=True)
class Types:
    """The values of `type`."""

    words: Operations

    def outcome(self, type: str, changes: Changes, none: Callable[[str], str]) -> str:
        """Return the outcome that `type`, SQL, selects; `none` makes the outcome without rows of SQL of an error."""
        words = self.words
        skipped = ", ".join(map(literal, words.skipped))
        unknown = unknown_operation(words, words.field, type)
        skip = f"WHEN {type} IN ({skipped}) THEN {none(null('STRING'))} " if skipped else ""
        return (
            f"CASE WHEN {type} IS NULL THEN {none(_missing('type'))} "
            f"WHEN {type} NOT IN ({', '.join(map(literal, words.known))}) THEN {none(unknown)} {skip}"
            f"WHEN {changes.missing} THEN {none(_missing('data'))} "
            f"WHEN {type} IN ({', '.join(map(literal, words.insert))}) THEN {changes.inserted} "
            f"WHEN {type} = {literal(words.delete)} THEN {changes.deleted} ELSE {changes.updated} END"
        )


def unknown_operation(words: Operations, path: str, value: str) -> str:
    """Return SQL of the error of a document whose operation is none of the known ones. Of `value`, SQL, it shows only
    words of the tool, since others may be anything."""
    known = f"known are {', '.join(words.known)}"
    start, end = literal(f"field '{path}' is '"), literal(f"', which is no change of a row; {known}")
    others = ", ".join(map(literal, words.others))
    unknown = literal(f"field '{path}' has an unknown value; {known}")
    return f"IF({value} IN ({others}), concat({start}, {value}, {end}), {unknown})"


def _missing(field: str) -> str:
    return literal(f"field '{field}' is null or missing")
