"""The columns that the expressions of one SELECT can use: those of the tables in its FROM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from bridge.ddl.tokens import Source, nearest
from bridge.schema import DataType, RowType
from bridge.sql.connectors import Table
from bridge.sql.relation import QueryColumn, Relation
from bridge.sql.statements import CreateTable, CreateView, Name
from bridge.sql.tree import QueryTree, Term, column_term

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


@dataclass(frozen=True)
class Item:
    """One table, view or subquery in FROM. `first` is the index of its first column in the scope; `table` is the name
    of the table of the script that it reads, and None for views and subqueries."""

    alias: str
    relation: Relation
    first: int
    table: str | None = None


@dataclass
class Scope:
    """All items in FROM. `merged` are the columns of USING, which are named without a table."""

    tree: QueryTree
    reads: Reads
    items: list[Item] = field(default_factory=list)
    merged: dict[str, Term] = field(default_factory=dict)
    proctime: dict[str, str] = field(default_factory=dict)
    """Columns AS PROCTIME() that were left out, and their tables."""

    @property
    def width(self) -> int:
        """The number of columns."""
        return sum(len(item.relation.columns) for item in self.items)

    def add(self, alias: str, relation: Relation, table: str | None, node: exp.Expr) -> Item:
        """Adds a table, view or subquery. Raises DdlError at `node` if its alias is used already."""
        if any(item.alias.casefold() == alias.casefold() for item in self.items):
            raise self.tree.error(f"`{alias}` is in FROM twice; give each table an alias of its own", node)
        item = Item(alias, relation, self.width, table)
        self.items.append(item)
        return item

    def owner(self, index: int) -> Item:
        """Returns the item that has the column with this index."""
        return self._all()[index][0]

    def column(self, index: int) -> QueryColumn:
        """Returns the column with this index."""
        return self._all()[index][1]

    def resolve(self, node: exp.Column) -> DataType | None:
        """Resolves a name: rewrites it with its table's alias, notes what it reads, and returns its type.

        Its index is in `node.meta["term"]` afterwards, unless the name is a field of a ROW. Raises DdlError for names
        that are unknown or ambiguous.
        """
        parts = node.parts
        names = [p.name for p in parts]
        item = next((i for i in self.items if i.alias == names[0]), None) if len(names) > 1 else None
        if item is None and names[0] in self.merged:
            return self._merged_column(node, names)
        if item is None and len(names) > 1 and names[0] not in {c.name for _, c in self._all()}:
            known = dict.fromkeys([*(i.alias for i in self.items), *(c.name for _, c in self._all())])
            raise self.tree.error(
                f"there is no table or column `{names[0]}`; {nearest(names[0], known)}", parts[0]
            )
        found = self._in_item(item, parts[1]) if item is not None else self._in_all(parts[0])
        index, owner = found
        fields = parts[2:] if item is not None else parts[1:]
        type = self.column(index).type
        for part in fields:
            type = self._field(type, part)
        self._refuse_twin(owner, index, parts[1] if item is not None else parts[0])
        self._read(owner, index)
        if item is None and len(fields) < 3:
            node.set(("table", "db", "catalog")[len(fields)], exp.to_identifier(owner.alias, quoted=True))
        if not fields:
            node.meta["term"] = column_term(index)
        return type

    def star(self, qualifier: str | None, node: exp.Expr) -> list[exp.Column]:
        """Returns the columns of `*` or `alias.*`, USING columns first. Raises DdlError for an unknown alias."""
        aliases = [item.alias for item in self.items]
        if qualifier is not None and qualifier not in aliases:
            raise self.tree.error(
                f"there is no table `{qualifier}` in FROM; {nearest(qualifier, aliases)}", node
            )
        columns = [exp.column(name) for name in self.merged] if qualifier is None else []
        hidden = set().union(*self.merged.values()) if qualifier is None and self.merged else set()
        for index, (item, column) in enumerate(self._all()):
            if index not in hidden and qualifier in (None, item.alias):
                columns.append(exp.column(column.name, table=item.alias))
        for column_node in columns:
            column_node.this.meta.update({k: v for k, v in node.meta.items() if k == "start"})
        return columns

    def read_all(self) -> Iterator[int]:
        """Notes that all columns are read; yields their indexes."""
        for index, (item, _) in enumerate(self._all()):
            self._read(item, index)
            yield index

    def _all(self) -> list[tuple[Item, QueryColumn]]:
        return [(item, column) for item in self.items for column in item.relation.columns]

    def _merged_column(self, node: exp.Column, names: list[str]) -> DataType | None:
        term = self.merged[names[0]]
        for index in term:
            self._read(self._all()[index][0], index)
        if len(names) == 1:
            node.meta["term"] = term
        type = self.column(min(term)).type
        for part in node.parts[1:]:
            type = self._field(type, part)
        return type

    def _in_item(self, item: Item, name: exp.Expr) -> tuple[int, Item]:
        found = [item.first + i for i, c in enumerate(item.relation.columns) if c.name == name.name]
        return self._only(found, name, item.relation.names, f"`{item.alias}` has no column"), item

    def _in_all(self, name: exp.Expr) -> tuple[int, Item]:
        known = [c.name for _, c in self._all()]
        found = [i for i, other in enumerate(known) if other == name.name]
        index = self._only(found, name, tuple(dict.fromkeys(known)), "there is no column")
        return index, self._all()[index][0]

    def _only(self, found: list[int], name: exp.Expr, known: tuple[str, ...], missing: str) -> int:
        if not found and name.name in self.proctime:
            raise self.tree.unsupported(
                f"`{name.name}` of `{self.proctime[name.name]}`, a column AS PROCTIME()",
                "a row that is computed again must be the same; use a column with the time of the record (METADATA "
                "FROM 'timestamp')",
                name,
            )
        if not found:
            raise self.tree.error(f"{missing} `{name.name}`; {nearest(name.name, known)}", name)
        if len(found) > 1:
            owners = " and ".join(f"`{self._all()[i][0].alias}`" for i in found)
            raise self.tree.error(
                f"column `{name.name}` is ambiguous: it is in {owners}; write alias.column", name
            )
        return found[0]

    def _refuse_twin(self, owner: Item, index: int, name: exp.Expr) -> None:
        """Raises DdlError if another column of the same table or subquery differs only in case, unlike in Flink."""
        own = self.column(index).name
        twin = next((n for n in owner.relation.names if n != own and n.casefold() == own.casefold()), None)
        if twin is not None:
            raise self.tree.error(
                f"`{own}` and `{twin}` of `{owner.alias}` differ only in case, and Spark does not distinguish "
                f"case; rename "
                "one",
                name,
            )

    def _field(self, type: DataType | None, part: exp.Expr) -> DataType | None:
        if type is None:
            return None
        fields = {f.name: f.type for f in type.fields} if isinstance(type, RowType) else {}
        if part.name not in fields:
            why = nearest(part.name, fields) if fields else f"its type is {type.flink()}"
            raise self.tree.error(f"there is no field `{part.name}`; {why}", part)
        return fields[part.name]

    def _read(self, item: Item, index: int) -> None:
        if item.table is not None:
            name = item.relation.columns[index - item.first].name
            self.reads.setdefault(item.table, {})[name] = None
