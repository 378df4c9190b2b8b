"""Writes change documents: Flink's bytes for an insert and a delete, one message with both images for an update.

As in json's encoder, SQL of an image is repeated instead of bound by a lambda function.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import replace

from pyspark.sql import Column

from bridge.format_rules.json_options import JsonOptions
from bridge.formats.json.encode import JsonEncoder, Part, parts
from bridge.formats.sql import Names, SqlChangeEncoder, literal, member
from bridge.schema import MapType, RowField, RowType, ScalarType, types

# No JSON text contains it.
_MARK = "'\\u0001'"


class JsonChangeEncoder(SqlChangeEncoder):
    """Writes a document from the before and the after image of a row; one of them may be null."""

    def __init__(self, row: RowType, options: JsonOptions) -> None:
        self.row, self.options = row, options

    def typed(self, row: Column) -> Column:
        return row.cast(self.row.spark())

    def change(self, before: str, after: str, names: Names) -> str:
        document = self.document(before, after, names)
        return f"IF({before} IS NULL AND {after} IS NULL, NULL, CAST({document} AS BINARY))"

    def json(self, row: str, when: str, names: Names) -> str:
        """Return SQL of the text of a row where `when` is true, else of null."""
        return JsonEncoder(self.row, self.options).text(parts(row, self.row), when, names)

    @abstractmethod
    def document(self, before: str, after: str, names: Names) -> str:
        """Return SQL of the document: an insert if `before` is null, a delete if `after` is; ignored if both are."""


class PairEncoder(JsonChangeEncoder):
    """Writes {"before":…,"after":…,"op":…}, with the format's own `field` for the operation and its `words`."""

    def __init__(self, row: RowType, options: JsonOptions, field: str, words: tuple[str, str, str]) -> None:
        super().__init__(row, options)
        self.field, self.words = field, words

    def document(self, before: str, after: str, names: Names) -> str:
        operation = _by_kind(before, after, *self.words)
        images = (Part("before", before, self.row), Part("after", after, self.row))
        members = (*images, Part(self.field, operation, ScalarType("STRING")))
        has_image = f"{before} IS NOT NULL OR {after} IS NOT NULL"
        return JsonEncoder(self.row, self.options).text(members, f"({has_image})", names)


class CanalEncoder(JsonChangeEncoder):
    """Writes {"old":[…],"data":[…],"type":…}; only an update has `old`, with all fields."""

    def document(self, before: str, after: str, names: Names) -> str:
        # A field that is absent from `old` did not change, so nulls are written whatever the options are.
        whole = JsonEncoder(self.row, replace(self.options, ignore_null_fields=False))
        image = whole.text(parts(before, self.row), f"{before} IS NOT NULL", names)
        if self.options.ignore_null_fields:
            image = f"IF({after} IS NULL, {self.json(before, f'{after} IS NULL', names)}, {image})"
        start = _by_kind(before, after, '{"data":[', '{"old":[', '{"data":[')
        between = _by_kind(before, after, "", '],"data":[', "")
        end = _by_kind(before, after, *(f'],"type":"{word}"}}' for word in ("INSERT", "UPDATE", "DELETE")))
        data = self.json(after, f"{after} IS NOT NULL", names)
        return f"concat({start}, coalesce({image}, ''), {between}, coalesce({data}, ''), {end})"


class MaxwellEncoder(JsonChangeEncoder):
    """Writes {"data":{…},"old":{…},"type":…}; only an update has `old`, with the fields that changed."""

    def document(self, before: str, after: str, names: Names) -> str:
        start, old = literal('{"data":'), literal(',"old":')
        new, gone = (
            self.json(row, f"{after} IS {test}", names)
            for row, test in ((after, "NOT NULL"), (before, "NULL"))
        )
        end = _by_kind(before, after, *(f',"type":"{word}"}}' for word in ("insert", "update", "delete")))
        changed = f"concat({old}, {self._old(before, after, names)})"
        return f"concat({start}, coalesce({new}, {gone}), coalesce({changed}, ''), {end})"

    def _old(self, before: str, after: str, names: Names) -> str:
        """Return SQL of the object of an update's changed fields, or of null."""
        fields = zip(self.row.fields, parts(before, self.row), parts(after, self.row), strict=True)
        changed = [replace(was, unless=_same(f, was.value, now.value)) for f, was, now in fields]
        some = JsonEncoder(self.row, replace(self.options, ignore_null_fields=True)).text(
            changed, f"({before} IS NOT NULL AND {after} IS NOT NULL)", names
        )
        nulls = f"concat({', '.join(_nulled(before, after, f) for f in self.row.fields)})"
        # The fields that were not null come first, then those that were null.
        both = f"concat({some}, {_MARK}, {nulls}, '}}')"
        return f"replace(replace({both}, concat('{{}}', {_MARK}, ','), '{{'), concat('}}', {_MARK}), '')"


def _by_kind(before: str, after: str, *texts: str) -> str:
    """Return SQL of one of three texts: for an insert, an update or a delete."""
    insert, update, delete = map(literal, texts)
    return f"CASE WHEN {before} IS NULL THEN {insert} WHEN {after} IS NULL THEN {delete} ELSE {update} END"


def _same(field: RowField, before: str, after: str) -> str | None:
    if any(isinstance(part, MapType) for part in types(field.type)):
        return None  # Spark compares no maps; a field that did not change may be written
    return f"{before} <=> {after}"


def _nulled(before: str, after: str, field: RowField) -> str:
    was, now = member(before, field.name), member(after, field.name)
    name = json.dumps(field.name, ensure_ascii=False)
    return f"IF({was} IS NULL AND {now} IS NOT NULL, {literal(f',{name}:null')}, '')"
