"""Writes rows of Arrow columns as JSON documents, byte for byte as `formats.json.encode` writes them.

A document is joined from the texts of its values and what is between them:

    decimals             as Java's BigDecimal.stripTrailingZeros().toString(), or toPlainString() with all digits
    dates, timestamps    as Spark writes them, in any year that Spark has
    texts                JSON strings as Java's writer (Jackson) has them
    FLOAT, DOUBLE        Java's own texts, so Spark makes them

Rows with types that have parts are left to Spark as a whole.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.arrow_formats.base import ArrowEncoder, RowColumns
from bridge.definition import FormatSpec
from bridge.errors import UnwritableRowError
from bridge.format_rules.invalid_texts import invalid_text
from bridge.format_rules.json_options import JsonOptions
from bridge.schema import DataType, RowType, ScalarType
from bridge.ways import NotThisWay

_ALL_DIGITS = Context(prec=76)


def decimal_texts(values: pa.Array, *, plain: bool) -> pa.Array:
    """Return the texts of DECIMALs: `plain` with all digits of their scale, else without zeros at their end and with an
    exponent where Java writes one; null stays null.

    An exponent is written for multiples of ten and for numbers below 0.000001.
    """
    texts = values.cast(pa.string())
    if values.type.scale and not plain:
        texts = pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".")
    # Arrow's own exponents are those of very small numbers, and of a zero with many decimal places.
    odd = pc.match_substring(texts, "E") if values.type.scale > _PLAIN_PLACES else None
    if not plain:
        tens = pc.and_(pc.ends_with(texts, "0"), pc.not_equal(texts, "0"))
        odd = tens if odd is None else pc.or_(odd, tens)
    if odd is None or not pc.any(odd).as_py():
        return texts
    distinct = values.filter(odd).dictionary_encode()
    made = pa.array([_text(value, plain) for value in distinct.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(texts, odd, made.take(distinct.indices))


_PLAIN_PLACES = 6
"""Decimal places up to which Arrow writes all numbers without an exponent."""


def _text(value: Decimal, plain: bool) -> str:
    """Return one text: Python's rules for exponents are Java's."""
    return format(value, "f") if plain else str(value.normalize(_ALL_DIGITS))


_MICROS = 6
_SECOND = 10**_MICROS
_DAY = 86_400
_FIRST_DAY, _END_DAY = -719_162, 2_932_897
"""Days since 1970 of 0001-01-01 and of 10000-01-01: between them a year has four digits."""
_UNITS = {0: "s", 3: "ms", 6: "us"}


def date_texts(values: pa.Array) -> pa.Array:
    """Return the texts of DATEs, such as 2020-02-29; null stays null."""
    days = values.view(pa.int32())
    odd = _others(days, _FIRST_DAY, _END_DAY)
    if odd is None:
        return values.cast(pa.string())
    made = [_date(day) for day in days.filter(odd).to_pylist()]
    usual = pc.if_else(odd, pa.scalar(0, pa.int32()), days).view(pa.date32())
    return pc.replace_with_mask(usual.cast(pa.string()), odd, pa.array(made, pa.string()))


def moment_texts(values: pa.Array, precision: int) -> pa.Array:
    """Return the texts of timestamps, such as 2020-02-29 12:00:00.12, in UTC and without a zone; null stays null.

    Digits of a second beyond `precision` are cut, and zeros at its end are not written.
    """
    micros = values.view(pa.int64())
    floored, digits = _floored(micros, precision)
    odd = _others(floored, _FIRST_DAY * _DAY * _SECOND, _END_DAY * _DAY * _SECOND)
    if odd is None:
        return _usual(floored, digits)
    made = [_moment(moment) for moment in floored.filter(odd).to_pylist()]
    usual = _usual(pc.if_else(odd, pa.scalar(0, pa.int64()), floored), digits)
    return pc.replace_with_mask(usual, odd, pa.array(made, pa.string()))


def _floored(micros: pa.Array, precision: int) -> tuple[pa.Array, int]:
    """Return microseconds cut to `precision`, and how many digits (0, 3 or 6) the fraction of a second needs."""
    numbers = micros.fill_null(0).to_numpy() if micros.null_count else micros.to_numpy()
    rest = numbers % _SECOND
    if not rest.any():
        return micros, 0
    step = 10 ** (_MICROS - precision)
    cut = rest - rest % step
    made = pa.array(numbers - rest + cut, mask=micros.is_null().to_numpy(zero_copy_only=False))
    if not cut.any():
        return made, 0
    return made, 6 if (cut % 1000).any() else 3


def _usual(micros: pa.Array, digits: int) -> pa.Array:
    """Return texts of moments in the years 1 to 9999."""
    texts = micros.view(pa.timestamp("us")).cast(pa.timestamp(_UNITS[digits])).cast(pa.string())
    return pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".") if digits else texts


def _others(numbers: pa.Array, first: int, end: int) -> pa.Array | None:
    """Return which numbers are not from `first` up to `end`, exclusive; None where all are."""
    found = pc.min_max(numbers)
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is None or (low >= first and high < end):
        return None
    return pc.or_(pc.less(numbers, first), pc.greater_equal(numbers, end)).fill_null(False)


def _moment(micros: int) -> str:
    seconds, fraction = divmod(micros, _SECOND)
    days, second = divmod(seconds, _DAY)
    minutes, hours = second // 60, second // 3600
    text = f"{_date(days)} {hours:02}:{minutes % 60:02}:{second % 60:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def _date(days: int) -> str:
    year, month, day = _civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of the proleptic Gregorian calendar, whose year 0 is before year 1."""
    era, day_of_era = divmod(days + 719_468, 146_097)  # eras of 400 years begin with a March
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day, month = day_of_year - (153 * shifted + 2) // 5 + 1, shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day


