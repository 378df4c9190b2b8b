"""Rows to JSON text, byte for byte as flink-json writes it (RowDataToJsonConverters).

Spark's `to_json` uses the same library with the same settings; only timestamps and decimals need conversion. Timestamps
become Flink's texts. Decimals become VARIANT, which Spark writes as plain numbers without trailing zeros, unless they
are written with all their digits; a document in which Java's text is another one (1E+2) is written once more, with
Java's texts in place of the numbers. Characters beyond 16 bits are escaped, as Jackson does where it writes bytes.

Documents without exponents involve no lambda function, since Spark compiles none: SQL of a value is repeated instead,
so values must be columns, variables, or members of those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bridge.format_rules.json_options import JsonOptions
from bridge.formats.java_text import PLAIN_PLACES, stripped
from bridge.formats.sql import Names, SqlEncoder, let, literal, member
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType, types

# Only this is between a quote and a number whose quotes are removed.
_MARK, _WRITTEN_MARK = "'\\u0001'", "'\\\\u0001'"
_UNQUOTED = r"""concat('"(?:', {mark}, ')([-+.0-9E]+)"')"""
_MARK_PATTERN = r"'\\\\u0001'"

_BEYOND_16_BITS = literal(r"[^\x{0}-\x{FFFF}]")
_ESCAPE = literal(r"\u")

# Every number of so many digits fits into a BIGINT.
_LONG_DIGITS = 18
_MICROS = 6


@dataclass(frozen=True)
class Part:
    """A member of an object. `value` is SQL; where `unless` is true, null is written instead."""

    name: str
    value: str
    type: DataType
    unless: str | None = None


def parts(value: str, row: RowType) -> list[Part]:
    """Return the members for the fields of the row `value`."""
    return [Part(f.name, member(value, f.name), f.type) for f in row.fields]


class JsonEncoder(SqlEncoder):
    """Writes one object per row: fields in row order, no spaces, null as null unless ignore-null-fields. Can write
    every value of Spark's, and so fails for no row."""

    def __init__(self, row: RowType, options: JsonOptions) -> None:
        self.row, self.options = row, options

    def payload(self, row: str, names: Names) -> str:
        return f"CAST({self.text(parts(row, self.row), f'{row} IS NOT NULL', names)} AS BINARY)"

    def text(self, members: Sequence[Part], when: str, names: Names) -> str:
        """Return SQL of the text of an object with these members where `when`, never null, is true; else of null."""
        made = self._unescaped(members, when, names)
        if not any(_is_text(t) for m in members for t in types(m.type)):
            return made
        return let(
            names, made, lambda t: f"IF({t} RLIKE {_BEYOND_16_BITS}, {_escaped(t, names.lambdas())}, {t})"
        )

    def _unescaped(self, members: Sequence[Part], when: str, names: Names) -> str:
        inner, plain_decimals = names.lambdas(), self.options.plain_decimals
        writer = _Writer(self.options, inner, _as_it_is if plain_decimals else _as_variant)
        plain = f"IF({when}, {writer.document(members)}, NULL)"
        differs = _has_exponent if plain_decimals else _wants_exponent
        reasons = " OR ".join(e for m in members if (e := writer.any(m.value, m.type, differs)))
        if not reasons:
            return plain

        def chosen(text: str, exponent: str) -> str:
            return f"IF({exponent}, {self._with_own_texts(members, text, inner)}, {text})"

        return let(names, plain, lambda t: let(names, f"{when} AND ({reasons})", lambda e: chosen(t, e)))

    def _with_own_texts(self, members: Sequence[Part], plain: str, names: Names) -> str:
        """Return the document with decimals as marked texts, from which mark and quotes are removed.

        No text of the row looks like a marked one: where the row contains the mark, a mark is used that is longer than
        the whole document."""

        def marked(size: str) -> str:
            def marked_text(value: str, type: ScalarType) -> str:
                text = _all_digits(value, type)
                if not self.options.plain_decimals:
                    text = stripped(text, type.parameters[1], names)
                return f"concat(repeat({_MARK}, {size}), {text})"

            return _Writer(self.options, names, marked_text).document(members)

        def unquoted(size: str) -> str:
            pattern = _UNQUOTED.format(mark=f"repeat({_MARK_PATTERN}, {size})")
            return f"regexp_replace({marked(size)}, {pattern}, '$1')"

        size = let(names, plain, lambda d: f"IF(contains({d}, {_WRITTEN_MARK}), length({d}), 1)")
        return let(names, size, unquoted)


