"""Operations and images of change documents to changes, as Spark's decoders of CDC formats make them of each document.

What these report as an error raises NotThisWay: Spark's path names the record, or drops it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.arrow_formats.arrow_types import arrow_schema
from bridge.arrow_formats.base import ArrowChanges, Places
from bridge.format_rules.change_documents import PLACEHOLDER, Operations
from bridge.schema import RowType
from bridge.ways import NotThisWay

_Flags = npt.NDArray[np.bool_]
_PLACEHOLDER_BYTES = list(PLACEHOLDER.encode())


def documents_of(payloads: pa.BinaryArray) -> pa.BinaryArray:
    """Return the payloads that are documents: null and zero bytes are none (a source's tombstones)."""
    sizes = pc.binary_length(payloads)
    if not payloads.null_count and (pc.min(sizes).as_py() or 0) > 0:
        return payloads
    return payloads.filter(pc.greater(sizes, 0))


def before_after_changes(
    before: pa.StructArray,
    after: pa.StructArray,
    operations: pa.StringArray,
    words: Operations,
    row: RowType,
    key_row: RowType,
) -> ArrowChanges:
    """Return the changes of documents with both images of a row, for a table with a key.

    An insert is +I; an update +U, after -U where it has a before image; a delete is -D, and needs one.
    """
    inserts, updates = is_one_of(operations, words.insert), is_one_of(operations, (words.update,))
    deletes = is_one_of(operations, (words.delete,))
    adds = inserts | updates
    if not (adds | deletes).all():
        raise NotThisWay(f"field {words.field!r} of a change is missing or unknown")
    has_before, has_after = _is_there(before), _is_there(after)
    if not has_after[adds].all():
        raise NotThisWay("a change has no after image")
    if not has_before[deletes].all():
        raise NotThisWay("a delete has no before image")
    retracts = deletes | (updates & has_before)
    return made_changes(after, adds, before, retracts, deletes, row, key_row)


def made_changes(
    after: pa.StructArray,
    adds: _Flags,
    before: pa.StructArray,
    retracts: _Flags,
    deletes: _Flags,
    row: RowType,
    key_row: RowType,
) -> ArrowChanges:
    """Return, for each row in order, what it retracts and then what it adds; the images of these are not null."""
    added, retracted = np.flatnonzero(adds), np.flatnonzero(retracts)
    return ArrowChanges(
        _table(after, added, row),
        2 * added + 1,
        _table(before, retracted, key_row),
        2 * retracted,
        deletes[retracted],
    )


def no_changes(row: RowType, key_row: RowType) -> ArrowChanges:
    """Return the changes of no documents."""
    none = np.empty(0, np.int64)
    rows, keys = arrow_schema(row).empty_table(), arrow_schema(key_row).empty_table()
    return ArrowChanges(rows, none, keys, none, np.empty(0, np.bool_))


def is_one_of(texts: pa.StringArray, words: Sequence[str]) -> _Flags:
    """Return for each text whether it is one of `words`; false for null."""
    found: _Flags = pc.is_in(texts, value_set=pa.array(words, pa.string())).to_numpy(zero_copy_only=False)
    return found


def check_available(image: pa.StructArray) -> None:
    """Raise NotThisWay where a field of an image is Debezium's placeholder for an unavailable value."""
    for field, values in zip(image.type, image.flatten(), strict=True):
        if pa.types.is_list(field.type):
            found = _has_placeholder_list(values)
        elif pa.types.is_string(field.type):
            found = pc.any(pc.equal(values, PLACEHOLDER)).as_py()
        else:
            found = False
        if found:
            raise NotThisWay(f"field {field.name!r} of a change has an unavailable value")


def _has_placeholder_list(lists: pa.ListArray) -> bool:
    if pa.types.is_string(lists.type.value_type):
        return bool(pc.any(pc.equal(lists.flatten(), PLACEHOLDER)).as_py())
    if not pa.types.is_integer(lists.type.value_type):
        return False
    suspects = lists.filter(pc.equal(pc.list_value_length(lists), len(_PLACEHOLDER_BYTES)))
    return _PLACEHOLDER_BYTES in suspects.to_pylist()


def _is_there(values: pa.Array) -> _Flags:
    flags: _Flags = values.is_valid().to_numpy(zero_copy_only=False)
    return flags


def _table(images: pa.StructArray, rows: Places, type: RowType) -> pa.Table:
    if len(rows) < len(images):
        images = images.take(pa.array(rows))
    return pa.Table.from_arrays(images.flatten(), schema=arrow_schema(type))
