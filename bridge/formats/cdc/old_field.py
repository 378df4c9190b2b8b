"""The before image in the field `old` of Canal's and Maxwell's documents, which has only the fields that changed.

A field that is absent did not change, and one that is null was null.
"""

from __future__ import annotations

from bridge.format_rules.change_documents import null_is_not_absent
from bridge.formats.before_image import padded
from bridge.formats.cdc.fast_path import FastPath
from bridge.formats.sql import literal, member, null
from bridge.schema import RowType

__all__ = ["OldField", "same_keys"]


class OldField:
    """SQL for the fields `before_type` of before images; the other fields of the row are null in them.

    `old` is read as a map of texts, in which a null field differs from an absent one. Where both mean the same, it is
    read as a struct, which is cheaper.
    """

    def __init__(self, row: RowType, before_type: RowType) -> None:
        self.row, self.before_type = row, before_type
        self._is_map = null_is_not_absent(row, before_type)
        self.type = "MAP<STRING, STRING>" if self._is_map else FastPath.of(before_type)
        """The type that `from_json` reads `old` as."""

    def texts(self, old: str) -> str:
        """Return the struct of the texts in `old` (a variable); null for a null."""
        if not self._is_map:
            return old
        fields = ", ".join(f"{literal(n)}, {old}[{literal(n)}]" for n in self.before_type.names)
        return f"IF({old} IS NULL, {null(FastPath.of(self.before_type))}, named_struct({fields}))"

    def read(self, texts: str, old: str, data_texts: str, data: str, convert: FastPath) -> str:
        """Return the before image with these `texts`.

        A field is converted only where it is present and its text differs from that in `data_texts`, whose converted
        row is `data`."""
        fields = {}
        for f in self.before_type.fields:
            text, data_text = member(texts, f.name), member(data_texts, f.name)
            value = convert.value(text, f.type)
            same_text = f"{text} <=> {data_text}" if value != text else "FALSE"
            unchanged = f"IF({text} IS NULL, {self._is_absent(old, f.name)}, {same_text})"
            fields[f.name] = f"IF({unchanged}, {member(data, f.name)}, {value})"
        return f"IF({texts} IS NULL, {null(self.row.spark())}, {padded(self.row, fields)})"

    def completed(self, before: str, old: str, data: str) -> str:
        """Return the before image whose present fields are in `before`, absent ones as in `data`.

        All three are variables."""
        fields = {}
        for name in self.before_type.names:
            value = member(before, name)
            unchanged = f"IF({self._is_absent(old, name)}, {member(data, name)}, NULL)"
            fields[name] = f"IF({value} IS NULL, {unchanged}, {value})"
        return f"IF({before} IS NULL, {null(self.row.spark())}, {padded(self.row, fields)})"

    def repeats_a_field(self, old: str, texts: str) -> str:
        """Return whether `old`, whose texts are `texts`, has a field twice; never null."""
        if not self._is_map:
            return "FALSE"  # of two the last is read, as in Flink
        present = " + ".join(f"IF({member(texts, n)} IS NULL, 0, 1)" for n in self.before_type.names)
        # As many entries as fields that are not null: no key is repeated, and the dear comparison is not needed.
        return f"IF(size({old}) = {present}, FALSE, {same_keys(old)})"

    def repeats_a_key(self, old: str) -> str:
        """Return the same without its texts; null or false where no field is repeated."""
        return same_keys(old) if self._is_map else "FALSE"

    def _is_absent(self, old: str, name: str) -> str:
        return f"NOT map_contains_key({old}, {literal(name)})" if self._is_map else "TRUE"


def same_keys(map: str) -> str:
    """Return whether a map has a key twice; null or false where it has not."""
    keys = f"map_keys({map})"
    return f"IF(size({keys}) < 2, FALSE, size(array_distinct({keys})) != size({keys}))"
