"""Lines of CSV to Arrow, by Arrow's own reader: lines as serializers write them, and of each type the usual texts.

The reader only splits lines, with every field as text. Lines that Flink (Jackson) may split otherwise are found first.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from bridge.arrow_formats.arrow_types import arrow_schema
from bridge.arrow_formats.base import ArrowDecoder
from bridge.arrow_formats.text_values import as_lines, usual_values
from bridge.definition import FormatSpec
from bridge.format_rules.csv_options import CsvOptions
from bridge.schema import RowType, ScalarType
from bridge.ways import NotThisWay

_BOM = "\ufeff"


def decoder(spec: FormatSpec) -> ArrowDecoder:
    """Return the decoder of a csv format. Raises NotThisWay.

    A bad line does so, too, so that options about bad lines need not be known.
    """
    options = CsvOptions.of(spec.options)
    for field in spec.row.fields:
        if not isinstance(field.type, ScalarType) or field.type.is_binary:
            raise NotThisWay(f"field {field.name!r} of a line is {field.type.flink()}")
    if not spec.row.fields:
        raise NotThisWay("a line has no fields")
    if options.escape is not None or options.trim or options.allow_comments:
        raise NotThisWay(f"{spec.name} has escapes, comments, or spaces to be trimmed")
    special = options.delimiter + (options.quote or "")
    if not special.isascii() or options.delimiter == options.quote or options.quote in ("\r", "\n"):
        raise NotThisWay(f"{spec.name} has an unusual delimiter or quote")
    return CsvArrowDecoder(
        spec.row, options.delimiter, options.quote, options.null_literal, options.empty_as_null
    )


@dataclass(frozen=True)
class CsvArrowDecoder:
    """Decodes documents that are one line each, of as many fields as the row has, without a line break."""

    row: RowType
    delimiter: str = ","
    quote: str | None = '"'
    null_literal: str | None = None
    empty_as_null: bool = False

    def decode(self, payloads: pa.BinaryArray) -> pa.Table:
        """See ArrowDecoder.decode."""
        if not len(payloads):
            return arrow_schema(self.row).empty_table()
        texts = self._split(self._checked_lines(payloads), len(payloads))
        columns = [
            self._column(t.combine_chunks(), f.type, f.name)
            for t, f in zip(texts, self.row.fields, strict=True)
        ]
        return pa.table(columns, schema=arrow_schema(self.row))

    def _checked_lines(self, payloads: pa.BinaryArray) -> bytes:
        """Join documents by line feeds where Arrow's reader splits each as Jackson does."""
        if not pc.min(pc.binary_length(payloads)).as_py():
            raise NotThisWay("a document is empty")
        texts, data = as_lines(payloads)
        if data.count(b"\n") >= len(texts) or b"\r" in data or b"\0" in data:
            raise NotThisWay("a document has a line break or a NUL")
        if _BOM.encode() in data and pc.any(pc.starts_with(texts, _BOM)).as_py():
            raise NotThisWay("a document has a byte order mark")
        if self.quote is not None and self.quote.encode() in data and self._has_odd_quotes(texts):
            raise NotThisWay("a document has quotes that do not enclose a field")
        return data

    def _has_odd_quotes(self, texts: pa.StringArray) -> bool:
        assert self.quote is not None
        delimiter, quote = (f"\\x{{{ord(c):x}}}" for c in (self.delimiter, self.quote))
        field = f"(?:{quote}(?:[^{quote}]|{quote}{quote})*{quote}|[^{quote}{delimiter}]*)"
        quoted = texts.filter(pc.match_substring(texts, self.quote))
        return not pc.all(pc.match_substring_regex(quoted, rf"\A{field}(?:{delimiter}{field})*\z")).as_py()

    def _split(self, data: bytes, count: int) -> list[pa.ChunkedArray]:
        names = [str(at) for at, _ in enumerate(self.row.fields)]
        try:
            table = csv.read_csv(
                pa.BufferReader(data),
                read_options=csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
                parse_options=csv.ParseOptions(
                    delimiter=self.delimiter, quote_char=self.quote or False, ignore_empty_lines=False
                ),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), null_values=[], strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid:  # its text has payload
            raise NotThisWay("a document has more or fewer fields than the row") from None
        if table.num_rows != count:
            raise NotThisWay("a document is not one line")
        return list(table.columns)

    def _column(self, texts: pa.StringArray, type: object, name: str) -> pa.Array:
        assert isinstance(type, ScalarType)
        for null in (self.null_literal, "" if self.empty_as_null else None):
            if null is not None:
                texts = pc.if_else(pc.equal(texts, null), pa.scalar(None, pa.string()), texts)
        try:
            return usual_values(texts, type)
        except pa.ArrowInvalid:  # its text has payload
            raise NotThisWay(f"field {name!r} has an unusual {type.name}") from None
