"""The fast path of Canal's and Maxwell's rows, whose values are texts or JSON of their own types.

Canal writes every value as a string, so `from_json` with types would find errors in all of its documents. Here scalars
are read as STRING and converted where the text alone determines what Flink reads. Any other value, and any list, map or
row in a column of the table, needs json's full decode.
"""

from __future__ import annotations

from bridge.format_rules.json_options import JsonOptions
from bridge.formats.json.fast_path import has_more_digits, is_temporal, temporal_value
from bridge.formats.sql import Names, let, literal, member, null, struct
from bridge.schema import DataType, RowType, ScalarType, quote

_NUMBER = "^[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,3})?$"
_LONGEST_DECIMAL = 80
_BASE64 = "^[A-Za-z0-9+/]*={0,2}$"
_BARE = "^(?:-?[0-9][-+.0-9eE]*|true|false)$"
_BARE_ZERO = "^-[0.]+(?:[eE].*)?$"
# `from_json` reads bare fractions as DOUBLE before they become STRING: texts up to this length are as written.
_SHORT = 15
_LONG_FRACTION = r"[:\[,]\s*-?(?=[0-9.]{17})[0-9]+[.eE]"
_BARE_FRACTION = r"[:\[,]\s*(?:-?[0-9]+[.eE]|-0)"
_LIKE_A_DOUBLE = r'^(?:-?[0-9]+[.][0-9]+(?:E-?[0-9]+)?|"-?Infinity"|0)$'
_LONGEST_DOUBLE = 30


class FastPath:
    """SQL for rows of any shape. `text` is the whole document, a variable.

    Searching the whole document is expensive. Spark evaluates an expression that occurs twice behind AND or OR in
    advance, needed or not, but not one in the branch of an IF.
    """

    def __init__(self, options: JsonOptions, names: Names, text: str) -> None:
        self.options, self.names = options, names
        self.fractions = f"{text} RLIKE {literal(_BARE_FRACTION)}"
        self.long_fractions = f"{text} RLIKE {literal(_LONG_FRACTION)}"

    @staticmethod
    def of(row: RowType) -> str:
        """Return the type that `from_json` reads a row as."""
        return "STRUCT<" + ", ".join(f"{quote(n)}: STRING" for n in row.names) + ">"

    def node(self, texts: str, row: RowType) -> str:
        """Return struct<v: row, d: boolean> of a struct of texts (a variable); `d`: it needs a full decode."""

        def checked(converted: str) -> str:
            return struct(v=converted, d=self.needs_full_decode(texts, converted, row))

        none = struct(v=null(row.spark()), d="FALSE")
        return f"IF({texts} IS NULL, {none}, {let(self.names, self.converted(texts, row), checked)})"

    def converted(self, texts: str, row: RowType) -> str:
        """Return the row of a struct of texts; values that need a full decode are null in it."""
        fields = [f"{literal(f.name)}, {self.value(member(texts, f.name), f.type)}" for f in row.fields]
        return f"named_struct({', '.join(fields)})"

    def needs_full_decode(self, texts: str, converted: str, row: RowType) -> str:
        """Return whether `converted` may differ from what Flink reads of the texts; never null."""
        unread, doubles = ["FALSE"], ["FALSE"]
        for f in row.fields:
            text = member(texts, f.name)
            if isinstance(f.type, ScalarType) and f.type.is_string:
                doubles.append(_like_a_double(text))
            else:
                unread.append(f"({text} IS NOT NULL AND {member(converted, f.name)} IS NULL)")
        rounded = f"IF({' OR '.join(doubles)}, {self.fractions}, FALSE)"
        return f"(coalesce({' OR '.join(unread)}, FALSE) OR {rounded})"

    def value(self, text: str, type: DataType) -> str:
        """Return the value, or null where it needs a full decode."""
        if not isinstance(type, ScalarType):
            return null(type.spark())
        if type.is_string:
            return text
        if is_temporal(type):
            return temporal_value(text, type, self.options)
        cast = f"TRY_CAST({text} AS {type.spark()})"
        if type.name == "BOOLEAN":
            usual = f"WHEN {text} = 'true' THEN TRUE WHEN {text} IN ('false', '0', '1') THEN FALSE"
            return f"CASE {usual} WHEN lower({text}) = 'true' THEN TRUE END"
        if type.is_binary:
            is_base64 = f"length({text}) % 4 = 0 AND {text} RLIKE {literal(_BASE64)}"
            return f"IF({is_base64} AND NOT {text} RLIKE {literal(_BARE)}, TRY_TO_BINARY({text}, 'base64'), NULL)"
        short = f"octet_length({text}) <= {_SHORT}"
        exact = f"IF({short}, TRUE, NOT {self.fractions})"
        signed = f"startswith({text}, '-0') AND {text} RLIKE {literal(_BARE_ZERO)}"
        if type.name == "DECIMAL":
            # A short text may be what is left of a long number: 1.0 of 1.000000000000000001.
            if has_more_digits(type):
                exact = f"IF({short}, NOT {self.long_fractions}, NOT {self.fractions})"
            else:
                more = rf"[.][0-9]{{{type.parameters[1] + 1}}}"
                exact = f"IF({short} AND NOT {text} RLIKE {literal(more)}, TRUE, NOT {self.fractions})"
            # An exponent of nine digits would cost minutes.
            plain = f"NOT (contains({text}, 'e') OR contains({text}, 'E')) AND {_ends_as_digits(text)}"
            return f"IF(octet_length({text}) <= {_LONGEST_DECIMAL} AND {plain} AND {exact}, {cast}, NULL)"
        if type.name == "FLOAT":
            return f"IF({text} RLIKE {literal(_NUMBER)} AND NOT ({signed}) AND {exact}, {cast}, NULL)"
        if type.name == "DOUBLE":
            # Neither NaN or Infinity, nor a suffix, nor hexadecimal: Spark reads the rest as Java does.
            ends = " OR ".join(f"endswith({text}, '{suffix}')" for suffix in "dDfF")
            plain = f"{text} < ':' AND NOT (contains({text}, 'x') OR contains({text}, 'X') OR {ends})"
            return f"IF({plain} AND NOT ({signed}), {cast}, NULL)"
        # Spark accepts the texts that Java's parseInt accepts after its trim, and a DEL at the ends.
        return cast


def _ends_as_digits(text: str) -> str:
    """Return whether nothing is around a number: Spark trims texts, and Flink refuses them as DECIMAL."""
    return f"{text} >= '!' AND right({text}, 1) BETWEEN '0' AND '9'"


def _like_a_double(text: str) -> str:
    # Below ':' are digits, signs and the quote: one comparison decides for most texts.
    return f"({text} < ':' AND octet_length({text}) < {_LONGEST_DOUBLE} AND {text} RLIKE {literal(_LIKE_A_DOUBLE)})"
