"""The former state of a row, of which a document tells the fields that changed: `old` of Canal's and Maxwell's.

A field that is not there did not change, and one that is null was null.
"""

from __future__ import annotations

from bridge.formats.before_image import padded
from bridge.formats.cdc.fast_path import FastPath
from bridge.formats.sql import literal, member, null
from bridge.schema import RowType

__all__ = ["OldField", "same_keys"]


class OldField:
    """SQL for the fields `told` of rows of one shape; the others are null in a former state.

    `old` is read as a map of texts, which knows a null from what is not there, or where that is all one as a struct,
    which is cheaper: a key of one column was not null.
    """

    def __init__(self, row: RowType, told: RowType) -> None:
        self.row, self.told = row, told
        open = [f for f in told.fields if f.type.nullable]
        self._mapped = told == row or (len(told.fields) > 1 and bool(open))
        self.type = "MAP<STRING, STRING>" if self._mapped else FastPath.of(told)
        """What `from_json` reads `old` as."""

    def texts(self, old: str) -> str:
        """The struct of texts that `old` (a variable) holds; null for none."""
        if not self._mapped:
            return old
        fields = ", ".join(f"{literal(n)}, {old}[{literal(n)}]" for n in self.told.names)
        return f"IF({old} IS NULL, {null(FastPath.of(self.told))}, named_struct({fields}))"

    def read(self, texts: str, old: str, now_texts: str, now: str, convert: FastPath) -> str:
        """The state that `texts` tell of: a field is converted only if it is there, and written otherwise than in
        `now_texts`, of which `now` was made."""
        fields = {}
        for f in self.told.fields:
            told, now_told = member(texts, f.name), member(now_texts, f.name)
            value = convert.value(told, f.type)
            same = f"{told} <=> {now_told}" if value != told else "FALSE"
            as_now = f"IF({told} IS NULL, {self._absent(old, f.name)}, {same})"
            fields[f.name] = f"IF({as_now}, {member(now, f.name)}, {value})"
        return f"IF({texts} IS NULL, {null(self.row.spark())}, {padded(self.row, fields)})"

    def completed(self, state: str, old: str, now: str) -> str:
        """What was read of `old` as a row of the fields told, with those that are not there as they are `now`.

        All three are variables."""
        fields = {}
        for name in self.told.names:
            value, untold = member(state, name), self._absent(old, name)
            other = f"IF({untold}, {member(now, name)}, NULL)"
            fields[name] = f"IF({value} IS NULL, {other}, {value})"
        return f"IF({state} IS NULL, {null(self.row.spark())}, {padded(self.row, fields)})"

    def repeated(self, old: str, texts: str) -> str:
        """Whether a field comes twice in `old`; `texts` is what it holds."""
        if not self._mapped:
            return "FALSE"  # of two the last is read, as in Flink
        there = " + ".join(f"IF({member(texts, n)} IS NULL, 0, 1)" for n in self.told.names)
        # As many entries as fields that are not null have no key twice, which is dear to find out otherwise.
        return f"IF(size({old}) = {there}, FALSE, {same_keys(old)})"

    def doubled(self, old: str) -> str:
        """The same where no texts are at hand; null or false when none does."""
        return same_keys(old) if self._mapped else "FALSE"

    def _absent(self, old: str, name: str) -> str:
        return f"NOT map_contains_key({old}, {literal(name)})" if self._mapped else "TRUE"


def same_keys(map: str) -> str:
    """True when a key comes twice; null or false when none does."""
    keys = f"map_keys({map})"
    return f"IF(size({keys}) < 2, FALSE, size(array_distinct({keys})) != size({keys}))"
