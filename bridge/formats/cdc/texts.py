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
    """SQL for rows of one shape. `text` is the whole document, a variable.

    To look into the whole document is dear, and what stands twice behind an AND or OR Spark does ahead, needed or
    not; in the branch of an IF it is let be.
    """

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
            return struct(v=converted, d=self.doubt(texts, converted))

        none = struct(v=null(self.row.spark()), d="FALSE")
        return f"IF({texts} IS NULL, {none}, {let(self.names, self.converted(texts), judged)})"

    def converted(self, texts: str) -> str:
        """The row that a struct of texts tells; what is not sure is null in it."""
        fields = [f"{literal(f.name)}, {self._value(member(texts, f.name), f.type)}" for f in self.row.fields]
        return f"named_struct({', '.join(fields)})"

    def doubt(self, texts: str, converted: str) -> str:
        """Whether the row that was `converted` may not be what the texts tell; never null."""
        lost, doubles = ["FALSE"], ["FALSE"]
        for f in self.row.fields:
            text = member(texts, f.name)
            if isinstance(f.type, ScalarType) and f.type.is_string:
                doubles.append(_like_a_double(text))
            else:
                lost.append(f"({text} IS NOT NULL AND {member(converted, f.name)} IS NULL)")
        rounded = f"IF({' OR '.join(doubles)}, {self.fractions}, FALSE)"
        return f"(coalesce({' OR '.join(lost)}, FALSE) OR {rounded})"

    def former(self, texts: str, keys: str, new_texts: str, after: str) -> str:
        """As `completed` makes it of what is `converted`: a field is converted only if it is there, and written
        otherwise than in `new_texts`, of which `after` was made."""
        fields = []
        for f in self.row.fields:
            told = member(texts, f.name)
            untold, value = f"NOT map_contains_key({keys}, {literal(f.name)})", self._value(told, f.type)
            same = f"{told} <=> {member(new_texts, f.name)}" if value != told else "FALSE"
            as_now = f"IF({told} IS NULL, {untold}, {same})"
            fields.append(f"{literal(f.name)}, IF({as_now}, {member(after, f.name)}, {value})")
        return f"IF({texts} IS NULL, {null(self.row.spark())}, named_struct({', '.join(fields)}))"

    def looked_up(self, map: str) -> str:
        """The struct of texts that a map of texts (a variable) holds; null for no map."""
        fields = ", ".join(f"{literal(n)}, {map}[{literal(n)}]" for n in self.row.names)
        return f"IF({map} IS NULL, {null(self.of(self.row))}, named_struct({fields}))"

    def repeated(self, map: str, texts: str) -> str:
        """Whether a key comes twice in a map, as `same_keys` says it; `texts` is what was `looked_up` in it."""
        told = [member(texts, n) for n in self.row.names]
        there = " + ".join(f"IF({t} IS NULL, 0, 1)" for t in told)
        # As many entries as fields that are not null have no key twice, which is dear to find out otherwise.
        return f"IF(size({map}) = {there}, FALSE, {same_keys(map)})"

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
        exact = f"IF(octet_length({text}) <= {_SHORT}, TRUE, NOT {self.fractions})"
        if type.name == "DECIMAL":
            # An exponent of nine digits would cost minutes.
            plain = f"NOT (contains({text}, 'e') OR contains({text}, 'E'))"
            return f"IF(octet_length({text}) <= {_LONGEST_DECIMAL} AND {plain} AND {exact}, {cast}, NULL)"
        if type.name == "FLOAT":
            return f"IF({text} RLIKE {literal(_NUMBER)} AND {exact}, {cast}, NULL)"
        if type.name == "DOUBLE":
            # No name of a number, no suffix, no hexadecimal: the rest Spark reads as Java does.
            ends = " OR ".join(f"endswith({text}, '{suffix}')" for suffix in "dDfF")
            plain = f"{text} < ':' AND NOT (contains({text}, 'x') OR contains({text}, 'X') OR {ends})"
            return f"IF({plain}, {cast}, NULL)"
        # Spark takes the same texts as Java's parseInt after its trim, and a DEL at the ends.
        return cast


def _like_a_double(text: str) -> str:
    # Below ':' are digits, signs and the quote: most texts are done with after one comparison.
    return f"({text} < ':' AND octet_length({text}) < {_LONGEST_DOUBLE} AND {text} RLIKE {literal(_LIKE_A_DOUBLE)})"


def completed(row: RowType, former: str, keys: str, after: str) -> str:
    """A former state with the fields that its document does not have taken from `after`.

    All three are variables; `keys` is the map whose keys are the fields that are there.
    """
    fields = []
    for name in row.names:
        old = member(former, name)
        fields.append(
            f"{literal(name)}, IF({old} IS NULL, {_untold(keys, name, member(after, name))}, {old})"
        )
    return f"IF({former} IS NULL, {null(row.spark())}, named_struct({', '.join(fields)}))"


def _untold(keys: str, name: str, after: str) -> str:
    """A field whose former value is null or not told: it was null, or is as it was."""
    return f"IF(map_contains_key({keys}, {literal(name)}), NULL, {after})"


def same_keys(map: str) -> str:
    """True when a key comes twice; null or false when none does."""
    keys = f"map_keys({map})"
    return f"IF(size({keys}) < 2, FALSE, size(array_distinct({keys})) != size({keys}))"
