"""json's fast path: one `from_json` with types, for documents of which Spark and Flink read the same values.

Where Spark accepts more than Flink, a scalar is read as another type and converted here (TINYINT would overflow;
DECIMAL would drop commas and take minutes for 1e999999999; timestamps have their own formats), or the document needs a
full decode.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.format_rules.json_options import JsonOptions, Numbers
from bridge.formats.sql import Names, let, literal, member, null
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType, quote, types

FROM_JSON = (
    "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', {corrupt}, 'allowSingleQuotes', 'false', "
    "'allowNonNumericNumbers', 'false', 'allowUnquotedControlChars', 'true')"
)

# Spark reads a fraction as DOUBLE before it becomes STRING: 1.10 turns into 1.1, 1e400 into "Infinity", -0 into 0.
_LIKE_A_DOUBLE = "^-?[0-9]+[.][0-9]+(?:E-?[0-9]+)?$"
_AS_DOUBLES_GO = """('0', '"Infinity"', '"-Infinity"')"""
_LONGEST_DOUBLE = 30
_BARE_FRACTION = r"[:\[,]\s*(?:-?[0-9]+[.eE]|-0)"
_NEGATIVE_ZERO = r"[:\[,]\s*-0"

# The length of a timestamp without a fraction; a sign or a year of more digits makes it longer, never shorter.
_SECONDS = len("2020-02-29 12:00:00")

# So many decimal digits are exact in a DOUBLE. A number of more is in the document where its text is longer.
_DOUBLE_DIGITS = 15
_MORE_DIGITS = f"[0-9.]{{{_DOUBLE_DIGITS + 2}}}"


_Test = Callable[[str, str, DataType], str]


def corrupt_name(row: RowType) -> str:
    """Return a name for the corrupt-record column that no field of `row` has."""
    name = "__corrupt"
    while name.lower() in {n.lower() for n in row.names}:
        name += "_"
    return name


def temporal_value(text: str, type: ScalarType, options: JsonOptions) -> str:
    """Return the date or timestamp of `text` by Flink's rules, truncated to the declared precision; else null."""
    exact = text
    if type.name != "DATE" and type.parameters[0] < 6:
        digits = type.parameters[0]
        fraction = rf"([.][0-9]{{{digits}}})[0-9]+" if digits else "[.][0-9]*"
        cut = f"regexp_replace({text}, '{fraction}', '{'$1' if digits else ''}')"
        exact = f"IF(octet_length({text}) > {_SECONDS + (digits and digits + 1)}, {cut}, {text})"
    if options.iso_8601 and type.name == "TIMESTAMP_LTZ":  # Spark reads no zone after minutes
        exact = f"regexp_replace({exact}, '(T[0-9]{{2}}:[0-9]{{2}})Z$', '$1:00Z')"
    pattern = temporal_pattern(type, options.iso_8601)
    if not options.iso_8601:
        pattern = f"{_usual_temporal_pattern(type)}|{pattern}"
    return f"IF({text} RLIKE {literal(pattern)}, TRY_CAST({exact} AS {type.spark()}), NULL)"


def _short_decimal(type: ScalarType) -> str:
    """Return a pattern of texts that are the decimal as written, although fractions were read as DOUBLE."""
    precision, scale = type.parameters
    before = min(precision - scale, _DOUBLE_DIGITS - 1)
    after = min(scale, _DOUBLE_DIGITS - max(before, 1))
    fraction = f"[.][0-9]{{1,{after}}}" if after else "[.]0"
    whole, short = max(precision - scale, 1), max(before, 1)
    if whole == short:
        return f"^-?[0-9]{{1,{whole}}}(?:{fraction})?$"
    return f"^-?(?:[0-9]{{1,{whole}}}|[0-9]{{1,{short}}}{fraction})$"


def has_more_digits(type: DataType) -> bool:
    """Return whether values of `type` may have digits that a fraction loses as a DOUBLE."""
    if not (isinstance(type, ScalarType) and type.name == "DECIMAL"):
        return False
    precision, scale = type.parameters
    return scale > 0 and min(precision - scale, _DOUBLE_DIGITS - 1) + scale > _DOUBLE_DIGITS


