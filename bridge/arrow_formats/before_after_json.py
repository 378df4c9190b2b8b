"""Change documents in JSON with a row's `before` and `after` images to Arrow: Debezium's and GoldenGate's.

The envelope is read as a row that contains the table's row twice, by the decoder of JSON documents: of a before image
the key's fields alone (docs/adr/014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from bridge.arrow_formats.base import ArrowChanges, ChangeArrowDecoder
from bridge.arrow_formats.changes import before_after_changes, check_available, documents_of, no_changes
from bridge.arrow_formats.json import JsonArrowDecoder, refuse_unread
from bridge.definition import FormatSpec
from bridge.format_rules.change_documents import DEBEZIUM, OGG, CdcOptions, Operations, before_image_type
from bridge.schema import RowField, RowType, ScalarType
from bridge.ways import NotThisWay

_WRAPPER = "payload"


def debezium(spec: FormatSpec, key: Sequence[str]) -> ChangeArrowDecoder:
    """Return the decoder of Debezium's documents, with Kafka Connect's schema or without. Raises NotThisWay."""
    wrapper = _WRAPPER if CdcOptions.of(spec.options).schema_include else ""
    return _decoder(spec, key, DEBEZIUM, wrapper=wrapper, has_unavailable=True)


def ogg(spec: FormatSpec, key: Sequence[str]) -> ChangeArrowDecoder:
    """Return the decoder of GoldenGate's documents. Raises NotThisWay."""
    return _decoder(spec, key, OGG)


def _decoder(
    spec: FormatSpec,
    key: Sequence[str],
    words: Operations,
    *,
    wrapper: str = "",
    has_unavailable: bool = False,
) -> ChangeArrowDecoder:
    refuse_unread(spec.row)
    row, before = spec.row, before_image_type(spec.row, key)
    event = RowType(
        (RowField("before", before), RowField("after", row), RowField(words.field, ScalarType("STRING")))
    )
    document = RowType((RowField(wrapper, event),)) if wrapper else event
    options = CdcOptions.of(spec.options).json
    documents = JsonArrowDecoder(document, options.iso_8601, options.numbers)
    return BeforeAfterArrowDecoder(documents, row, before, words, bool(wrapper), has_unavailable)


@dataclass(frozen=True)
class BeforeAfterArrowDecoder:
    """Decodes documents of one change each. A document of another operation (truncate, message) needs a full decode."""

    documents: JsonArrowDecoder
    row: RowType
    before: RowType
    """The key's fields."""
    words: Operations
    is_wrapped: bool = False
    has_unavailable: bool = False
    """Whether a value may be Debezium's placeholder."""

    def decode(self, payloads: pa.BinaryArray) -> ArrowChanges:
        """See ChangeArrowDecoder.decode."""
        documents = documents_of(payloads)
        if not len(documents):
            return no_changes(self.row, self.before)
        columns = [column.combine_chunks() for column in self.documents.decode(documents).columns]
        if self.is_wrapped:
            (events,) = columns
            if events.null_count:
                raise NotThisWay(f"field {_WRAPPER!r} is null or missing")
            columns = events.flatten()
        before, after, operations = columns
        if self.has_unavailable:
            check_available(before)
            check_available(after)
        return before_after_changes(before, after, operations, self.words, self.row, self.before)