_SHORT = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}
_FIRST_PLAIN = 0x20
# The backslash first: the others' escapes contain one.
_ESCAPES = {
    char: f"\\{_SHORT[char]}" if char in _SHORT else f"\\u{ord(char):04X}"
    for char in ("\\", '"', *map(chr, range(_FIRST_PLAIN)))
}
_ASCII = 0x80
_BEYOND_16_BITS = 0xF0
"""The least first byte of a character that UTF-16 has in two halves."""
_BEYOND = re.compile("[^\0-\uffff]")


def quoted(text: str) -> str:
    """Return one text, such as a field's name, as a JSON string with its quotes."""
    return '"' + _BEYOND.sub(_halves, "".join(_ESCAPES.get(char, char) for char in text)) + '"'


def escaped(texts: pa.Array) -> pa.Array:
    """Return texts as JSON strings without their quotes; null stays null. Raises ArrowInvalid for bad UTF-8."""
    data = _bytes(texts)
    if not len(data):
        return texts
    if data.max() >= _ASCII:
        _check(texts)
    # Three comparisons of all bytes at once cost less than looking each of them up.
    if data.min() < _FIRST_PLAIN or (data == ord('"')).any() or (data == ord("\\")).any():
        found = np.bincount(data, minlength=256)
        for char, escape in _ESCAPES.items():
            if found[ord(char)]:
                texts = pc.replace_substring(texts, char, escape)
    return texts if data.max() < _BEYOND_16_BITS else _halves_escaped(texts)


def _halves_escaped(texts: pa.Array) -> pa.Array:
    """Return texts with characters beyond 16 bits as escapes, as Jackson writes them into bytes."""
    return pa.array([text and _BEYOND.sub(_halves, text) for text in texts.to_pylist()], texts.type)


def _halves(beyond: re.Match[str]) -> str:
    both = beyond[0].encode("utf-16-be").hex().upper()
    return f"\\u{both[:4]}\\u{both[4:]}"


