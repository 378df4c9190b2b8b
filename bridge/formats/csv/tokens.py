r"""A line of CSV taken apart as Jackson's CsvDecoder does it: the texts of its fields.

Lines without quotes are split at the delimiter. For the others a pattern walks from delimiter to delimiter; the line
has one put in front, so that no token is empty, which would stop the walk. Quantifiers are possessive: Java's other
ones recurse, and a long value would overflow the stack.
"""

from __future__ import annotations

from bridge.format_rules.csv_options import CsvOptions
from bridge.formats.csv.shape import CONTROLS, pattern
from bridge.formats.sql import Names, let, literal

__all__ = ["Tokens", "split"]

_META = ".$|()[{^?*+\\"
_BOM = "\ufeff"
_SKIPPED = r"\A(?:[ \r\n]|#[^\r\n]*+)*+"
_UNESCAPED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}


def split(text: str, delimiter: str) -> str:
    """The parts of `text` between delimiters, empty ones at the end too."""
    # In this form Java splits without a pattern.
    return f"split({text}, {literal(chr(92) + delimiter if delimiter in _META else delimiter)}, -1)"


class Tokens:
    """SQL for the fields of a line under some options."""

    def __init__(self, options: CsvOptions, names: Names) -> None:
        self.options, self.names = options, names
        delimiter, quote, escape = (
            pattern(c) if c else "" for c in (options.delimiter, options.quote, options.escape)
        )
        plain = rf"[^{delimiter}\r\n{escape}]++"
        escaped = rf"|{escape}[\s\S]" if escape else ""
        field = f"(?:{plain}{escaped})*+"
        if quote:
            # A quote is looked for before an escape, so the same character is the quote.
            inside = f"[^{quote}{escape}]++|{quote}{quote}" + (escaped if escape != quote else "")
            after = rf"[\x{{0}}-\x{{20}}&&[^\r\n{delimiter}]]*+"
            field = f"(?:{quote}(?:{inside})*+{quote}{after}|(?!{quote}){field})"
        if options.trim:
            field = rf"[\x{{0}}-\x{{20}}&&[^\r\n{delimiter}]]*+{field}"
        end = rf"(?={delimiter}|[\r\n]|\z)"
        self._token = rf"\G{delimiter}(?:{field}{end}|[\s\S]*+)"
        self._good = rf"\A{delimiter}{field}\z"
        inner = rf"[^{quote}{escape}]++|{quote}{quote}|{escape}[\s\S]" if quote else f"{plain}{escaped}"
        self._pieces = {True: inner, False: rf"[^{escape}]++|{escape}[\s\S]"}

    def of(self, text: str) -> str:
        """ARRAY<STRING> of the fields' texts; null for a line that is malformed. `text` is a variable."""
        unmarked = f"IF(startswith({text}, '{_BOM}'), substr({text}, 2), {text})"
        if not self.options.allow_comments:
            return let(self.names, unmarked, self._line)
        unmarked = f"regexp_replace({unmarked}, {literal(_SKIPPED)}, '')"
        # No line at all is not the line of an empty document.
        return let(self.names, unmarked, lambda t: f"IF({t} = '' AND {text} <> '', NULL, {self._line(t)})")

    def _line(self, text: str) -> str:
        special = [c for c in (self.options.quote, self.options.escape, "\n", "\r") if c]
        found = " OR ".join(f"contains({text}, {literal(c)})" for c in dict.fromkeys(special))
        plain = split(text, self.options.delimiter)
        if self.options.trim:
            value = self.names.fresh()
            plain = f"transform({plain}, {value} -> trim(BOTH {literal(CONTROLS)} FROM {value}))"
        return f"IF({found}, {self._walk(text)}, {plain})"

    def _walk(self, text: str) -> str:
        line = f"concat({literal(self.options.delimiter)}, {text})"
        tokens = f"regexp_extract_all({line}, {literal(self._token)}, 0)"
        value = self.names.fresh()

        def judge(found: str) -> str:
            # Only the last token can be the rest that is no field.
            whole = f"element_at({found}, -1) RLIKE {literal(self._good)}"
            return f"IF({whole}, transform({found}, {value} -> {self._text(value)}), NULL)"

        return let(self.names, tokens, judge)

    def _text(self, token: str) -> str:
        """What a token, delimiter in front, stands for."""
        if self.options.trim:
            # What is in front is cut before escapes are read, so one of them may begin with a space.
            cut = f"trim(LEADING {literal(CONTROLS)} FROM substr({token}, 2))"
            front = literal(self.options.delimiter)
            return let(self.names, f"concat({front}, {cut})", self._cut)
        return self._cut(token)

    def _cut(self, token: str) -> str:
        plain = self._unescape(f"substr({token}, 2)", quoted=False)
        if self.options.trim:
            plain = f"trim(TRAILING {literal(CONTROLS)} FROM {plain})"
        if not self.options.quote:
            return plain
        blanks = literal(CONTROLS.replace(self.options.quote, ""))
        quoted = let(
            self.names,
            f"trim(TRAILING {blanks} FROM {token})",
            lambda t: self._unescape(f"substr({t}, 3, length({t}) - 3)", quoted=True),
        )
        opening = literal(self.options.delimiter + self.options.quote)
        return f"IF(startswith({token}, {opening}), {quoted}, {plain})"

    def _unescape(self, text: str, *, quoted: bool) -> str:
        quote, escape = self.options.quote or "", self.options.escape
        doubled = literal(quote * 2)
        if escape is None or (quoted and escape == quote):
            return f"replace({text}, {doubled}, {literal(quote)})" if quoted else text
        pieces = f"regexp_extract_all({text}, {literal(self._pieces[quoted])}, 0)"
        piece = self.names.fresh()
        cases = [f"WHEN {piece} = {literal(escape + c)} THEN {literal(of)}" for c, of in _UNESCAPED.items()]
        if quoted:
            cases.append(f"WHEN {piece} = {doubled} THEN {literal(quote)}")
        cases.append(f"WHEN startswith({piece}, {literal(escape)}) THEN substr({piece}, 2)")
        return f"array_join(transform({pieces}, {piece} -> CASE {' '.join(cases)} ELSE {piece} END), '')"
