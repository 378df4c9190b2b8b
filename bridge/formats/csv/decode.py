"""Lines of CSV to rows (flink-csv, CsvRowDataDeserializationSchema).

The fast path reads usual lines by one `from_csv`, and of each type the usual texts; all others need a full decode.
Spark's parser (univocity) reads a line as Jackson does when quotes enclose whole fields, nothing is escaped or broken
into lines, and the number of fields is the row's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from bridge.format_rules.csv_options import CsvOptions, check
from bridge.formats.base import NEEDS_FULL_DECODE, NOTHING, Options
from bridge.formats.csv.encode import CsvEncoder
from bridge.formats.csv.scalars import usual_value, value
from bridge.formats.csv.tokens import BLANK, CONTROLS, Tokens, item_or_null, pattern, split, text_or_null
from bridge.formats.sql import (
    INSERT,
    Names,
    SqlDecoder,
    apply,
    let,
    literal,
    member,
    null,
    struct,
    with_sql_column,
)
from bridge.schema import ArrayType, DataType, RowField, RowType, ScalarType


class FastPath:
    """SQL of lines of one shape, which Spark compiles except for lists and rows in columns."""

    def __init__(self, row: RowType, options: CsvOptions) -> None:
        self.row, self.options, self.from_csv = row, options, _FromCsv(row, options)

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


MALFORMED = (
    "malformed CSV: a quoted value is not closed or is followed by text, an escape ends the document, or there is "
    "nothing but comments"
)
_NOT_UTF8 = "not valid UTF-8"
# So Jackson finds out how a document is encoded.
_UTF16, _BEGINS_AS_UTF16 = "not valid UTF-8: it begins as a document in UTF-16 does", r"^[\x00-\x7f]?\x00"
_EMPTY = "CAST(array() AS ARRAY<STRING>)"


class CsvDecoder(SqlDecoder):
    """Reads the first line of a document and ignores what follows its line break, as Flink does.

    A document of no bytes is a line with one empty field (ADR 028, rule 2). Texts are null only where they equal
    the null literal; an empty number is an error, an empty string is data. Under ignore-parse-errors a bad or
    absent field is null; a malformed line, or one with too many fields, is still an error, and so skipped.
    """

    def __init__(self, row: RowType, options: CsvOptions) -> None:
        self.row = row
        self.options = options
        self.skips_errors = options.ignore_parse_errors

    def decode(self, payload: Column) -> Column:
        """See Decoder.decode."""
        names = Names()
        variable = names.fresh()
        body = let(names, f"CAST({variable} AS STRING)", lambda t: self.document(t, names, fast=False))
        return apply(payload, body, variable)

    def decode_fast(self, frame: DataFrame, payload: Column, name: str) -> DataFrame:
        """See FastPathDecoder.decode_fast. Unusual lines, malformed ones included, need a full decode."""
        text = payload.cast("string")
        return with_sql_column(frame, text, name, lambda t, names: self.document(t, names, fast=True))

    def document(self, text: str, names: Names, *, fast: bool) -> str:
        if fast:
            decoded = FastPath(self.row, self.options).outcome(text, names)
        else:
            decoded = let(names, _Line(self.row, self.options, names).node(text), self._of_node)
        return (
            f"CASE WHEN {text} IS NULL THEN {self.bad(null('STRING'))} "
            f"WHEN NOT is_valid_utf8({text}) THEN {self.bad(literal(_NOT_UTF8))} "
            f"WHEN left({text}, 2) RLIKE {literal(_BEGINS_AS_UTF16)} THEN {self.bad(literal(_UTF16))} "
            f"ELSE {decoded} END"
        )

    def _of_node(self, node: str) -> str:
        rows = f"array({struct(kind=INSERT, row=f'{node}.v')})"
        return struct(rows=f"IF({node}.e IS NULL, {rows}, NULL)", error=f"{node}.e")


class _Line:
    """SQL for the node of a line: struct<v: row, e: error>."""

    def __init__(self, row: RowType, options: CsvOptions, names: Names) -> None:
        self.row, self.options, self.names = row, options, names
        self.tokens = Tokens(options, names)
        self.from_csv = _FromCsv(row, options)

    def node(self, text: str) -> str:
        """Return the node, by `from_csv` where that reads what Flink reads."""
        if not self.from_csv.possible:
            return self._full_decode(text)

        def of_parsed(parsed: str) -> str:
            tokens = [self.from_csv.token(parsed, i) for i, _ in enumerate(self.row.fields)]
            fields = self._fields(tokens, [self._text(token) for token in tokens])
            return f"IF({self.from_csv.needs_full_decode(text, parsed)}, {self._full_decode(text)}, {fields})"

        return let(self.names, self.from_csv.parse(text), of_parsed)

    def _full_decode(self, text: str) -> str:
        def counted(tokens: str) -> str:
            expected, size = len(self.row.fields), f"size({tokens})"
            # Jackson accepts one blank field more than there are columns.
            more = f"{size} = {expected + 1} AND {tokens}[{expected}] RLIKE {literal(BLANK)}"
            exact = (
                f"({size} = {expected} OR ({more}))"
                if self.options.trailing_comma
                else f"{size} = {expected}"
            )
            if self.options.ignore_more:
                exact = f"{size} >= {expected}"
            if self.options.ignore_parse_errors and not self.options.fail_on_fewer:
                # A document of no bytes is an error all the same.
                exact = f"({exact} OR ({size} < {expected} AND {text} <> ''))"
            places = [f"get({tokens}, {i})" for i in range(expected)]
            fields = self._fields(places, [self._text(place) for place in places])
            wrong = f"concat('Row length mismatch. {expected} fields expected but was ', {size}, '.')"
            return (
                f"CASE WHEN {tokens} IS NULL THEN {self._failed(literal(MALFORMED))} "
                f"WHEN {exact} THEN {fields} ELSE {self._failed(wrong)} END"
            )

        return let(self.names, self.tokens.of(text), counted)

    def _failed(self, error: str) -> str:
        return struct(v=null(self.row.spark()), e=error)

    def _fields(self, tokens: list[str], texts: list[str]) -> str:
        """Return the node of fields with these tokens, and texts (null for the null literal)."""
        nested = [(i, f) for i, f in enumerate(self.row.fields) if not isinstance(f.type, ScalarType)]
        if not nested:
            return self._node(texts, "")
        parts = struct(**{f"p{i}": self._parts(tokens[i]) for i, _ in nested})
        return let(self.names, parts, lambda p: self._node(texts, p))

    def _parts(self, token: str) -> str:
        """Return the texts of an array's elements or a row's fields, to which alone the null literal applies."""
        item = self.names.fresh()
        parts = split(token, self.options.array_delimiter)
        if item_or_null(item, self.options) != item:
            parts = f"transform({parts}, {item} -> {item_or_null(item, self.options)})"
        return f"IF({token} RLIKE {literal(BLANK)}, {_EMPTY}, {parts})"

    def _text(self, token: str) -> str:
        return text_or_null(token, self.options)

    def _node(self, texts: list[str], parts: str) -> str:
        places = [f"{parts}.p{i}" if parts else "" for i in range(len(self.row.fields))]
        fields = list(enumerate(self.row.fields))
        pairs = [f"{literal(f.name)}, {self._value(f, texts[i], places[i])}" for i, f in fields]
        made = f"named_struct({', '.join(pairs)})"

        def bad(v: str) -> list[str]:
            return [case for i, f in fields for case in self._bad(f, member(v, f.name), texts[i], places[i])]

        if self.options.ignore_parse_errors or not bad(""):
            return struct(v=made, e=null("STRING"))
        return let(self.names, made, lambda v: struct(v=v, e=f"CASE {' '.join(bad(v))} END"))

    def _value(self, field: RowField, text: str, parts: str) -> str:
        if isinstance(field.type, ScalarType):
            return value(text, field.type, self.names)
        if isinstance(field.type, ArrayType):
            assert isinstance(field.type.element, ScalarType)
            item = self.names.fresh()
            return f"transform({parts}, {item} -> {value(item, field.type.element, self.names)})"
        assert isinstance(field.type, RowType)
        pairs = [
            f"{literal(f.name)}, {value(f'get({parts}, {i})', f.type, self.names)}"
            for i, f in enumerate(field.type.fields)
            if isinstance(f.type, ScalarType)
        ]
        absent = f"size({parts}) = 0"
        if not self.options.ignore_parse_errors:
            absent = f"size({parts}) < {len(field.type.fields)}"
        return f"IF({parts} IS NULL OR {absent}, NULL, named_struct({', '.join(pairs)}))"

    def _bad(self, field: RowField, value: str, text: str, parts: str) -> list[str]:
        """Return branches of a CASE with the errors of `field`, which was converted to `value`."""
        if isinstance(field.type, ScalarType):
            if field.type.is_string:
                return []
            return [_when(f"{value} IS NULL AND {text} IS NOT NULL", field.name, field.type)]
        if isinstance(field.type, ArrayType):
            assert isinstance(field.type.element, ScalarType)
            if field.type.element.is_string:
                return []
            unread = f"size(filter({value}, x -> x IS NULL)) > size(filter({parts}, x -> x IS NULL))"
            return [_when(unread, f"{field.name}[]", field.type.element)]
        assert isinstance(field.type, RowType)
        size, expected = f"size({parts})", len(field.type.fields)
        name = literal(f"field '{field.name}': Row length mismatch. {expected} fields expected but was ")
        short = f"WHEN {size} BETWEEN 1 AND {expected - 1} THEN concat({name}, {size}, '.')"
        inner = [
            _when(
                f"{value} IS NOT NULL AND {member(value, f.name)} IS NULL AND get({parts}, {i}) IS NOT NULL",
                f"{field.name}.{f.name}",
                f.type,
            )
            for i, f in enumerate(field.type.fields)
            if isinstance(f.type, ScalarType) and not f.type.is_string
        ]
        return [short, *inner] if expected > 1 else inner


def _when(condition: str, path: str, type: ScalarType) -> str:
    return f"WHEN {condition} THEN {literal(f'field {chr(39)}{path}{chr(39)} cannot be read as {type.name}')}"


_COMMON = frozenset(",;|\"'~^")
"""Delimiters and quotes that are neither white space nor in numbers, moments and base64."""


@dataclass(frozen=True)
class _FromCsv:
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


class CsvFormat:
    """Decodes what flink-csv decodes; encodes the same bytes."""

    name = "csv"

    def decoder(
        self, row: RowType, options: Options, *, metadata: RowType = NOTHING, key: Sequence[str] = ()
    ) -> CsvDecoder:
        """See Format.decoder."""
        check(self.name, row)
        return CsvDecoder(row, CsvOptions.of(options))

    def encoder(self, row: RowType, options: Options) -> CsvEncoder:
        """See Format.encoder."""
        check(self.name, row)
        return CsvEncoder(row, CsvOptions.of(options))
