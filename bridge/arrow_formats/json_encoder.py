"""Rows of Arrow columns to JSON documents, byte for byte as `formats.json.encode` writes them.

A document is joined from the texts of its values and what is between them. Texts of FLOAT and DOUBLE are Java's own, so
Spark makes them; rows with types that have parts are left to Spark as a whole.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bridge.arrow_formats.base import ArrowEncoder, RowColumns
from bridge.arrow_formats.java_decimals import decimal_texts
from bridge.arrow_formats.java_times import date_texts, moment_texts
from bridge.arrow_formats.json_strings import escaped, quoted
from bridge.definition import FormatSpec
from bridge.errors import UnwritableRowError
from bridge.format_rules.invalid_texts import invalid_text
from bridge.format_rules.json_options import JsonOptions
from bridge.schema import DataType, RowType, ScalarType
from bridge.ways import NotThisWay

__all__ = ["JsonArrowEncoder", "encoder"]

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
