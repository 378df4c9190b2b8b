"""The fast path: one `from_csv` with types, taken only where its result is Flink's, too.

Spark's parser (univocity) reads a line as Jackson does when quotes enclose whole fields and nothing is escaped or
broken into lines. It gives null for an empty field as for the null literal, and it cannot tell how many fields a
line had; such lines, and those with a value that Spark refuses, are in doubt and go the other path.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.formats.csv.options import CsvOptions
from bridge.formats.csv.shape import pattern
from bridge.formats.sql import literal, null
from bridge.schema import DataType, RowType, ScalarType

__all__ = ["Fast"]

_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN")
# Years beyond four digits have other rules in Spark.
_USUAL = {
    "DATE": "DATE '0001-01-01' AND DATE '9999-12-31'",
    "TIMESTAMP": "TIMESTAMP_NTZ '0001-01-01 00:00:00' AND TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'",
    "TIMESTAMP_LTZ": "TIMESTAMP '0001-01-01 00:00:00Z' AND TIMESTAMP '9999-12-31 23:59:59.999999Z'",
}


@dataclass(frozen=True)
class Fast:
    """SQL for the fast path over lines of one shape."""

    row: RowType
    options: CsvOptions

    @property
    def possible(self) -> bool:
        """False where univocity has no counterpart of the options."""
        return self.options.quote is not None

    def parse(self, text: str) -> str:
        """The struct c0, c1, ..., corrupt of a line; null where the parsers may differ."""
        columns = [
            f"c{i}: {f.type.spark() if self.is_ready(f.type) else 'STRING'}"
            for i, f in enumerate(self.row.fields)
        ]
        schema = f"STRUCT<{', '.join([*columns, 'corrupt: STRING'])}>"
        quote = self.options.quote or ""
        given = {
            "sep": self.options.delimiter,
            "quote": quote,
            "escape": quote,
            "nullValue": self.options.null_literal or "",
            "emptyValue": "",
            "nanValue": "NaN",
            "positiveInf": "Infinity",
            "negativeInf": "-Infinity",
            "dateFormat": "yyyy-MM-dd",
            "timestampNTZFormat": self._times("TIMESTAMP"),
            "timestampFormat": self._times("TIMESTAMP_LTZ") + "'Z'",
            "timeZone": "UTC",
            "enableDateTimeParsingFallback": "false",
            "columnNameOfCorruptRecord": "corrupt",
        }
        pairs = ", ".join(literal(part) for pair in given.items() for part in pair)
        return f"IF({self._calm(text)}, from_csv({text}, {literal(schema)}, map({pairs})), {null(schema)})"

    def is_ready(self, type: DataType) -> bool:
        """Whether `parse` gives values of `type` and not their texts: Spark converts those with Java's parsers."""
        return isinstance(type, ScalarType) and (type.name in _NUMBERS or type.name in _USUAL)

    def doubtful(self, parsed: str) -> str:
        """True when the line must go the other path."""
        doubts = [f"{parsed} IS NULL", f"{parsed}.corrupt IS NOT NULL"]
        for i, field in enumerate(self.row.fields):
            if self.is_ready(field.type):
                if self.options.null_literal is None:
                    doubts.append(f"{parsed}.c{i} IS NULL")
                if isinstance(field.type, ScalarType) and field.type.name in _USUAL:
                    doubts.append(f"{parsed}.c{i} NOT BETWEEN {_USUAL[field.type.name]}")
        return " OR ".join(doubts)

    def text(self, parsed: str, i: int) -> str:
        """The text of field `i`, null where it is the null literal."""
        return f"{parsed}.c{i}" if self.options.null_literal is not None else self.token(parsed, i)

    def token(self, parsed: str, i: int) -> str:
        """The text of field `i` whatever it is."""
        return f"coalesce({parsed}.c{i}, {literal(self.options.null_literal or '')})"

    def _times(self, name: str) -> str:
        """The format for all columns of one type; more digits than the shortest of them keeps are in doubt."""
        types = [f.type for f in self.row.fields if isinstance(f.type, ScalarType)]
        digits = min((t.parameters[0] for t in types if t.name == name), default=0)
        return "yyyy-MM-dd HH:mm:ss" + (f"[.{'S' * digits}]" if digits else "")

    def _calm(self, text: str) -> str:
        delimiter, quote = self.options.delimiter, self.options.quote or ""
        d, q, e = (pattern(c) if c else "" for c in (delimiter, quote, self.options.escape))
        whole = rf"(?:[^{d}{q}{e}\r\n]*+|{q}(?:[^{q}{e}\r\n]++|{q}{q})*+{q})"
        neat = rf"\A{whole}(?:{d}{whole})*+\z"
        special = [c for c in (self.options.escape, "\n", "\r") if c]
        plain = " AND ".join(f"NOT contains({text}, {literal(c)})" for c in special)
        # Spark takes a line that begins with NUL for a comment.
        first = ["\0", "\ufeff", *(" #" if self.options.allow_comments else "")]
        conditions = [f"NOT startswith({text}, {literal(c)})" for c in first]
        if self.options.null_literal:
            conditions += [
                f"NOT startswith({text}, {literal(delimiter)})",
                f"NOT endswith({text}, {literal(delimiter)})",
                f"NOT contains({text}, {literal(delimiter * 2)})",
            ]
        calm = f"IF(contains({text}, {literal(quote)}), {text} RLIKE {literal(neat)}, {plain})"
        return f"{text} <> '' AND {' AND '.join(conditions)} AND {calm}"
