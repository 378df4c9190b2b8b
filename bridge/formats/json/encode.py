"""Rows to JSON text, byte for byte as flink-json writes it (RowDataToJsonConverters).

Spark's `to_json` uses the same library with the same settings; only moments and decimals need help. Moments go in as
Flink's texts. Decimals go in as VARIANT, which Spark writes as plain numbers without trailing zeros; a document in
which Java would write an exponent (1E+2) is made once more, with those texts in the place of the numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column

from bridge.formats.json.options import JsonOptions
from bridge.formats.json.shape import types
from bridge.formats.sql import Names, apply, let, literal, member
from bridge.formats.texts import PLAIN_PLACES, stripped
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType

__all__ = ["JsonEncoder"]

# Nothing but this stands between a quote and a number that is to lose its quotes.
_MARK, _WRITTEN_MARK = "'\\u0001'", "'\\\\u0001'"
_UNQUOTED = r"""concat('"(?:', {mark}, ')([-+.0-9E]+)"')"""
_MARK_PATTERN = r"'\\\\u0001'"

# The length of a moment without fraction.
_SECONDS = len("2020-02-29 12:00:00")


class JsonEncoder:
    """Writes one object per row: fields in row order, no spaces, null as null unless ignore-null-fields."""

    def __init__(self, row: RowType, options: JsonOptions) -> None:
        self.row, self.options = row, options

    def encode(self, row: Column) -> Column:
        """See Encoder.encode. Fails for no row: what Spark can hold, this can write."""
        variable, names = "row", Names()
        plain = _Writer(self.options, names, _as_variant)
        text = plain.document(variable, self.row)
        exponent = None if self.options.plain_decimals else plain.any(variable, self.row, _wants_exponent)
        if exponent:
            text = f"IF({exponent}, {self._with_exponents(variable, text, names)}, {text})"
        return apply(row, f"IF({variable} IS NULL, NULL, CAST({text} AS BINARY))", variable)

    def _with_exponents(self, row: str, plain: str, names: Names) -> str:
        """The document with decimals as texts that are marked first and lose mark and quotes then.

        No text of the row can be taken for a marked one: where the row holds marks of its own, ours is longer than
        the whole document."""

        def marked(size: str) -> str:
            def written(value: str, type: ScalarType) -> str:
                return f"concat(repeat({_MARK}, {size}), {_scientific(names, value, type)})"

            return _Writer(self.options, names, written).document(row, self.row)

        def unquoted(size: str) -> str:
            pattern = _UNQUOTED.format(mark=f"repeat({_MARK_PATTERN}, {size})")
            return f"regexp_replace({marked(size)}, {pattern}, '$1')"

        size = let(names, plain, lambda d: f"IF(contains({d}, {_WRITTEN_MARK}), length({d}), 1)")
        return let(names, size, unquoted)


class _Writer:
    """SQL for JSON text by way of `to_json`; `decimal` says what a decimal becomes for it."""

    def __init__(self, options: JsonOptions, names: Names, decimal: Callable[[str, ScalarType], str]) -> None:
        self.options, self.names, self.decimal = options, names, decimal

    def document(self, value: str, row: RowType) -> str:
        """The JSON text of a row that is not null."""
        ignored = str(self.options.ignore_null_fields).lower()
        return f"to_json({self._struct(value, row)}, map('ignoreNullFields', '{ignored}'))"

    def any(self, value: str, type: DataType, test: Callable[[str, DataType], str | None]) -> str | None:
        """True (or not, or null) when `test` holds for a part of `value`; None when it can for none."""
        if isinstance(type, RowType):
            found = [self.any(member(value, f.name), f.type, test) for f in type.fields]
            return " OR ".join(f for f in found if f) or None
        if isinstance(type, ScalarType):
            return test(value, type)
        items = f"map_values({value})" if isinstance(type, MapType) else value
        item = self.names.fresh()
        assert isinstance(type, ArrayType | MapType)
        inner = self.any(item, type.element if isinstance(type, ArrayType) else type.value, test)
        return inner and f"exists({items}, {item} -> coalesce({inner}, FALSE))"

    def _struct(self, value: str, row: RowType) -> str:
        pairs = [f"{literal(f.name)}, {self._ready(member(value, f.name), f.type)}" for f in row.fields]
        return f"named_struct({', '.join(pairs)})"

    def _ready(self, value: str, type: DataType) -> str:
        """`value` with decimals and moments as `to_json` is to have them."""
        if isinstance(type, RowType):  # rebuilt always: the names in the document are the row's
            return f"IF({value} IS NULL, NULL, {self._struct(value, type)})"
        if not any(isinstance(t, RowType) or _is_timestamp(t) or _is_decimal(t) for t in types(type)):
            return value
        if isinstance(type, ScalarType):
            return self.decimal(value, type) if _is_decimal(type) else self._moment(value, type)
        item = self.names.fresh()
        if isinstance(type, ArrayType):
            return f"transform({value}, {item} -> {self._ready(item, type.element)})"
        assert isinstance(type, MapType)
        key = self.names.fresh()
        return f"transform_values({value}, ({key}, {item}) -> {self._ready(item, type.value)})"

    def _moment(self, value: str, type: ScalarType) -> str:
        precision = type.parameters[0]

        def exact(text: str) -> str:
            kept = rf"([.][0-9]{{{precision}}})[0-9]+" if precision else "[.][0-9]+"
            cut = f"regexp_replace({text}, '{kept}', '{'$1' if precision else ''}')"
            # Cutting .1004 to three digits leaves zeros that Flink does not write.
            bare = f"regexp_replace({cut}, '[.]0*$|(?<=[.][0-9]{{1,6}})0+$', '')"
            # A longer year only makes it look for what is not there.
            return f"IF(length({text}) > {_SECONDS + (precision and precision + 1)}, {bare}, {text})"

        text = f"CAST({value} AS STRING)"
        if precision < 6:
            text = let(self.names, text, exact)
        if self.options.iso_8601:
            text = f"replace({text}, ' ', 'T')"
        return f"concat({text}, 'Z')" if type.name == "TIMESTAMP_LTZ" else text


def _as_variant(value: str, type: ScalarType) -> str:
    return f"CAST({value} AS VARIANT)"


def _wants_exponent(value: str, type: DataType) -> str | None:
    """Whether BigDecimal.stripTrailingZeros().toString() has an exponent: multiples of ten, and the very small."""
    if not _is_decimal(type):
        return None
    assert isinstance(type, ScalarType)
    precision, scale = type.parameters
    least = f"0.{'0' * (PLAIN_PLACES - 1)}1"
    zero, low, high = (f"CAST('{n}' AS {type.spark()})" for n in ("0", f"-{least}", least))
    reasons = []
    if precision - scale > 1:
        end = "0." + "0" * scale if scale else "0"
        reasons.append(f"(endswith(CAST({value} AS STRING), '{end}') AND {value} != {zero})")
    if scale > PLAIN_PLACES:
        # Not by abs: Spark rounds it to 34 digits, and a decimal may have 38.
        reasons.append(f"({value} > {low} AND {value} < {high} AND {value} != {zero})")
    return " OR ".join(reasons) or None


def _scientific(names: Names, value: str, type: ScalarType) -> str:
    """Java's BigDecimal.stripTrailingZeros().toString()."""
    scale = type.parameters[1]
    # A cast may give an exponent of its own.
    return stripped(f"replace(format_number({value}, {scale}), ',', '')", scale, names)


def _is_decimal(type: DataType) -> bool:
    return isinstance(type, ScalarType) and type.name == "DECIMAL"


def _is_timestamp(type: DataType) -> bool:
    return isinstance(type, ScalarType) and type.name in ("TIMESTAMP", "TIMESTAMP_LTZ")
