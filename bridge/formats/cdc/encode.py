"""Rows to change documents: Flink's bytes for an insert and a delete, one true message for an update."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from bridge.formats.json.encode import JsonEncoder
from bridge.formats.json.options import JsonOptions
from bridge.formats.json.shape import types
from bridge.formats.sql import apply, literal, member
from bridge.schema import MapType, RowField, RowType

__all__ = ["CanalEncoder", "MaxwellEncoder", "PairEncoder"]


class _Encoder(ABC):
    """Puts a document together from the JSON texts of rows."""

    def __init__(self, row: RowType, options: JsonOptions) -> None:
        self.row, self.options = row, options
        self.json = JsonEncoder(row, options)

    def encode(self, row: Column) -> Column:
        """See Encoder.encode: an insert."""
        return self.encode_change(F.lit(None).cast(self.row.spark()), row)

    def encode_change(self, before: Column, after: Column) -> Column:
        """See ChangeEncoder.encode_change."""
        changed = F.when(before.isNotNull() & after.isNotNull(), before)
        texts = F.struct(
            self.json.encode(F.when(after.isNull(), before)).cast("string").alias("deleted"),
            self.former(changed, after).alias("former"),
            self.json.encode(after).cast("string").alias("after"),
        )
        document = (
            f"CASE WHEN x.deleted IS NOT NULL THEN {self.delete('x.deleted')} "
            f"WHEN x.former IS NOT NULL THEN {self.update('x.former', 'x.after')} "
            f"WHEN x.after IS NOT NULL THEN {self.insert('x.after')} END"
        )
        return apply(texts, f"CAST({document} AS BINARY)", "x")

    def former(self, before: Column, after: Column) -> Column:
        """The JSON text of an update's former state; null where `before` is null."""
        return self.json.encode(before).cast("string")

    @abstractmethod
    def insert(self, after: str) -> str:
        """SQL of an insert; `after` is a row's text."""

    @abstractmethod
    def delete(self, before: str) -> str:
        """SQL of a delete; `before` is a row's text."""

    @abstractmethod
    def update(self, former: str, after: str) -> str:
        """SQL of an update; `former` as `former` gives it."""


class PairEncoder(_Encoder):
    """{"before":…,"after":…,"op":…} with the field and the words for insert, update and delete of a format."""

    def __init__(self, row: RowType, options: JsonOptions, field: str, words: tuple[str, str, str]) -> None:
        super().__init__(row, options)
        self.field, self.words = field, words

    def insert(self, after: str) -> str:
        before = "" if self.options.ignore_null_fields else '"before":null,'
        return _joined(f'{{{before}"after":', after, self._end(0))

    def delete(self, before: str) -> str:
        after = "" if self.options.ignore_null_fields else ',"after":null'
        return _joined('{"before":', before, after + self._end(2))

    def update(self, former: str, after: str) -> str:
        return _joined('{"before":', former, ',"after":', after, self._end(1))

    def _end(self, at: int) -> str:
        return f',"{self.field}":"{self.words[at]}"}}'


class CanalEncoder(_Encoder):
    """{"old":[…],"data":[…],"type":…}; `old` is there in an update only, and whole."""

    def insert(self, after: str) -> str:
        return _joined('{"data":[', after, '],"type":"INSERT"}')

    def delete(self, before: str) -> str:
        return _joined('{"data":[', before, '],"type":"DELETE"}')

    def update(self, former: str, after: str) -> str:
        return _joined('{"old":[', former, '],"data":[', after, '],"type":"UPDATE"}')

    def former(self, before: Column, after: Column) -> Column:
        # A field that is not in `old` is one that did not change, so nulls are told whatever the options say.
        told = JsonEncoder(self.row, replace(self.options, ignore_null_fields=False))
        return told.encode(before).cast("string")


class MaxwellEncoder(_Encoder):
    """{"data":{…},"old":{…},"type":…}; `old` is there in an update only, and has the fields that changed."""

    def insert(self, after: str) -> str:
        return _joined('{"data":', after, ',"type":"insert"}')

    def delete(self, before: str) -> str:
        return _joined('{"data":', before, ',"type":"delete"}')

    def update(self, former: str, after: str) -> str:
        return _joined('{"data":', after, ',"old":', former, ',"type":"update"}')

    def former(self, before: Column, after: Column) -> Column:
        pair = F.struct(before.alias("before"), after.alias("after"))
        row = self.row.spark()
        fields = ", ".join(f"{literal(f.name)}, {_changed(f)}" for f in self.row.fields)
        told = JsonEncoder(self.row, replace(self.options, ignore_null_fields=True)).encode(
            apply(pair, f"CAST(named_struct({fields}) AS {row})", "x")
        )
        nulls = ", ".join(_nulled(f) for f in self.row.fields)
        both = F.struct(
            told.cast("string").alias("told"), apply(pair, f"concat_ws(',', {nulls})", "x").alias("nulls")
        )
        members = "nullif(substr(x.told, 2, length(x.told) - 2), ''), nullif(x.nulls, '')"
        return F.when(before.isNotNull(), apply(both, f"concat('{{', concat_ws(',', {members}), '}}')", "x"))


def _joined(*parts: str) -> str:
    """SQL that joins texts (at even places) and columns (at odd ones)."""
    return f"concat({', '.join(p if i % 2 else literal(p) for i, p in enumerate(parts))})"


def _changed(field: RowField) -> str:
    before, after = member("x.before", field.name), member("x.after", field.name)
    if any(isinstance(part, MapType) for part in types(field.type)):
        return before  # Spark compares no maps; a field that did not change may be told
    return f"IF({before} <=> {after}, NULL, {before})"


def _nulled(field: RowField) -> str:
    before, after = member("x.before", field.name), member("x.after", field.name)
    name = json.dumps(field.name, ensure_ascii=False)
    return f"IF({before} IS NULL AND {after} IS NOT NULL, {literal(f'{name}:null')}, NULL)"