class _Writer:
    """SQL of JSON text by `to_json`; `decimal` converts decimals for it."""

    def __init__(self, options: JsonOptions, names: Names, decimal: Callable[[str, ScalarType], str]) -> None:
        self.options, self.names, self.decimal = options, names, decimal

    def document(self, members: Sequence[Part]) -> str:
        """Return the JSON text of an object."""
        ignored = str(self.options.ignore_null_fields).lower()
        return f"to_json({self._struct(members)}, map('ignoreNullFields', '{ignored}'))"

    def any(self, value: str, type: DataType, test: Callable[[str, DataType], str | None]) -> str | None:
        """Return SQL that is true where `test` holds for a part of `value`; None where it can hold for none."""
        if isinstance(type, RowType):
            conditions = [self.any(member(value, f.name), f.type, test) for f in type.fields]
            return " OR ".join(c for c in conditions if c) or None
        if isinstance(type, ScalarType):
            return test(value, type)
        items = f"map_values({value})" if isinstance(type, MapType) else value
        item = self.names.fresh()
        assert isinstance(type, ArrayType | MapType)
        inner = self.any(item, type.element if isinstance(type, ArrayType) else type.value, test)
        return inner and f"exists({items}, {item} -> coalesce({inner}, FALSE))"

    def _struct(self, members: Sequence[Part]) -> str:
        pairs = [f"{literal(m.name)}, {self._value(m)}" for m in members]
        return f"named_struct({', '.join(pairs)})"

    def _value(self, member: Part) -> str:
        ready = self._ready(member.value, member.type)
        return f"IF({member.unless}, NULL, {ready})" if member.unless else ready

    def _ready(self, value: str, type: DataType) -> str:
        """Return `value` with decimals and timestamps converted for `to_json`."""
        if isinstance(
            type, RowType
        ):  # always rebuilt, as the names in the document are those of the row type
            return f"IF({value} IS NULL, NULL, {self._struct(parts(value, type))})"
        if not any(isinstance(t, RowType) or _is_timestamp(t) or _is_decimal(t) for t in types(type)):
            return value
        if isinstance(type, ScalarType):
            return self.decimal(value, type) if _is_decimal(type) else self._timestamp(value, type)
        item = self.names.fresh()
        if isinstance(type, ArrayType):
            return f"transform({value}, {item} -> {self._ready(item, type.element)})"
        assert isinstance(type, MapType)
        key = self.names.fresh()
        return f"transform_values({value}, ({key}, {item}) -> {self._ready(item, type.value)})"

    def _timestamp(self, value: str, type: ScalarType) -> str:
        precision = type.parameters[0]
        if precision < _MICROS:
            micros = f"unix_micros(CAST({value} AS TIMESTAMP))"
            cut = f"timestamp_micros({micros} - pmod({micros}, {10 ** (_MICROS - precision)}L))"
            value = f"CAST({cut} AS {type.spark()})"
        text = f"CAST({value} AS STRING)"
        if self.options.iso_8601:
            text = f"replace({text}, ' ', 'T')"
        return f"concat({text}, 'Z')" if type.name == "TIMESTAMP_LTZ" else text


def _as_variant(value: str, type: ScalarType) -> str:
    return f"CAST({value} AS VARIANT)" if type.parameters[1] else value


def _as_it_is(value: str, type: ScalarType) -> str:
    return value


def _has_exponent(value: str, type: DataType) -> str | None:
    """Return the condition under which Spark writes an exponent: for very small numbers and zeros."""
    if not (_is_decimal(type) and isinstance(type, ScalarType) and type.parameters[1] > PLAIN_PLACES):
        return None
    least = f"0.{'0' * (PLAIN_PLACES - 1)}1"
    low, high = (f"CAST('{n}' AS {type.spark()})" for n in (f"-{least}", least))
    return f"({value} > {low} AND {value} < {high})"


def _wants_exponent(value: str, type: DataType) -> str | None:
    """Return the condition under which Java writes an exponent: for multiples of ten, and for very small numbers."""
    if not _is_decimal(type):
        return None
    assert isinstance(type, ScalarType)
    precision, scale = type.parameters
    least = f"0.{'0' * (PLAIN_PLACES - 1)}1"
    zero, low, high = (f"CAST('{n}' AS {type.spark()})" for n in ("0", f"-{least}", least))
    reasons = []
    if precision - scale > 1:
        # For most numbers the first condition decides, which makes no text of them.
        tens = f"TRY_CAST({value} AS BIGINT) % 10L = 0L"
        if precision - scale > _LONG_DIGITS:
            tens = f"coalesce({tens}, TRUE)"
        end = "0." + "0" * scale if scale else "0"
        reasons.append(f"({tens} AND endswith(CAST({value} AS STRING), '{end}') AND {value} != {zero})")
    if scale > PLAIN_PLACES:
        # Not by abs, which Spark rounds to 34 digits, while a decimal may have 38.
        reasons.append(f"({value} > {low} AND {value} < {high} AND {value} != {zero})")
    return " OR ".join(reasons) or None


def _all_digits(value: str, type: ScalarType) -> str:
    """Return Java's BigDecimal.toPlainString(), where a cast may give an exponent of its own."""
    return f"replace(format_number({value}, {type.parameters[1]}), ',', '')"


def _escaped(text: str, names: Names) -> str:
    """Return `text` with characters beyond 16 bits as the escapes of their two halves."""
    c = names.fresh()
    hex = f"hex(encode({c}, 'UTF-16BE'))"
    halves = f"concat({_ESCAPE}, left({hex}, 4), {_ESCAPE}, right({hex}, 4))"
    return f"array_join(transform(split({text}, ''), {c} -> IF(octet_length({c}) = 4, {halves}, {c})), '')"


def _is_text(type: DataType) -> bool:
    return isinstance(type, ScalarType) and type.is_string


def _is_decimal(type: DataType) -> bool:
    return isinstance(type, ScalarType) and type.name == "DECIMAL"


def _is_timestamp(type: DataType) -> bool:
    return isinstance(type, ScalarType) and type.name in ("TIMESTAMP", "TIMESTAMP_LTZ")
