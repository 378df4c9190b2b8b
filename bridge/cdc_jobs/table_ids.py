"""Ids of tables, `[[namespace.]schema.]table`, and the expressions that select them, as in Flink CDC.

In an expression `.` separates the parts of an id, each of which is a regular expression for the whole part; `\\.` is
the dot of a regular expression, and `,` separates alternatives (Flink CDC: "Table ID", `Selectors`, `Predicates`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bridge.errors import DefinitionError

MOST_PARTS = 3

TableId = tuple[str, ...]
"""One to three parts; the last one is the table's name."""

_LITERAL = re.compile(r"[\w -]+")


@dataclass(frozen=True)
class TableSelector:
    """The alternatives of an expression, each by its parts."""

    text: str
    alternatives: tuple[tuple[re.Pattern[str], ...], ...]

    @classmethod
    def parse(cls, text: str) -> TableSelector:
        """Parses an expression. Raises DefinitionError, without a position, for one that is not legal."""
        alternatives = tuple(_alternative(item) for item in _split(text, ","))
        if not alternatives:
            raise DefinitionError("it names no table; write table, schema.table or namespace.schema.table")
        return cls(text, alternatives)

    def matches(self, table: TableId) -> bool:
        """Whether the expression selects the table. An alternative with fewer parts than the id is about its last
        ones; upper and lower case are the same, both as in Flink CDC."""
        return any(_match(parts, table) is not None for parts in self.alternatives)

    def groups(self, table: TableId) -> tuple[str | None, ...]:
        """Returns what the groups of the first alternative that matches have captured, counted through its parts."""
        for parts in self.alternatives:
            found = _match(parts, table)
            if found is not None:
                return tuple(group for match in found for group in match.groups())
        return ()

    @property
    def names(self) -> tuple[TableId, ...] | None:
        """The ids, if the expression has no regular expression, else None."""
        names = [tuple(part.pattern for part in parts) for parts in self.alternatives]
        return tuple(names) if all(_LITERAL.fullmatch(p) for name in names for p in name) else None


def _alternative(text: str) -> tuple[re.Pattern[str], ...]:
    parts = []
    for part in _split(text, "."):
        pattern = part.replace("\\.", ".")
        try:
            parts.append(re.compile(pattern, re.IGNORECASE))
        except re.error as error:
            raise DefinitionError(
                f"'{pattern}' is not a regular expression: {error}; '.' separates the parts of a table's id, and '\\.' "
                "is the dot of a regular expression: shop.order_\\.*"
            ) from None
    if not 1 <= len(parts) <= MOST_PARTS:
        raise DefinitionError(
            f"'{text}' has {len(parts)} parts; legal are table, schema.table and namespace.schema.table, and '\\.' is "
            "the dot of a regular expression"
        )
    return tuple(parts)


def _match(parts: tuple[re.Pattern[str], ...], table: TableId) -> list[re.Match[str]] | None:
    if len(parts) > len(table):
        return None
    found = [pattern.fullmatch(name) for pattern, name in zip(parts, table[-len(parts) :], strict=True)]
    return None if None in found else [match for match in found if match is not None]


def _split(text: str, separator: str) -> Iterator[str]:
    """Yields what is between separators without a backslash before them, trimmed; what is empty is left out."""
    for item in re.findall(rf"(?:\\.|[^\\{re.escape(separator)}])+|\\$", text, re.DOTALL):
        if item.strip():
            yield item.strip().replace(f"\\{separator}", separator) if separator == "," else item.strip()
