"""Rows to lines of CSV, byte for byte as flink-csv writes them (RowDataToCsvConverters, Jackson's CsvEncoder)."""

from __future__ import annotations

from pyspark.sql import Column

from bridge.formats.csv.options import CsvOptions
from bridge.formats.csv.shape import pattern
from bridge.formats.sql import Names, apply, let, literal, member
from bridge.formats.texts import decimal, timestamp
from bridge.schema import ArrayType, DataType, RowType, ScalarType

__all__ = ["CsvEncoder"]

# Jackson looks for special characters in short values alone and quotes every longer one.
_LONG = 24


class CsvEncoder:
    """Writes one line per row, without a line break. Null is the null literal, or nothing.

    As in Flink, a value is quoted when it holds any character up to the larger of delimiter and quote, and with
    quotes disabled nothing protects a delimiter inside a value.
    """

    def __init__(self, row: RowType, options: CsvOptions) -> None:
        self.row, self.options = row, options

    def encode(self, row: Column) -> Column:
        """See Encoder.encode. Fails for no row: what Spark can hold, this can write."""
        variable, writer = "row", _Writer(self.options)
        fields = [writer.field(member(variable, f.name), f.type) for f in self.row.fields]
        line = f"concat_ws({literal(self.options.delimiter)}, {', '.join(fields)})"
        return apply(row, f"IF({variable} IS NULL, NULL, CAST({line} AS BINARY))", variable)


class _Writer:
    """SQL for the texts of a line."""

    def __init__(self, options: CsvOptions) -> None:
        self.options, self.names = options, Names()
        self.null = literal(options.null_literal or "")
        quote, escape = options.quote, options.escape
        last = max(options.delimiter, quote or "")
        # Without an escape character Jackson is wary of the backslash (since 2.16).
        self._special = rf"[\x{{0}}-{pattern(last)}{pattern(escape or chr(92))}]"
        self._doubled = [c for c in dict.fromkeys((quote, escape)) if c]

    def field(self, value: str, type: DataType) -> str:
        """The text of a column, null included."""
        if not isinstance(type, ScalarType):
            text = self._quoted(self._joined(value, type))
        elif type.is_string or type.is_binary or type.name in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
            text = self._quoted(self._scalar(value, type))
        else:
            text = self._scalar(value, type)
        return f"coalesce({text}, {self.null})"

    def _joined(self, value: str, type: DataType) -> str:
        """The elements between delimiters; null when `value` is. Nothing protects a delimiter inside."""
        if isinstance(type, ArrayType):
            item = self.names.fresh()
            assert isinstance(type.element, ScalarType)
            texts = f"transform({value}, {item} -> coalesce({self._scalar(item, type.element)}, {self.null}))"
            return f"array_join({texts}, {literal(self.options.array_delimiter)})"
        assert isinstance(type, RowType)
        parts = [
            f"coalesce({self._scalar(member(value, f.name), f.type)}, {self.null})"
            for f in type.fields
            if isinstance(f.type, ScalarType)
        ]
        joined = f"concat_ws({literal(self.options.array_delimiter)}, {', '.join(parts)})"
        return f"IF({value} IS NULL, NULL, {joined})"

    def _scalar(self, value: str, type: ScalarType) -> str:
        """The text of a scalar before quoting; null when `value` is."""
        if type.is_string:
            return value
        if type.is_binary:
            return f"base64({value})"
        if type.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return timestamp(value, type)
        if type.name == "DECIMAL":
            if not self.options.scientific:
                return f"CAST({value} AS STRING)"
            return decimal(value, type.parameters[1], self.names)
        return f"CAST({value} AS STRING)"

    def _quoted(self, text: str) -> str:
        quote = self.options.quote
        if quote is None:
            return text
        q = literal(quote)

        def judge(t: str) -> str:
            # Lengths are Java's: characters beyond the first 65,536 count twice.
            long = (
                f"octet_length({t}) > {_LONG} AND "
                f"(length({t}) > {_LONG} OR length(encode({t}, 'UTF-16BE')) > {2 * _LONG})"
            )
            inner = t
            for c in self._doubled:
                inner = f"replace({inner}, {literal(c)}, {literal(c * 2)})"
            return f"IF(({long}) OR {t} RLIKE {literal(self._special)}, concat({q}, {inner}, {q}), {t})"

        return let(self.names, text, judge)
