"""Splits a line of CSV into the texts of its fields, as Jackson's CsvDecoder does.

Lines without quotes are split at the delimiter. In the others a pattern matches token after token; a delimiter is put
in front of the line, so that no token is empty, which would end the matching. Quantifiers are possessive: Java's other
quantifiers recurse, and a long value would overflow the stack.
"""

from __future__ import annotations

from bridge.format_rules.csv_options import CsvOptions
from bridge.formats.sql import Names, let, literal

_META = ".$|()[{^?*+\\"
_BOM = "\ufeff"
_SKIPPED = r"\A(?:[ \r\n]|#[^\r\n]*+)*+"
_UNESCAPED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}


def split(text: str, delimiter: str) -> str:
    """Return the parts of `text` between delimiters, including empty ones at the end."""
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
            # Jackson checks for a quote before an escape, so where both are one character it is the quote.
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
        """Return ARRAY<STRING> of the fields' texts; null for a malformed line. `text` is a variable."""
        unmarked = f"IF(startswith({text}, '{_BOM}'), substr({text}, 2), {text})"
        if not self.options.allow_comments:
            return let(self.names, unmarked, self._line)
        unmarked = f"regexp_replace({unmarked}, {literal(_SKIPPED)}, '')"
        # A document of nothing but comments is no line, while an empty document is one.
        return let(self.names, unmarked, lambda t: f"IF({t} = '' AND {text} <> '', NULL, {self._line(t)})")

    def _line(self, text: str) -> str:
        special = [c for c in (self.options.quote, self.options.escape, "\n", "\r") if c]
        is_special = " OR ".join(f"contains({text}, {literal(c)})" for c in dict.fromkeys(special))
        plain = split(text, self.options.delimiter)
        if self.options.trim:
            value = self.names.fresh()
            plain = f"transform({plain}, {value} -> trim(BOTH {literal(CONTROLS)} FROM {value}))"
        return f"IF({is_special}, {self._match_tokens(text)}, {plain})"

    def _match_tokens(self, text: str) -> str:
        line = f"concat({literal(self.options.delimiter)}, {text})"
        tokens = f"regexp_extract_all({line}, {literal(self._token)}, 0)"
        value = self.names.fresh()

        def texts(tokens: str) -> str:
            # Only the last token can be a rest that is no field.
            is_whole = f"element_at({tokens}, -1) RLIKE {literal(self._good)}"
            return f"IF({is_whole}, transform({tokens}, {value} -> {self._text(value)}), NULL)"

        return let(self.names, tokens, texts)

    def _text(self, token: str) -> str:
        """Return the text of a token, which begins with the delimiter."""
        if self.options.trim:
            # Leading spaces are cut before escapes are read, so an escaped space is kept.
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


CONTROLS = "".join(map(chr, range(0x21)))
"""The characters that Java's trim() removes."""

BLANK = r"\A[\x00-\x20]*\z"
"""A text that is empty after Java's trim()."""


def pattern(character: str) -> str:
    """Return `character` for a regular expression, inside or outside of brackets."""
    return rf"\x{{{ord(character):x}}}"


def text_or_null(text: str, options: CsvOptions) -> str:
    """Return `text`, or null where it means null."""
    if options.null_literal is not None:
        text = f"nullif({text}, {literal(options.null_literal)})"
    return f"nullif({text}, '')" if options.empty_as_null else text


def item_or_null(text: str, options: CsvOptions) -> str:
    """Return the same for an element of a list or row, which is trimmed in quotes, too."""
    return text_or_null(f"trim(BOTH {literal(CONTROLS)} FROM {text})" if options.trim else text, options)
