"""Splits lines by one `from_csv`, where its result is the same as Flink's.

Spark's parser (univocity) reads a line as Jackson does when quotes enclose whole fields and nothing is escaped or
broken into lines. Other lines, and those of another number of fields than the row's, need a full decode.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.format_rules.csv_options import CsvOptions
from bridge.formats.csv.shape import CONTROLS, pattern
from bridge.formats.sql import literal
from bridge.schema import DataType, RowType, ScalarType

_COMMON = frozenset(",;|\"'~^")
"""Delimiters and quotes that are neither white space nor in numbers, moments and base64."""


@dataclass(frozen=True)
class FromCsv:
    """SQL of the fields of lines of one shape."""

    row: RowType
    options: CsvOptions

    @property
    def possible(self) -> bool:
        """Return False where univocity has no counterpart of the options."""
        return self.options.quote is not None

    def parse(self, text: str) -> str:
        """Return the struct c0, c1, ..., corrupt of a line; null where the parsers may differ."""
        columns = [f"c{i}: STRING" for i, _ in enumerate(self.row.fields)]
        schema = f"STRUCT<{', '.join([*columns, 'corrupt: STRING'])}>"
        quote = self.options.quote or ""
        settings = {
            "sep": self.options.delimiter,
            "quote": quote,
            "escape": quote,
            "nullValue": "",
            "emptyValue": "",
            "columnNameOfCorruptRecord": "corrupt",
        }
        pairs = ", ".join(literal(part) for pair in settings.items() for part in pair)
        return f"from_csv(IF({self._is_usual(text)}, {text}, NULL), {literal(schema)}, map({pairs}))"

    def needs_full_decode(self, text: str, parsed: str) -> str:
        """Return a condition, never null: true where the line needs a full decode."""
        return f"{parsed} IS NULL OR {parsed}.corrupt IS NOT NULL OR ({self._has_odd_quotes(text, parsed)})"

    def token(self, parsed: str, i: int) -> str:
        """Return the text of field `i`."""
        text = f"coalesce({parsed}.c{i}, '')"
        return f"trim(BOTH {literal(CONTROLS)} FROM {text})" if self.options.trim else text

    def _is_usual(self, text: str) -> str:
        # Quoted text is not trimmed, and afterwards it can no longer be distinguished.
        quote = self.options.quote if self.options.trim else None
        special = [c for c in (self.options.escape, "\n", "\r", quote) if c]
        # Spark takes a line that begins with NUL for a comment.
        first = ["\0", "\ufeff", *(" #" if self.options.allow_comments else "")]
        conditions = [f"NOT startswith({text}, {literal(c)})" for c in first]
        conditions += [f"NOT contains({text}, {literal(c)})" for c in special]
        return f"{text} <> '' AND {' AND '.join(conditions)}"

    def _has_odd_quotes(self, text: str, parsed: str) -> str:
        """Return whether a line has quotes other than those that enclose fields."""
        delimiter, quote = self.options.delimiter, self.options.quote or ""
        d, q, mark = pattern(delimiter), pattern(quote), literal(quote)
        # Quotes first: the other alternative matches nothing before a quote, and possessive matches are final.
        field = rf"(?:{q}(?:[^{q}]++|{q}{q})*+{q}|[^{d}{q}]*+)"
        odd = f"NOT {text} RLIKE " + literal(rf"\A{field}(?:{d}{field})*+\z")
        if delimiter in _COMMON and quote in _COMMON:
            # The parsers agree where no field holds a quote and the last one is closed, which is cheaper to check.
            # A quote in a value of another type is an error of the conversion.
            tokens = [self.token(parsed, i) for i, _ in enumerate(self.row.fields)]
            with_quotes = [
                f"contains({t}, {mark})"
                for t, f in zip(tokens, self.row.fields, strict=True)
                if _may_have_quotes(f.type)
            ]
            odd = f"({' OR '.join([*with_quotes, f'endswith({text}, concat({mark}, {tokens[-1]}))'])}) AND {odd}"
        # Between quotes univocity takes NUL for the escape of an escape.
        return f"contains({text}, {mark}) AND (contains({text}, {literal(chr(0))}) OR {odd})"


def _may_have_quotes(type: DataType) -> bool:
    """Return whether a quote may be part of a value of `type`."""
    return not isinstance(type, ScalarType) or type.is_string
