"""`projection` and `filter` of a transform rule, taken apart into columns of a SELECT.

Only what SQL does not have is done here: `\\*`, a computed column that takes the place of a column with its name, and
the metadata fields `__table_name__` and the like, which are constants of a table. Expressions stay as they are written;
`sql` analyses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bridge.cdc_jobs.table_ids import TableId
from bridge.ddl.cursor import nearest
from bridge.ddl.tokens import Source, Token, tokenize
from bridge.errors import DdlError

Slice = tuple[int, int] | str
"""A part of an expression: where it is in the text, or a text that takes its place."""

_METADATA = ("__namespace_name__", "__schema_name__", "__table_name__")


@dataclass(frozen=True)
class Projected:
    """A column of the projection; without an expression it is the table's column of that name."""

    name: str
    expression: tuple[Slice, ...] = ()


def project(source: Source, columns: Sequence[str], table: TableId) -> tuple[Projected, ...]:
    """Returns the columns that a projection selects of a table with `columns`, in the order of Flink CDC.

    A column that is named again replaces the one before, in its place. Raises DdlError in `source` for a column that
    the table does not have, and for an expression without a name.
    """
    source = unescaped(source)
    found: dict[str, Projected] = {}
    for item in _items(source):
        if len(item) == 1 and item[0].keyword == "*":
            found |= {name: found.get(name, Projected(name)) for name in columns}
            continue
        column = _column(source, item, columns, table)
        found[column.name] = column
    return tuple(found.values())


def unescaped(source: Source) -> Source:
    """Returns the text with `*` for `\\*`, which YAML would read as an alias; a blank keeps the positions.

    Strings, quoted names and comments stay as they are. Raises DdlError for one that is not closed.
    """
    tokens, text = tokenize(source), source.text
    for escape, star in pairwise(tokens):
        if (escape.keyword, star.keyword) == ("\\", "*") and escape.end == star.start:
            text = f"{text[: escape.start]} {text[escape.end :]}"
    return Source(text, source.file)


def slices(source: Source, tokens: Sequence[Token], table: TableId) -> tuple[Slice, ...]:
    """Returns the text of the tokens, with the metadata fields of the table as strings in it.

    Raises DdlError for `__data_event_type__`.
    """
    parts: list[Slice] = []
    begin = tokens[0].start
    names = dict(zip(_METADATA, ["", "", *table][-3:], strict=True))
    for token in tokens:
        if token.text == "__data_event_type__" and token.kind in ("word", "name"):
            raise source.error(
                "__data_event_type__ is not a part of a row: a row may be computed again, and is the same then; the "
                "kind of a change is in the messages of debezium-json (op) and canal-json (type)",
                token.start,
            )
        if token.text in names and token.kind in ("word", "name"):
            text = names[token.text].replace("'", "''")
            parts += [(begin, token.start), f"'{text}'"]
            begin = token.end
    parts.append((begin, tokens[-1].end))
    return tuple(part for part in parts if isinstance(part, str) or part[0] < part[1])


def expression_names(source: Source) -> set[str]:
    """Returns the words of an expression that may be columns."""
    return {token.text for token in tokenize(source) if token.kind in ("word", "name")}


def _items(source: Source) -> Iterator[list[Token]]:
    """Yields the tokens of each item of the list; commas in parentheses separate arguments."""
    item: list[Token] = []
    depth = 0
    for token in tokenize(source):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.keyword, 0)
        if token.kind == "end" or (token.keyword == "," and depth == 0):
            if not item:
                raise source.error("a column is missing here; remove the comma, or name one", token.start)
            yield item
            item = []
        else:
            item.append(token)


def _column(source: Source, item: Sequence[Token], columns: Sequence[str], table: TableId) -> Projected:
    first = item[0]
    if len(item) == 1 and first.kind in ("word", "name") and first.text not in _METADATA:
        if first.text not in columns:
            raise source.error(
                f"table {'.'.join(table)} has no column `{first.text}`; {nearest(first.text, columns)}",
                first.start,
            )
        return Projected(first.text)
    if len(item) < 3 or item[-2].keyword != "AS" or item[-1].kind not in ("word", "name"):
        raise _unnamed(source, first)
    name = item[-1].text
    if name.startswith("__"):
        raise source.error(
            f"column `{name}`: names that start with two underscores are reserved for the bridge; choose another",
            item[-1].start,
        )
    return Projected(name, slices(source, item[:-2], table))


def _unnamed(source: Source, token: Token) -> DdlError:
    return source.error(
        "an expression needs a name: UPPER(name) AS upper_name; legal are \\*, columns, and expression AS name",
        token.start,
    )
