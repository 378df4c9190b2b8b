"""The fast path: one `from_csv` of texts, taken only where its result is Flink's, too.

Spark's parser (univocity) reads a line as Jackson does when quotes enclose whole fields and nothing is escaped or
broken into lines. Other lines, and those of another number of fields than the row's, are in doubt and go the slow path.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.format_rules.csv_options import CsvOptions
from bridge.formats.csv.shape import CONTROLS, pattern
from bridge.formats.sql import literal
from bridge.schema import DataType, RowType, ScalarType

__all__ = ["FromCsv"]

_COMMON = frozenset(",;|\"'~^")
"""Delimiters and quotes that are neither white space nor in numbers, moments and base64."""


@dataclass(frozen=True)
class FromCsv:
    """SQL for the fast path over lines of one shape."""

    row: RowType
    options: CsvOptions

    @property
    def possible(self) -> bool:
        """False where univocity has no counterpart of the options."""
        return self.options.quote is not None

    def parse(self, text: str) -> str:
        """The struct c0, c1, ..., corrupt of a line; null where the parsers may differ."""
        columns = [f"c{i}: STRING" for i, _ in enumerate(self.row.fields)]
        schema = f"STRUCT<{', '.join([*columns, 'corrupt: STRING'])}>"
        quote = self.options.quote or ""
        given = {
            "sep": self.options.delimiter,
            "quote": quote,
            "escape": quote,
            "nullValue": "",
            "emptyValue": "",
            "columnNameOfCorruptRecord": "corrupt",
        }
        pairs = ", ".join(literal(part) for pair in given.items() for part in pair)
        return f"from_csv(IF({self._calm(text)}, {text}, NULL), {literal(schema)}, map({pairs}))"

    def needs_full_decode(self, text: str, parsed: str) -> str:
        """True (never null) when the line must go the other path."""
        return f"{parsed} IS NULL OR {parsed}.corrupt IS NOT NULL OR ({self._muddled(text, parsed)})"

    def token(self, parsed: str, i: int) -> str:
        """The text of field `i`."""
        text = f"coalesce({parsed}.c{i}, '')"
        return f"trim(BOTH {literal(CONTROLS)} FROM {text})" if self.options.trim else text

    def _calm(self, text: str) -> str:
        # What quotes enclose is not trimmed, and afterwards nobody knows what they have enclosed.
        quote = self.options.quote if self.options.trim else None
        special = [c for c in (self.options.escape, "\n", "\r", quote) if c]
        # Spark takes a line that begins with NUL for a comment.
        first = ["\0", "\ufeff", *(" #" if self.options.allow_comments else "")]
        conditions = [f"NOT startswith({text}, {literal(c)})" for c in first]
        conditions += [f"NOT contains({text}, {literal(c)})" for c in special]
        return f"{text} <> '' AND {' AND '.join(conditions)}"

    def _muddled(self, text: str, parsed: str) -> str:
        """Whether there are quotes, and not only such as enclose fields."""
        delimiter, quote = self.options.delimiter, self.options.quote or ""
        d, q, mark = pattern(delimiter), pattern(quote), literal(quote)
        # Quotes first: the other way matches nothing before a quote, and what is possessive does not come back.
        field = rf"(?:{q}(?:[^{q}]++|{q}{q})*+{q}|[^{d}{q}]*+)"
        muddled = f"NOT {text} RLIKE " + literal(rf"\A{field}(?:{d}{field})*+\z")
        if delimiter in _COMMON and quote in _COMMON:
            # The parsers agree where no field holds a quote and the last one is not left open, which costs less to see.
            # A quote in a value of another type is seen when it is converted.
            tokens = [self.token(parsed, i) for i, _ in enumerate(self.row.fields)]
            held = [
                f"contains({t}, {mark})"
                for t, f in zip(tokens, self.row.fields, strict=True)
                if _holds(f.type)
            ]
            muddled = (
                f"({' OR '.join([*held, f'endswith({text}, concat({mark}, {tokens[-1]}))'])}) AND {muddled}"
            )
        # Between quotes NUL is univocity's escape of an escape.
        return f"contains({text}, {mark}) AND (contains({text}, {literal(chr(0))}) OR {muddled})"


def _holds(type: DataType) -> bool:
    """Whether a quote may be part of the value."""
    return not isinstance(type, ScalarType) or type.is_string
