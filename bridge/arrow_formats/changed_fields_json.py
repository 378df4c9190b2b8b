"""Change documents in JSON with the rows in `data` and the fields that changed in `old` to Arrow: Canal's, Maxwell's.

Canal writes every value as a text, Maxwell and Flink values of their types. So documents are read with typed fields or
with all fields as texts, whichever fits; a batch with both kinds is left to Spark's path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.arrow_formats.arrow_types import arrow_type
from bridge.arrow_formats.base import ArrowChanges, ChangeArrowDecoder, Places
from bridge.arrow_formats.changes import documents_of, is_one_of, made_changes, no_changes
from bridge.arrow_formats.json import JsonArrowDecoder, refuse_unread
from bridge.arrow_formats.text_values import text_row, typed_values
from bridge.definition import FormatSpec
from bridge.format_rules.change_documents import (
    CANAL,
    MAXWELL,
    CdcOptions,
    Operations,
    before_image_type,
    null_is_not_absent,
)
from bridge.format_rules.json_options import Numbers
from bridge.schema import ArrayType, DataType, RowField, RowType, ScalarType
from bridge.ways import NotThisWay

_STRING = ScalarType("STRING")


def canal(spec: FormatSpec, key: Sequence[str]) -> ChangeArrowDecoder:
    """Return the decoder of Canal's documents. Raises NotThisWay."""
    options = CdcOptions.of(spec.options)
    if options.database_include is not None or options.table_include is not None:
        raise NotThisWay(f"{spec.name} has a pattern of databases or tables")
    return _decoder(spec, key, CANAL, several=True)


def maxwell(spec: FormatSpec, key: Sequence[str]) -> ChangeArrowDecoder:
    """Return the decoder of Maxwell's documents. Raises NotThisWay."""
    return _decoder(spec, key, MAXWELL, several=False)


def _decoder(spec: FormatSpec, key: Sequence[str], words: Operations, *, several: bool) -> ChangeArrowDecoder:
    refuse_unread(spec.row)
    before = before_image_type(spec.row, key)
    if null_is_not_absent(spec.row, before):
        if before == spec.row:
            raise NotThisWay("all columns are in the PRIMARY KEY")
        raise NotThisWay(
            "columns of the PRIMARY KEY or of delta.sequence-by are not NOT NULL, and 'old' of "
            f"{spec.name} may have nulls for them"
        )
    iso_8601 = CdcOptions.of(spec.options).json.iso_8601
    return ChangedFieldsArrowDecoder(spec.row, before, words, several, iso_8601)


@dataclass(frozen=True)
class ChangedFieldsArrowDecoder:
    """Decodes documents of rows of one operation, one row or a list of them."""

    row: RowType
    before: RowType
    """The key's fields. In `old`, a null field of these means the same as a missing one: it has not changed."""
    words: Operations
    several: bool
    """Whether `data` and `old` are lists of rows."""
    iso_8601: bool = False

    def decode(self, payloads: pa.BinaryArray) -> ArrowChanges:
        """See ChangeArrowDecoder.decode. All documents have values of their types, or all have texts."""
        documents = documents_of(payloads)
        if not len(documents):
            return no_changes(self.row, self.before)
        first, second = (self._texts, self._typed) if self.several else (self._typed, self._texts)
        try:
            return first(documents)
        except NotThisWay:
            return second(documents)

    def _typed(self, documents: pa.BinaryArray) -> ArrowChanges:
        return self._changes(*self._read(documents, self.row, self.before))

    def _texts(self, documents: pa.BinaryArray) -> ArrowChanges:
        data, old, operations = self._read(documents, text_row(self.row), text_row(self.before))
        return self._changes(
            typed_values(data, self._rows(self.row), iso_8601=self.iso_8601),
            typed_values(old, self._rows(self.before), iso_8601=self.iso_8601),
            operations,
        )

    def _rows(self, row: RowType) -> DataType:
        return ArrayType(row) if self.several else row

    def _read(
        self, documents: pa.BinaryArray, row: RowType, before: RowType
    ) -> tuple[pa.Array, pa.Array, pa.StringArray]:
        types = (("data", self._rows(row)), ("old", self._rows(before)), (self.words.field, _STRING))
        document = RowType(tuple(RowField(name, type) for name, type in types))
        data, old, operations = (
            JsonArrowDecoder(document, self.iso_8601, numbers=Numbers.TREES).decode(documents).columns
        )
        return data.combine_chunks(), old.combine_chunks(), operations.combine_chunks()

    def _changes(self, data: pa.Array, old: pa.Array, operations: pa.StringArray) -> ArrowChanges:
        words = self.words
        if not is_one_of(operations, words.known).all():
            raise NotThisWay(f"field {words.field!r} of a change is missing or unknown")
        skipped = is_one_of(operations, words.skipped)
        if skipped.any():
            data, old, operations = (values.filter(pa.array(~skipped)) for values in (data, old, operations))
        missing = data.null_count
        if self.several and not missing:
            data, old, operations = _one_row_each(data, old, operations)
            missing = data.null_count
        if missing:
            raise NotThisWay("field 'data' of a change is null or missing, or has no row")
        updates, deletes = is_one_of(operations, (words.update,)), is_one_of(operations, (words.delete,))
        retracts = deletes | (updates & old.is_valid().to_numpy(zero_copy_only=False))
        before = _before_images(data, old, deletes, self.before)
        return made_changes(data, ~deletes, before, retracts, deletes, self.row, self.before)


def _one_row_each(
    data: pa.ListArray, old: pa.ListArray, operations: pa.StringArray
) -> tuple[pa.StructArray, pa.StructArray, pa.StringArray]:
    """Return the rows of all documents, and for each row of `data` its `old`, null for none, and its operation."""
    counts, old_counts = _lengths(data), _lengths(old)
    documents = np.repeat(np.arange(len(data)), counts)
    within = np.arange(len(documents)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.cumsum(old_counts) - old_counts
    places = pa.array(starts[documents] + within, mask=within >= old_counts[documents])
    return data.flatten(), old.flatten().take(places), operations.take(pa.array(documents))


def _lengths(lists: pa.ListArray) -> Places:
    lengths: Places = pc.fill_null(lists.value_lengths(), 0).to_numpy(zero_copy_only=False)
    return lengths


def _before_images(
    data: pa.StructArray, old: pa.StructArray, deletes: npt.NDArray[np.bool_], type: RowType
) -> pa.StructArray:
    """Return the before images: of a delete the row itself, of an update its `old`, completed by its row."""
    fields, gone, old_fields = [], pa.array(deletes), old.flatten()
    for n, field in enumerate(type.fields):
        value = data.field(field.name)
        fields.append(pc.if_else(gone, value, pc.coalesce(old_fields[n], value)))
    return pa.StructArray.from_arrays(fields, fields=list(arrow_type(type)))
