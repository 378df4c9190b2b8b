"""The names of a script: its tables and views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from bridge.ddl.cursor import nearest
from bridge.ddl.tokens import Source
from bridge.sql.connectors import Table
from bridge.sql.relation import Relation
from bridge.sql.statements import CreateTable, CreateView, Name

Reads = dict[str, dict[str, None]]
"""The columns that a query uses, by the table that has them, both in the order of their first use."""


@dataclass(frozen=True)
class View:
    """A view, analysed where it is created. `spark` is its query in Spark SQL; `words` are the tokens of the query."""

    name: str
    relation: Relation
    spark: exp.Query
    reads: Mapping[str, Mapping[str, None]]
    words: tuple[str, ...]
    positioned: Mapping[str, None] = field(default_factory=dict)
    """The topics of whose rows it needs the positions."""


@dataclass
class Catalogue:
    """Tables and views by name. Names differ in more than case, since Spark does not distinguish case."""

    entries: dict[str, Table | View] = field(default_factory=dict)

    def add(self, statement: CreateTable | CreateView, entry: Table | View) -> None:
        """Adds a table or view. Raises DdlError at its name if the name is used; with IF NOT EXISTS as well, because
        the second definition would be ignored."""
        name, source = statement.name, statement.source
        twin = next((n for n in self.entries if n.casefold() == name.text.casefold()), None)
        if twin is not None:
            ignored = ", and IF NOT EXISTS would ignore this one" if statement.if_not_exists else ""
            raise source.error(
                f"`{name.text}`: a {self._kind(twin)} with the name `{twin}` already exists{ignored}; rename or remove "
                "one",
                name.start,
            )
        self.entries[name.text] = entry

    def find(self, source: Source, name: Name, what: str = "table or view") -> Table | View:
        """Returns the entry of a name. Raises DdlError at the name if there is none, with the nearest name."""
        entry = self.entries.get(name.text)
        if entry is None:
            known = nearest(name.text, self.entries) if self.entries else "the script creates none"
            raise source.error(f"there is no {what} `{name.text}`; {known}", name.start)
        return entry

    def sink(self, source: Source, name: Name) -> Table:
        """Returns the table that an INSERT writes to. Raises DdlError at the name for views and unknown names."""
        entry = self.find(source, name, "table")
        if isinstance(entry, View):
            raise source.error(f"`{name.text}` is a view; an INSERT writes to a table", name.start)
        return entry

    def tables(self) -> Iterator[Table]:
        """Yields all tables in the order of the script."""
        return (e for e in self.entries.values() if isinstance(e, Table))

    def views(self) -> Iterator[View]:
        """Yields all views in the order of the script."""
        return (e for e in self.entries.values() if isinstance(e, View))

    def _kind(self, name: str) -> str:
        return "view" if isinstance(self.entries[name], View) else "table"
