"""Flink's raw format: a document is the bytes of a row's only field.

As in Flink, a null field is written as null, and null is read as a row whose field is null; so under upsert-kafka a row
whose raw value is null is a delete. Bytes that are no text in the charset, and characters that the charset does not
have, are errors here, where Flink replaces them.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.format_rules.raw import CHARSETS, SIZES, RawShape
from bridge.formats.base import NOTHING, Options
from bridge.formats.sql import Names, SqlDecoder, SqlEncoder, let, literal, member
from bridge.schema import RowType

_MISSING = {"US-ASCII": r"[^\x00-\x7f]", "ISO-8859-1": r"[^\x00-\xff]"}


class RawFormat:
    """Decodes and encodes the bytes of one column."""

    name = "raw"

    def decoder(
        self, row: RowType, options: Options, *, metadata: RowType = NOTHING, key: Sequence[str] = ()
    ) -> RawDecoder:
        """See Format.decoder."""
        return RawDecoder(row, RawShape(row, options))

    def encoder(self, row: RowType, options: Options) -> RawEncoder:
        """See Format.encoder."""
        return RawEncoder(RawShape(row, options))


class RawDecoder(SqlDecoder):
    """Reads every document as a row, and null as a row whose field is null.

    Text must be valid in the charset, and a number must have its type's size. No document needs a full decode."""

    def __init__(self, row: RowType, shape: RawShape) -> None:
        self.row, self.shape = row, shape

    def document(self, payload: str, names: Names, *, fast: bool) -> str:
        name = self.shape.field.name
        condition, problem = self._check(payload)
        none = self.bad(literal(f"field '{name}': {problem}"))

        def value(checked: str) -> str:
            row = f"named_struct({literal(name)}, {self._value(checked, names)})"
            good = self.good(row, names)
            return f"IF({checked} IS NULL AND {payload} IS NOT NULL, {none}, {good})"

        # The conversion raises for bytes that are no value, so it gets null for them.
        return let(names, f"IF({condition}, {payload}, NULL)", value)

    def _check(self, payload: str) -> tuple[str, str]:
        """Return the condition for good bytes, and the error of others."""
        type, charset = self.shape.type, self.shape.charset
        if type.is_binary:
            return "true", ""
        if type.is_string:
            pattern = CHARSETS[charset]
            if pattern is None:
                return f"is_valid_utf8(CAST({payload} AS STRING))", f"not valid {charset}"
            return (
                f"hex({payload}) RLIKE {literal(rf'{chr(92)}A(?:{pattern}){chr(92)}z')}",
                f"not valid {charset}",
            )
        size = SIZES[type.name]
        return (
            f"octet_length({payload}) = {size}",
            f"Size of data received for deserializing {type.name} type is not {size}.",
        )

    def _value(self, payload: str, names: Names) -> str:
        type = self.shape.type
        if type.is_binary:
            return payload
        if type.is_string:
            if self.shape.charset == "UTF-8":
                return f"CAST({payload} AS STRING)"
            return f"decode({payload}, {literal(self.shape.charset)})"
        if type.name in ("FLOAT", "DOUBLE"):  # as Avro writes them, little-endian
            little = self.shape.turned(payload, big=False)
            return f"from_avro({little}, {literal(chr(34) + type.name.lower() + chr(34))}, map())"
        big = self.shape.turned(payload, big=True)
        number = f"CAST(conv(hex({big}), 16, -10) AS BIGINT)"
        if type.name == "BOOLEAN":
            return f"{number} <> 0"
        bits = 8 * SIZES[type.name]
        if bits == 64:
            return number
        signed = let(names, number, lambda n: f"IF({n} >= {2 ** (bits - 1)}, {n} - {2**bits}, {n})")
        return f"CAST({signed} AS {type.spark()})"


class RawEncoder(SqlEncoder):
    """Writes the bytes of the one field; null where it or the row is null. Fails for a text with characters that the
    charset does not have."""

    def __init__(self, shape: RawShape) -> None:
        self.shape = shape

    def payload(self, row: str, names: Names) -> str:
        return self._bytes(member(row, self.shape.field.name))

    def _bytes(self, value: str) -> str:
        type = self.shape.type
        if type.is_binary:
            return value
        if type.is_string:
            return self._text(value)
        if type.name in ("FLOAT", "DOUBLE"):
            encoded = f"to_avro({value}, {literal(chr(34) + type.name.lower() + chr(34))})"
            return f"IF({value} IS NULL, NULL, {self.shape.turned(encoded, big=False)})"
        number = (
            f"CAST(CAST({value} AS INT) AS BIGINT)" if type.name == "BOOLEAN" else f"CAST({value} AS BIGINT)"
        )
        digits = f"right(lpad(hex({number}), 16, '0'), {2 * SIZES[type.name]})"
        return self.shape.turned(f"unhex({digits})", big=True)

    def _text(self, value: str) -> str:
        charset = self.shape.charset
        if charset == "UTF-8":
            return f"CAST({value} AS BINARY)"
        encoded = f"encode({value}, {literal(charset)})"
        if charset not in _MISSING:
            return encoded
        error = literal(
            f"field '{self.shape.field.name}' holds a character that charset {charset} does not have; choose "
            "another 'raw.charset'"
        )
        unmappable = f"{value} RLIKE {literal(_MISSING[charset])}"
        return f"IF({unmappable}, CAST(raise_error({error}) AS BINARY), {encoded})"
