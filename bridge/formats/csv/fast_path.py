"""csv's fast path: usual lines, and of each type the usual texts; all others need a full decode."""

from __future__ import annotations

from bridge.format_rules.csv_options import CsvOptions
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.formats.csv.from_csv import FromCsv
from bridge.formats.csv.scalars import usual_value
from bridge.formats.csv.shape import BLANK, item_or_null, text_or_null
from bridge.formats.csv.tokens import split
from bridge.formats.sql import Names, let, literal, member, null, struct
from bridge.schema import ArrayType, RowField, RowType, ScalarType

__all__ = ["FastPath"]


class FastPath:
    """SQL of lines of one shape, which Spark compiles except for lists and rows in columns."""

    def __init__(self, row: RowType, options: CsvOptions) -> None:
        self.row, self.options, self.from_csv = row, options, FromCsv(row, options)

    def outcome(self, text: str, names: Names) -> str:
        """Return the decoded column of a line; `text` is a column or a variable. Callers check that it is UTF-8."""
        if not self.from_csv.possible:
            return self.none(literal(NEEDS_FULL_DECODE))
        return let(
            names,
            self.from_csv.parse(text),
            lambda parsed: let(
                names,
                self._texts(parsed),
                lambda texts: self._of_texts(self.from_csv.needs_full_decode(text, parsed), texts, names),
            ),
        )

    def none(self, error: str) -> str:
        """Return the decoded column without rows; `error` is SQL."""
        return struct(rows=null(f"ARRAY<STRUCT<kind: STRING, row: {self.row.spark()}>>"), error=error)

    def _texts(self, parsed: str) -> str:
        """Return the struct t0, t1, ... of texts. They are null for the null literal, but those of lists and rows."""
        texts = {}
        for i, f in enumerate(self.row.fields):
            token = self.from_csv.token(parsed, i)
            texts[f"t{i}"] = self._text(token) if isinstance(f.type, ScalarType) else token
        return struct(**texts)

    def _text(self, token: str) -> str:
        return text_or_null(token, self.options)

    def _of_texts(self, needs_full_decode: str, texts: str, names: Names) -> str:
        fields = list(enumerate(self.row.fields))
        inner = names.lambdas()
        pairs = [f"{literal(f.name)}, {self._value(f, f'{texts}.t{i}', inner)}" for i, f in fields]

        def checked(made: str) -> str:
            reasons = [needs_full_decode]
            for i, f in fields:
                reasons += self._reasons(f, member(made, f.name), f"{texts}.t{i}")
            rows = struct(rows=f"array({struct(kind=literal('+I'), row=made)})", error=null("STRING"))
            return f"IF({' OR '.join(reasons)}, {self.none(literal(NEEDS_FULL_DECODE))}, {rows})"

        return let(names, f"named_struct({', '.join(pairs)})", checked)

    def _value(self, field: RowField, text: str, names: Names) -> str:
        if isinstance(field.type, ScalarType):
            return usual_value(text, field.type)
        parts = split(text, self.options.array_delimiter)
        if isinstance(field.type, ArrayType):
            assert isinstance(field.type.element, ScalarType)
            item = names.fresh()
            value = usual_value(item_or_null(item, self.options), field.type.element)
            return f"transform({parts}, {item} -> {value})"
        assert isinstance(field.type, RowType)
        pairs = [
            f"{literal(f.name)}, {usual_value(item_or_null(f'get({parts}, {i})', self.options), f.type)}"
            for i, f in enumerate(field.type.fields)
            if isinstance(f.type, ScalarType)
        ]
        return f"named_struct({', '.join(pairs)})"

    def _reasons(self, field: RowField, value: str, text: str) -> list[str]:
        """Return the conditions, never null, under which a field needs a full decode.

        A null in a list or row is one of them: it may come from a null literal or a bad text."""
        if isinstance(field.type, ScalarType):
            return [] if field.type.is_string else [f"({value} IS NULL AND {text} IS NOT NULL)"]
        blank = f"{text} RLIKE {literal(BLANK)}"
        if isinstance(field.type, ArrayType):
            assert isinstance(field.type.element, ScalarType)
            return [blank] if field.type.element.is_string else [blank, f"exists({value}, x -> x IS NULL)"]
        assert isinstance(field.type, RowType)
        size = f"size({split(text, self.options.array_delimiter)}) <> {len(field.type.fields)}"
        inner = [f for f in field.type.fields if isinstance(f.type, ScalarType) and not f.type.is_string]
        return [blank, size, *(f"{member(value, f.name)} IS NULL" for f in inner)]
