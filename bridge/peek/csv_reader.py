"""Reads lines of CSV: names are those of the DDL's columns, in its order, and values stay text."""

from __future__ import annotations

import csv
import io
from typing import Any

from bridge.definition import FormatSpec
from bridge.format_rules.csv_options import CsvOptions
from bridge.peek.base import Reader, Undecodable, as_json


def reader(spec: FormatSpec) -> Reader:
    """Return a reader of lines with the fields of `spec`."""
    return _CsvReader(spec)


class _CsvReader:
    def __init__(self, spec: FormatSpec) -> None:
        options = CsvOptions.of(spec.options)
        self._names = spec.row.names
        self._options = options
        self._dialect: dict[str, Any] = {
            "delimiter": options.delimiter,
            "escapechar": options.escape,
            "quoting": csv.QUOTE_NONE if options.quote is None else csv.QUOTE_MINIMAL,
            "quotechar": options.quote or '"',
            "strict": True,
        }

    def __call__(self, document: bytes) -> str:
        try:
            rows = list(csv.reader(io.StringIO(document.decode(), newline=""), **self._dialect))
        except UnicodeDecodeError as bad:
            raise Undecodable(f"not UTF-8 at byte {bad.start}") from None
        except csv.Error as bad:
            raise Undecodable(f"not CSV: {bad}") from None
        cells = rows[0] if rows else []
        more, options = cells[len(self._names) :], self._options
        if options.ignore_more or (options.trailing_comma and len(more) == 1 and not more[0].strip()):
            cells = cells[: len(self._names)]
        if len(cells) != len(self._names):
            raise Undecodable(f"{len(cells)} fields, where the DDL has {len(self._names)} columns")
        return as_json(
            {
                name: None if cell == options.null_literal or (options.empty_as_null and not cell) else cell
                for name, cell in zip(self._names, cells, strict=True)
            }
        )