def _is_zero(value: str, converted: str, type: DataType) -> str:
    is_float = isinstance(type, ScalarType) and type.name in ("FLOAT", "DOUBLE")
    return f"{value} = 0" if is_float else ""


class FastPath:
    """SQL of documents of one shape."""

    def __init__(self, row: RowType, options: JsonOptions, names: Names) -> None:
        self.row, self.options, self.names = row, options, names
        self.corrupt = corrupt_name(row)
        self.converts = any(self._converts(f.type) for f in row.fields)
        """True where `convert` does more than drop the corrupt record."""

    def parse(self, text: str) -> str:
        """Return the struct that Spark reads from `text`; null where it is no object."""
        schema = f"{self._type(self.row)[:-1]}{',' if self.row.fields else ''}{quote(self.corrupt)}: STRING>"
        return f"from_json({text}, {literal(schema)}, {FROM_JSON.format(corrupt=literal(self.corrupt))})"

    def convert(self, parsed: str) -> str:
        """Return `parsed` in the types of the row; values that do not fit are null."""
        return self._row(parsed, self.row)

    def needs_full_decode(self, text: str, parsed: str, converted: str) -> str:
        """Return a condition, never null: true where `converted` may differ from what Flink reads of `text`."""
        reasons = [f"{parsed} IS NULL", f"{member(parsed, self.corrupt)} IS NOT NULL"]
        if any(isinstance(t, ScalarType) and t.is_string for t in types(self.row)):
            like_a_double = self._any(parsed, "", self.row, self._like_a_double)
            if like_a_double:
                reasons.append(f"(({like_a_double}) AND {text} RLIKE {literal(_BARE_FRACTION)})")
        if any(has_more_digits(t) for t in types(self.row)):
            reasons.append(f"{text} RLIKE {literal(_MORE_DIGITS)}")
        # To Spark -0 is 0, and -0.0 has a sign.
        zero = self._any(parsed, "", self.row, _is_zero)
        if zero and self.options.numbers is not Numbers.VALUES:
            reasons.append(f"(({zero}) AND {text} RLIKE {literal(_NEGATIVE_ZERO)})")
        if self.options.fail_on_missing_field:
            reasons.append(self._any(parsed, "", self.row, lambda x, y, t: f"{x} IS NULL"))
        reasons.append(self._any(parsed, converted, self.row, self._misfit))
        return f"coalesce({' OR '.join(r for r in reasons if r)}, FALSE)"

    def _type(self, type: DataType) -> str:
        if isinstance(type, RowType):
            return "STRUCT<" + ",".join(f"{quote(f.name)}: {self._type(f.type)}" for f in type.fields) + ">"
        if isinstance(type, ArrayType):
            return f"ARRAY<{self._type(type.element)}>"
        if isinstance(type, MapType):
            return f"MAP<STRING,{self._type(type.value)}>"
        assert isinstance(type, ScalarType)
        if is_temporal(type) or type.name == "DECIMAL":
            return "STRING"
        return "SMALLINT" if type.name == "TINYINT" else type.spark()

    def _converts(self, type: DataType) -> bool:
        return self._type(type) != type.spark()

    def _row(self, value: str, type: RowType) -> str:
        fields = [f"{literal(f.name)}, {self._value(member(value, f.name), f.type)}" for f in type.fields]
        return f"named_struct({', '.join(fields)})"

    def _value(self, value: str, type: DataType) -> str:
        if not self._converts(type):
            return value
        if isinstance(type, ScalarType):
            if is_temporal(type):
                return temporal_value(value, type, self.options)
            cast = f"TRY_CAST({value} AS {type.spark()})"
            if type.name == "DECIMAL":
                return f"IF({value} RLIKE {literal(_short_decimal(type))}, {cast}, NULL)"
            return cast
        item = self.names.fresh()
        if isinstance(type, ArrayType):
            return f"transform({value}, {item} -> {self._value(item, type.element)})"
        if isinstance(type, MapType):
            key = self.names.fresh()
            return f"transform_values({value}, ({key}, {item}) -> {self._value(item, type.value)})"
        assert isinstance(type, RowType)
        return f"IF({value} IS NULL, {null(type.spark())}, {self._row(value, type)})"

    def _like_a_double(self, value: str, converted: str, type: DataType) -> str:
        if not (isinstance(type, ScalarType) and type.is_string):
            return ""
        # Below ':' are digits, signs and the quote: one comparison decides for most texts.
        short = f"{value} < ':' AND octet_length({value}) < {_LONGEST_DOUBLE}"
        fraction = f"contains({value}, '.') AND {value} RLIKE {literal(_LIKE_A_DOUBLE)}"
        return f"({short} AND ({value} IN {_AS_DOUBLES_GO} OR {fraction}))"

    def _misfit(self, value: str, converted: str, type: DataType) -> str:
        if isinstance(type, ScalarType) and self._converts(type):
            return f"({converted} IS NULL AND {value} IS NOT NULL)"
        if isinstance(type, MapType):
            return f"size(array_distinct(map_keys({value}))) != size(map_keys({value}))"
        return ""

    def _any(self, value: str, converted: str, type: DataType, test: _Test) -> str:
        """Return SQL that is true where `test` holds for a part of `value`, else false or null; '' where it cannot.

        `converted` is '' for a test that does not use it."""
        if isinstance(type, RowType):
            conditions = []
            for f in type.fields:
                x, y = member(value, f.name), converted and member(converted, f.name)
                conditions += [test(x, y, f.type), self._any(x, y, f.type, test)]
            return " OR ".join(c for c in conditions if c)
        if isinstance(type, ArrayType):
            return self._any_item(value, converted, type.element, test)
        if isinstance(type, MapType):
            values = converted and f"map_values({converted})"
            return self._any_item(f"map_values({value})", values, type.value, test)
        return ""

    def _any_item(self, items: str, converted: str, type: DataType, test: _Test) -> str:
        x, i, hit = (self.names.fresh() for _ in range(3))

        def inner(y: str) -> str:
            condition = " OR ".join(t for t in (test(x, y, type), self._any(x, y, type, test)) if t)
            return condition and f"coalesce({condition}, FALSE)"

        if not inner(converted):
            return ""
        if not converted:
            exists = f"exists({items}, {x} -> {inner('')})"
            # For most lists of texts no lambda function is needed.
            is_text = isinstance(type, ScalarType) and type.is_string and test == self._like_a_double
            return f"IF(array_min({items}) < ':', {exists}, FALSE)" if is_text else exists
        per_item = let(self.names, f"get({converted}, {i})", inner)
        return f"exists(transform({items}, ({x}, {i}) -> {per_item}), {hit} -> {hit})"


