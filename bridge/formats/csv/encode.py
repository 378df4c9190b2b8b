"""Rows to lines of CSV, byte for byte as flink-csv writes them (RowDataToCsvConverters, Jackson's CsvEncoder)."""

from __future__ import annotations

from bridge.format_rules.csv_options import CsvOptions
from bridge.formats.csv.tokens import pattern
from bridge.formats.java_text import decimal, timestamp
from bridge.formats.sql import Names, SqlEncoder, let, literal, member, struct
from bridge.schema import ArrayType, DataType, RowType, ScalarType

# Jackson searches only values up to this length for special characters, and quotes every longer one.
_LONG = 24


class CsvEncoder(SqlEncoder):
    """Writes one line per row, without a line break. Null is the null literal, or empty.

    As in Flink, a value is quoted when it holds any character up to the larger of delimiter and quote, and with
    quotes disabled nothing protects a delimiter inside a value. Can write every value of
    Spark's, and so fails for no row.
    """

    def __init__(self, row: RowType, options: CsvOptions) -> None:
        self.row, self.options = row, options

    def payload(self, row: str, names: Names) -> str:
        writer = _Writer(self.options, names.lambdas())
        values = [(f.type, member(row, f.name)) for f in self.row.fields]
        texts = {f"t{i}": text for i, (type, v) in enumerate(values) if (text := writer.text(v, type)) != v}

        def line(bound: str) -> str:
            fields = [
                writer.field(v, f"{bound}.t{i}" if f"t{i}" in texts else v, type)
                for i, (type, v) in enumerate(values)
            ]
            joined = f"concat_ws({literal(self.options.delimiter)}, {', '.join(fields)})"
            return f"IF({row} IS NULL, NULL, CAST({joined} AS BINARY))"

        return let(names, struct(**texts), line) if texts else line("")


class _Writer:
    """SQL for the texts of a line; `names` are for lambda functions."""

    def __init__(self, options: CsvOptions, names: Names) -> None:
        self.options, self.names = options, names
        self.null = literal(options.null_literal or "")
        quote, escape = options.quote, options.escape
        self._last = max(options.delimiter, quote or "")
        # Without an escape character Jackson quotes values with a backslash (since 2.16).
        self._escape = escape or "\\"
        self._special = rf"[\x{{0}}-{pattern(self._last)}{pattern(self._escape)}]"
        self._doubled = [c for c in dict.fromkeys((quote, escape)) if c]

    def text(self, value: str, type: DataType) -> str:
        """Return the text of a column that `field` takes; `value` itself where `field` does the whole conversion."""
        if not isinstance(type, ScalarType):
            return self._joined(value, type)
        if type.is_binary:
            return _base64(value)
        if type.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return f"CAST({value} AS STRING)"
        if type.name == "DECIMAL":
            if self.options.scientific:
                return decimal(value, type.parameters[1], self.names)
            return f"CAST({value} AS STRING)"
        return value

    def field(self, value: str, text: str, type: DataType) -> str:
        """Return the finished text of a column, null included. `text` is the result of `text`, cheap to repeat."""
        if not isinstance(type, ScalarType) or type.is_string or type.is_binary:
            made = self._quoted(text)
        elif type.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            made = self._quoted_timestamp(timestamp(text, type), " -:", ".Z+")
        elif type.name == "DATE":
            made = self._quoted_timestamp(f"CAST({value} AS STRING)", "-", "")
            later = self._quoted_timestamp(f"CAST({value} AS STRING)", "-+", "")
            made = f"IF({value} > DATE '9999-12-31', {later}, {made})"
        elif type.name == "DECIMAL":
            made = text
        else:
            made = f"CAST({value} AS STRING)"
        return f"coalesce({made}, {self.null})"

    def _quoted_timestamp(self, text: str, always: str, maybe: str) -> str:
        """Return a text, quoted if needed, that has all characters of `always`, digits, and maybe those of `maybe`."""
        quote, all = self.options.quote, {*always, *maybe, *"0123456789"}
        if quote is None:
            return text
        if not all & {quote, self._escape}:
            if any(c <= self._last for c in always):
                return f"concat({literal(quote)}, {text}, {literal(quote)})"
            if not maybe and min(all) > self._last:
                return text
        return self._quoted(text)

    def _joined(self, value: str, type: DataType) -> str:
        """Return the elements joined by the delimiter, which is not escaped in them; null where `value` is."""
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
        """Return the text of a scalar before quoting; null where `value` is."""
        if type.is_string:
            return value
        if type.is_binary:
            return _base64(value)
        if type.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return let(self.names, f"CAST({value} AS STRING)", lambda t: timestamp(t, type))
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
        # Lengths are Java's: characters beyond the first 65,536 count twice.
        long = (
            f"octet_length({text}) > {_LONG} AND "
            f"(length({text}) > {_LONG} OR length(encode({text}, 'UTF-16BE')) > {2 * _LONG})"
        )
        inner = text
        for c in self._doubled:
            inner = f"replace({inner}, {literal(c)}, {literal(c * 2)})"
        return f"IF(({long}) OR {text} RLIKE {literal(self._special)}, concat({q}, {inner}, {q}), {text})"


def _base64(value: str) -> str:
    """Return the base64 of `value` in one line, which Spark breaks."""
    return f"replace(base64({value}), {literal(chr(13) + chr(10))}, '')"
