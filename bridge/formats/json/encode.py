"""Rows to JSON text, byte for byte as flink-json writes it (RowDataToJsonConverters).

Spark's `to_json` uses the same library with the same settings; only moments (written as Flink's texts first) and
decimals (numbers without trailing zeros, put together by hand) need help.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import groupby

from pyspark.sql import Column

from bridge.formats.json.options import JsonOptions
from bridge.formats.json.shape import types
from bridge.formats.sql import Names, apply, let, literal, member
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType

__all__ = ["JsonEncoder"]


class JsonEncoder:
    """Writes one object per row: fields in row order, no spaces, null as null unless ignore-null-fields."""

    def __init__(self, row: RowType, options: JsonOptions) -> None:
        self.row, self.options = row, options

    def encode(self, row: Column) -> Column:
        """See Encoder.encode. Fails for no row: what Spark can hold, this can write."""
        variable, writer = "row", _Writer(self.options)
        text = writer.json(variable, self.row)
        return apply(row, f"IF({variable} IS NULL, NULL, CAST({text} AS BINARY))", variable)


class _Writer:
    """SQL for JSON text. `_ready` values go through to_json; what has decimals inside is joined from parts."""

    def __init__(self, options: JsonOptions) -> None:
        self.options, self.names = options, Names()

    def json(self, value: str, type: DataType) -> str:
        """The JSON text of a value that is not null."""
        if not _has_decimal(type):
            if isinstance(type, RowType):
                return self._to_json(self._ready(value, type))
            wrapped = self._to_json(f"named_struct('v', {self._ready(value, type)})")
            return let(self.names, wrapped, lambda w: f"substr({w}, 6, length({w}) - 6)")
        if isinstance(type, ScalarType):
            return self._decimal(value, type.parameters[1])
        if isinstance(type, ArrayType):
            item = self.names.fresh()
            items = f"transform({value}, {item} -> {self._or_null(item, type.element)})"
            return f"concat('[', array_join({items}, ','), ']')"
        if isinstance(type, MapType):
            return self._map(value, type)
        assert isinstance(type, RowType)
        return self._object(value, type)

    def _to_json(self, value: str) -> str:
        return f"to_json({value}, map('ignoreNullFields', '{str(self.options.ignore_null_fields).lower()}'))"

    def _or_null(self, value: str, type: DataType) -> str:
        return f"IF({value} IS NULL, 'null', {self.json(value, type)})"

    def _object(self, value: str, row: RowType) -> str:
        parts: list[str] = []
        for by_hand, fields in groupby(row.fields, key=lambda f: _has_decimal(f.type)):
            if by_hand:
                parts += [self._member(member(value, f.name), f) for f in fields]
            else:
                parts.append(self._members(value, RowType(tuple(fields))))
        return f"concat('{{', concat_ws(',', {', '.join(parts)}), '}}')"

    def _member(self, value: str, field: RowField) -> str:
        key = _quoted(field.name) + ":"
        absent = "NULL" if self.options.ignore_null_fields else literal(f"{key}null")
        return f"IF({value} IS NULL, {absent}, concat({literal(key)}, {self.json(value, field.type)}))"

    def _members(self, value: str, row: RowType) -> str:
        """The members of an object without its braces; null (which concat_ws leaves out) when there are none."""
        return let(
            self.names,
            self._to_json(self._struct(value, row)),
            lambda w: f"nullif(substr({w}, 2, length({w}) - 2), '')",
        )

    def _map(self, value: str, type: MapType) -> str:
        entry = self.names.fresh()
        key, item = self.json(f"{entry}.key", type.key), self._or_null(f"{entry}.value", type.value)
        entries = f"transform(map_entries({value}), {entry} -> concat({key}, ':', {item}))"
        return f"concat('{{', array_join({entries}, ','), '}}')"

    def _struct(self, value: str, row: RowType) -> str:
        pairs = [f"{literal(f.name)}, {self._ready(member(value, f.name), f.type)}" for f in row.fields]
        return f"named_struct({', '.join(pairs)})"

    def _ready(self, value: str, type: DataType) -> str:
        """`value` with its timestamps as texts; to_json does the rest."""
        if isinstance(type, RowType):  # rebuilt always: the names in the document are the row's
            return f"IF({value} IS NULL, NULL, {self._struct(value, type)})"
        if not any(isinstance(t, RowType) or _is_timestamp(t) for t in types(type)):
            return value
        if isinstance(type, ScalarType):
            return self._moment(value, type)
        item = self.names.fresh()
        if isinstance(type, ArrayType):
            return f"transform({value}, {item} -> {self._ready(item, type.element)})"
        assert isinstance(type, MapType)
        key = self.names.fresh()
        return f"transform_values({value}, ({key}, {item}) -> {self._ready(item, type.value)})"

    def _moment(self, value: str, type: ScalarType) -> str:
        text, precision = f"CAST({value} AS STRING)", type.parameters[0]
        if precision < 6:
            kept = rf"([.][0-9]{{{precision}}})[0-9]+" if precision else "[.][0-9]+"
            cut = f"regexp_replace({text}, '{kept}', '{'$1' if precision else ''}')"
            # Cutting .1004 to three digits leaves zeros that Flink does not write.
            text = f"regexp_replace({cut}, '[.]0*$|(?<=[.][0-9]{{1,6}})0+$', '')"
        if self.options.iso_8601:
            text = f"replace({text}, ' ', 'T')"
        return f"concat({text}, 'Z')" if type.name == "TIMESTAMP_LTZ" else text

    def _decimal(self, value: str, scale: int) -> str:
        """Java's BigDecimal.stripTrailingZeros(), toPlainString() or toString()."""
        text = f"replace(format_number({value}, {scale}), ',', '')"
        if scale:
            text = f"regexp_replace({text}, '[.]?0+$', '')"
        if self.options.plain_decimals:
            return text

        def scientific(t: str) -> str:
            size = f"length(replace({t}, '-', ''))"
            big = self._scientific(t, f"regexp_replace({t}, '^-|0+$', '')", lambda u: f"{size} - 1")
            tiny = self._scientific(
                t, f"regexp_replace({t}, '^-?0[.]0+', '')", lambda u: f"length({u}) + 1 - {size}"
            )
            return (
                f"CASE WHEN {t} RLIKE '^-?[1-9][0-9]*0$' THEN {big} "
                f"WHEN {t} RLIKE '^-?0[.]0{{6}}' THEN {tiny} ELSE {t} END"
            )

        return let(self.names, text, scientific)

    def _scientific(self, text: str, digits: str, exponent: Callable[[str], str]) -> str:
        def joined(u: str) -> str:
            sign = f"IF(startswith({text}, '-'), '-', '')"
            mantissa = f"IF(length({u}) > 1, concat(left({u}, 1), '.', substr({u}, 2)), {u})"
            power = f"concat(IF({exponent(u)} > 0, '+', ''), {exponent(u)})"
            return f"concat({sign}, {mantissa}, 'E', {power})"

        return let(self.names, digits, joined)


def _has_decimal(type: DataType) -> bool:
    return any(isinstance(t, ScalarType) and t.name == "DECIMAL" for t in types(type))


def _is_timestamp(type: DataType) -> bool:
    return isinstance(type, ScalarType) and type.name in ("TIMESTAMP", "TIMESTAMP_LTZ")


def _quoted(name: str) -> str:
    """`name` as Jackson quotes it: as Python does, but with capital hexadecimal digits."""
    text = json.dumps(name, ensure_ascii=False)
    return re.sub(r"\\u00[0-9a-f]{2}", lambda m: "\\u" + m.group()[2:].upper(), text)