# ISO_LOCAL_DATE: a year of more than four digits has a sign.
_DATE = "(?:-?[0-9]{4}|[+-][0-9]{5,7})-[0-9]{2}-[0-9]{2}"
_TIME = "[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]{0,9})?"
# ISO_LOCAL_TIME leaves the seconds out or gives at least one digit after the point.
_ISO_TIME = "[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,9})?)?"


def is_temporal(type: DataType) -> bool:
    """Return whether `type` is a date or a timestamp."""
    return isinstance(type, ScalarType) and type.name in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")


def _usual_temporal_pattern(type: ScalarType) -> str:
    """Return a cheap pattern of dates and timestamps whose year has four digits.

    A text that it matches and Spark can cast matches `moment_pattern` without ISO-8601, too: the cast demands digits
    everywhere but at the end."""
    if type.name == "DATE":
        return r"\A....-..-.[0-9]\z"
    zone = "Z" if type.name == "TIMESTAMP_LTZ" else ""
    return rf"\A....-..-.. ..:..:.[0-9](?:[.][0-9]{{0,9}})?{zone}\z"


def temporal_pattern(type: ScalarType, iso_8601: bool) -> str:
    """Return a pattern of the texts that Flink reads as `type` (flink-formats-common, TimeFormats)."""
    if type.name == "DATE":
        return f"^{_DATE}$"
    zone = "Z" if type.name == "TIMESTAMP_LTZ" else ""
    return f"^{_DATE}T{_ISO_TIME}{zone}$" if iso_8601 else f"^{_DATE} {_TIME}{zone}$"
