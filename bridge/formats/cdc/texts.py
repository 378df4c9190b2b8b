"""The fast path for rows whose values come as texts or as they are, the fast path of Canal and Maxwell.

Canal writes every value as a string, so `from_json` with types would put each of its documents in doubt. Here all
scalars are read as STRING and converted, where the text alone says what Flink makes of it; a value that it does not
(and any list, map or row in a table's column) puts the document in doubt, and it goes json's slow path.

A field of `old` that is not there did not change, one that is null was null: so `old` is read as a map.
"""

from __future__ import annotations

from bridge.formats.json.fast import moment
from bridge.formats.json.options import JsonOptions
from bridge.formats.json.shape import is_temporal
from bridge.formats.sql import Names, let, literal, member, null, struct
from bridge.schema import DataType, RowType, ScalarType, quote

__all__ = ["Texts", "completed", "same_keys"]

_NUMBER = "^[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,3})?$"
_LONGEST_DECIMAL = 80
_BASE64 = "^[A-Za-z0-9+/]*={0,2}$"
_BARE = "^(?:-?[0-9][-+.0-9eE]*|true|false)$"
# A bare fraction was a DOUBLE on its way to STRING: so many characters of it are sure to be what was written.
_SHORT = 15
_BARE_FRACTION = r"[:\[,]\s*(?:-?[0-9]+[.eE]|-0)"
_LIKE_A_DOUBLE = r'^(?:-?[0-9]+[.][0-9]+(?:E-?[0-9]+)?|"-?Infinity"|0)$'
_LONGEST_DOUBLE = 30


class Texts:
    """SQL for rows of one shape. `text` is the whole document, a variable."""

    def __init__(self, row: RowType, options: JsonOptions, names: Names, text: str) -> None:
        self.row, self.options, self.names = row, options, names
        self.fractions = f"{text} RLIKE {literal(_BARE_FRACTION)}"

    @staticmethod
    def of(row: RowType) -> str:
        """The type that `from_json` reads a row as."""
        return "STRUCT<" + ", ".join(f"{quote(n)}: STRING" for n in row.names) + ">"

    def node(self, texts: str) -> str:
        """struct<v: row, d: boolean> of a struct of texts (a variable, null for no row): the row, and doubt."""

        def judged(converted: str) -> str:
            doubts = [
                self._doubt(member(texts, f.name), member(converted, f.name), f.type) for f in self.row.fields
            ]
            return struct(v=converted, d=f"coalesce({' OR '.join(doubts)}, FALSE)")

        fields = [f"{literal(f.name)}, {self._value(member(texts, f.name), f.type)}" for f in self.row.fields]
        none = struct(v=null(self.row.spark()), d="FALSE")
        row = let(self.names, f"named_struct({', '.join(fields)})", judged)
        return f"IF({texts} IS NULL, {none}, {row})"

    def looked_up(self, map: str) -> str:
        """The struct of texts that a map of texts (a variable) holds; null for no map."""
        fields = ", ".join(f"{literal(n)}, {map}[{literal(n)}]" for n in self.row.names)
        return f"IF({map} IS NULL, {null(self.of(self.row))}, named_struct({fields}))"

    def _value(self, text: str, type: DataType) -> str:
        """The value, or null when it is not sure."""
        if not isinstance(type, ScalarType):
            return null(type.spark())
        if type.is_string:
            return text
        if is_temporal(type):
            return moment(text, type, self.options)
        cast = f"TRY_CAST({text} AS {type.spark()})"
        if type.name == "BOOLEAN":
            return f"CASE WHEN lower({text}) = 'true' THEN TRUE WHEN {text} IN ('false', '0', '1') THEN FALSE END"
        if type.is_binary:
            sure = f"length({text}) % 4 = 0 AND {text} RLIKE {literal(_BASE64)} AND NOT {text} RLIKE {literal(_BARE)}"
            return f"IF({sure}, TRY_TO_BINARY({text}, 'base64'), NULL)"
        exact = f"(length({text}) <= {_SHORT} OR NOT {self.fractions})"
        if type.name == "DECIMAL":
            # An exponent of nine digits would cost minutes.
            plain = f"length({text}) <= {_LONGEST_DECIMAL} AND NOT contains({text}, 'e') AND NOT contains({text}, 'E')"
            return f"IF({plain} AND {exact}, {cast}, NULL)"
        if type.name == "FLOAT":
            return f"IF({text} RLIKE {literal(_NUMBER)} AND {exact}, {cast}, NULL)"
        if type.name == "DOUBLE":
            return f"IF({text} RLIKE {literal(_NUMBER)}, {cast}, NULL)"
        # Spark takes the same texts as Java's parseInt after its trim, and a DEL at the ends.
        return cast

    def _doubt(self, text: str, value: str, type: DataType) -> str:
        if isinstance(type, ScalarType) and type.is_string:
            # Below ':' are digits, signs and the quote: most texts are done with after one comparison.
            short = f"{text} < ':' AND length({text}) < {_LONGEST_DOUBLE}"
            return f"({short} AND {text} RLIKE {literal(_LIKE_A_DOUBLE)} AND {self.fractions})"
        return f"({text} IS NOT NULL AND {value} IS NULL)"


def completed(row: RowType, former: str, keys: str, after: str) -> str:
    """A former state with the fields that its document does not have taken from `after`.

    All three are variables; `keys` is the map whose keys are the fields that are there.
    """
    fields = []
    for name in row.names:
        old = member(former, name)
        there = f"{old} IS NOT NULL OR map_contains_key({keys}, {literal(name)})"
        fields.append(f"{literal(name)}, IF({there}, {old}, {member(after, name)})")
    return f"IF({former} IS NULL, {null(row.spark())}, named_struct({', '.join(fields)}))"


def same_keys(map: str) -> str:
    """True when a key comes twice; null or false when none does."""
    return f"size(array_distinct(map_keys({map}))) != size(map_keys({map}))"
