"""Rewrites what the parser of CREATE TABLE does not read: `LIKE another_table`, and columns AS PROCTIME().

Both are rewritten as tokens, which keep their places in the script, so errors name the text that is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bridge.ddl.part import Part
from bridge.ddl.statement import table_name
from bridge.ddl.tokens import Cursor, Token, nearest

_KINDS = (
    "ALL",
    "CONSTRAINTS",
    "GENERATED",
    "METADATA",
    "OPTIONS",
    "PARTITIONS",
    "WATERMARKS",
    "DISTRIBUTION",
)
_WAYS = ("INCLUDING", "EXCLUDING", "OVERWRITING")

Element = tuple[Token, ...]


@dataclass(frozen=True)
class Clauses:
    """A CREATE TABLE in its parts: the tokens before its columns, the columns and constraints, what is between them and
    WITH, and the options; `like` is what follows LIKE."""

    head: Element
    elements: tuple[Element, ...]
    comment: Element
    options: tuple[Element, ...]
    like: Element | None
    end: Token

    def part(self, part: Part) -> Part:
        """The statement without LIKE, as tokens of the same script."""
        at = self.head[-1]
        tokens = [*self.head, *_listed(self.elements, at), *self.comment]
        if self.options:
            tokens += [_symbol("WITH", at), *_listed(self.options, at)]
        return Part(part.source, (*tokens, self.end))


def clauses_of(part: Part) -> Clauses | None:
    """Splits a CREATE TABLE; None for a statement that the parser has to refuse."""
    c = part.cursor()
    c.take("CREATE")
    c.take("TEMPORARY")
    if not c.take("TABLE"):
        return None
    c.take("IF", "NOT", "EXISTS")
    table_name(c)
    head, elements = part.tokens[: c.index], _elements(c)
    begin = c.index
    while c.token.kind != "end" and c.token.keyword not in ("WITH", "LIKE"):
        c.next()
    comment = part.tokens[begin : c.index]
    options = _elements(c) if c.take("WITH") else ()
    like = part.tokens[c.index + 1 : -1] if c.at("LIKE") else None
    if like is None and c.token.kind != "end":
        return None
    return Clauses(head, elements, comment, options, like, part.tokens[-1])


def expanded(part: Part, clauses: Clauses, known: Mapping[str, Clauses]) -> Clauses:
    """The statement with what it takes over from the table after LIKE, by Flink's rules: all of it, and an option that
    both have from this one. INCLUDING and EXCLUDING choose; `known` are the tables before it, by name.

    Raises DdlError for a table that is not known, and for what LIKE does not take.
    """
    assert clauses.like is not None
    c = Cursor(part.source, (*clauses.like, clauses.end))
    at = c.token
    name = table_name(c)
    if name not in known:
        c.fail(f"there is no table `{name}` to be LIKE; {nearest(name, known)}", at)
    base, ways = known[name], _ways(c)
    taken = [e for e in base.elements if _is_taken(e, ways.get(_kind(e), "INCLUDING"), clauses.elements)]
    own = {option[0].text for option in clauses.options if option}
    options = [o for o in base.options if o[0].text not in own] if ways["OPTIONS"] != "EXCLUDING" else []
    if ways["OPTIONS"] == "INCLUDING" and (twice := own & {o[0].text for o in base.options}):
        c.fail(
            f"INCLUDING OPTIONS takes '{min(twice)}' from `{name}`, and this table sets it, too; remove one",
            at,
        )
    return replace(
        clauses,
        elements=(*taken, *clauses.elements),
        comment=clauses.comment or base.comment,
        options=(*options, *clauses.options),
        like=None,
    )


def without_proctime(clauses: Clauses) -> tuple[Clauses, tuple[str, ...]]:
    """The statement without its columns AS PROCTIME(), and their names.

    Such a column has no value of its own: in Flink it is the time at which a row is processed, and here the same row
    may be computed again.
    """
    names = tuple(e[0].text for e in clauses.elements if _is_proctime(e))
    kept = tuple(e for e in clauses.elements if not _is_proctime(e))
    return replace(clauses, elements=kept), names


def _is_proctime(element: Element) -> bool:
    return [t.keyword for t in element[1:5]] == ["AS", "PROCTIME", "(", ")"] and len(element) == 5


def _elements(c: Cursor) -> tuple[Element, ...]:
    """Consumes a list in parentheses, and returns its elements; empty if there is none."""
    if not c.take("("):
        return ()
    found: list[Element] = []
    open_: list[str] = []
    begin = c.index
    while c.token.kind != "end":
        # Elsewhere < and > compare.
        if c.at("(") or (c.at("<") and c.peek(-1).keyword in ("ARRAY", "MAP", "MULTISET", "ROW")):
            open_.append(c.token.text)
        elif c.at(">") and open_[-1:] == ["<"]:
            open_.pop()
        elif c.at(")"):
            if not open_:
                break
            open_.pop()
        elif c.at(",") and not open_:
            found.append(tuple(c.tokens[begin : c.index]))
            begin = c.index + 1
        c.next()
    found.append(tuple(c.tokens[begin : c.index]))
    c.take(")")
    return tuple(found) if found != [()] else ()


def _ways(c: Cursor) -> dict[str, str]:
    """What becomes of each kind of part: Flink's defaults, and the list in parentheses after the table."""
    ways = dict.fromkeys(_KINDS, "INCLUDING") | {"OPTIONS": "OVERWRITING"}
    listed: dict[str, str] = {}
    if c.take("("):
        while not c.take(")"):
            way, kind = c.next(), c.next()
            if way.keyword not in _WAYS or kind.keyword not in _KINDS:
                c.fail(f"expected INCLUDING, EXCLUDING or OVERWRITING and one of {', '.join(_KINDS)}", way)
            if way.keyword == "OVERWRITING" and kind.keyword not in (
                "GENERATED",
                "METADATA",
                "OPTIONS",
                "WATERMARKS",
            ):
                c.fail(f"OVERWRITING {kind.keyword} is not possible; write INCLUDING or EXCLUDING", way)
            listed[kind.keyword] = way.keyword
    if c.token.kind != "end":
        c.fail_expected("';' or a list of INCLUDING and EXCLUDING after the table of LIKE")
    if "ALL" in listed:
        ways = dict.fromkeys(_KINDS, listed["ALL"])
    return ways | listed


def _is_taken(element: Element, way: str, own: Sequence[Element]) -> bool:
    """Whether an element of the other table is taken over; OVERWRITING leaves it out where this table has its own."""
    if way == "OVERWRITING":
        return all(e[0].text.upper() != element[0].text.upper() for e in own if e)
    return way != "EXCLUDING"


def _kind(element: Element) -> str:
    words = [t.keyword for t in element]
    if words[:1] in (["PRIMARY"], ["CONSTRAINT"]):
        return "CONSTRAINTS"
    if words[:1] == ["WATERMARK"]:
        return "WATERMARKS"
    if words[1:2] == ["AS"]:
        return "GENERATED"
    if "METADATA" in words:
        return "METADATA"
    return "PHYSICAL"


def _listed(elements: Iterable[Sequence[Token]], at: Token) -> list[Token]:
    tokens: list[Token] = []
    for element in elements:
        tokens += [_symbol("," if tokens else "(", element[0] if element else at), *element]
    return [*tokens, _symbol(")", tokens[-1] if tokens else at)] if tokens else []


def _symbol(text: str, at: Token) -> Token:
    kind = "word" if text.isalpha() else "symbol"
    return Token(kind, text, at.start, at.start)