def _bytes(texts: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return the bytes of all values, one after the other."""
    _, offsets, data = texts.buffers()
    wide = pa.types.is_large_string(texts.type)
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32, len(texts) + 1 + texts.offset)
    first, last = int(ends[texts.offset]), int(ends[-1])
    return np.frombuffer(data, np.uint8, last)[first:] if last > first else np.empty(0, np.uint8)


def _check(texts: pa.Array) -> None:
    """Raise ArrowInvalid for bad UTF-8, which Arrow's casts find and its strings of other origin may have."""
    large = pa.types.is_large_string(texts.type)
    texts.cast(pa.large_binary() if large else pa.binary()).cast(texts.type)


_JAVA_NUMBERS = ("FLOAT", "DOUBLE")
_NO_NUMBERS = pa.array(["NaN", "Infinity", "-Infinity"])
_AS_THEY_ARE = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", *_JAVA_NUMBERS)
_IN_QUOTES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")


def encoder(spec: FormatSpec) -> ArrowEncoder:
    """Return the encoder of a json format. Raises NotThisWay."""
    if spec.constants:
        raise NotThisWay("its documents have constants")
    for field in spec.row.fields:
        if not _is_written(field.type):
            raise NotThisWay(f"field {field.name!r} of a json document is {field.type.flink()}")
    return JsonArrowEncoder(spec.row, spec.columns, JsonOptions.of(spec.options), spec.name)


def _is_written(type: DataType) -> bool:
    if not isinstance(type, ScalarType):
        return False
    return type.is_string or type.is_binary or type.name in _AS_THEY_ARE + _IN_QUOTES


@dataclass(frozen=True)
class JsonArrowEncoder:
    """Writes one object per row: fields in row order, no spaces, null as null unless ignore-null-fields."""

    row: RowType
    columns: tuple[str, ...]
    options: JsonOptions
    format: str
    """The format's name, for messages."""

    @cached_property
    def as_texts(self) -> frozenset[str]:
        """See ArrowEncoder.as_texts."""
        pairs = zip(self.columns, self.row.fields, strict=True)
        return frozenset(
            c for c, f in pairs if isinstance(f.type, ScalarType) and f.type.name in _JAVA_NUMBERS
        )

    def encode(self, given: RowColumns) -> pa.Array:
        """See ArrowEncoder.encode."""
        if not self.row.fields:
            return pa.repeat(pa.scalar(b"{}"), given.rows)
        texts = [self._texts(given, n) for n in range(len(self.columns))]
        names = [f"{quoted(field.name)}:" for field in self.row.fields]
        if self.options.ignore_null_fields and any(values.null_count for values in texts):
            documents = self._without_nulls(names, texts)
        else:
            documents = self._with_nulls(names, texts)
        return documents.cast(pa.large_binary() if given.wide else pa.binary())

    def _with_nulls(self, names: list[str], texts: list[pa.Array]) -> pa.Array:
        parts: list[pa.Array | str] = []
        between = "{"
        for n, (name, values) in enumerate(zip(names, texts, strict=True)):
            between += f"{',' if n else ''}{name}"
            if not self._has_quotes(n):
                parts += [between, values]
                between = ""
            elif values.null_count:
                parts += [between, _joined('"', values, '"')]
                between = ""
            else:
                parts += [f'{between}"', values]
                between = '"'
        return _joined(*parts, f"{between}}}", null_handling="replace", null_replacement="null")

    def _without_nulls(self, names: list[str], texts: list[pa.Array]) -> pa.Array:
        quotes = ['"' if self._has_quotes(n) else "" for n in range(len(texts))]
        parts = zip(names, quotes, texts, strict=True)
        members = [_joined(name + quote, values, quote) for name, quote, values in parts]
        # The brace is one of the joined texts because Arrow (26) drops a row of which all texts are null.
        joined = _joined("{", *members, separator=",", null_handling="skip")
        return _joined(pc.replace_substring(joined, "{,", "{", max_replacements=1), "}")

    def _has_quotes(self, field: int) -> bool:
        type = self.row.fields[field].type
        return isinstance(type, ScalarType) and type.name not in _AS_THEY_ARE

    def _texts(self, given: RowColumns, field: int) -> pa.Array:
        """Return the texts of a field, without quotes. A key's fields are often in the value, too."""
        column, type = self.columns[field], self.row.fields[field].type
        assert isinstance(type, ScalarType)
        made = (column, type, self.options.iso_8601, self.options.plain_decimals)
        if made not in given.texts:
            values = given.columns[column]
            if given.wide and type.is_string:
                values = values.cast(pa.large_string())
            texts = self._escaped(values, column) if type.is_string else self._made(values, type)
            given.texts[made] = texts.cast(pa.large_string()) if given.wide else texts
        return given.texts[made]

    def _escaped(self, values: pa.Array, column: str) -> pa.Array:
        try:
            return escaped(values)
        except pa.ArrowInvalid:  # its text has payload
            raise UnwritableRowError(invalid_text(self.format, column)) from None

    def _made(self, values: pa.Array, type: ScalarType) -> pa.Array:
        if type.is_binary:
            return pa.array(map(_base64, values.to_pylist()), pa.string())
        if type.name == "DECIMAL":
            return decimal_texts(values, plain=self.options.plain_decimals)
        if type.name == "DATE":
            return date_texts(values)
        if type.name in _JAVA_NUMBERS:
            return _json_numbers(values)
        if type.name not in _IN_QUOTES:
            return values.cast(pa.string())
        texts = moment_texts(values, type.parameters[0])
        if self.options.iso_8601:
            texts = pc.replace_substring(texts, " ", "T")
        return _joined(texts, "Z") if type.name == "TIMESTAMP_LTZ" else texts


def _joined(*parts: pa.Array | str, separator: str = "", **options: Any) -> pa.Array:
    """Join texts row by row, with those that are the same for all rows; null where one is, unless `options` say
    otherwise."""
    type = next(part.type for part in parts if isinstance(part, pa.Array))
    typed = [part if isinstance(part, pa.Array) else pa.scalar(part, type) for part in (*parts, separator)]
    return pc.binary_join_element_wise(*typed, **options)


def _json_numbers(texts: pa.Array) -> pa.Array:
    """Put into quotes what is no number."""
    odd = pc.is_in(texts, _NO_NUMBERS.cast(texts.type))
    if not pc.any(odd).as_py():
        return texts
    return pc.replace_with_mask(texts, odd, _joined('"', texts.filter(odd), '"'))


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()
