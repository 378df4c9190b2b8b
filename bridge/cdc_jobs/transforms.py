"""The section `transform`: which rule is about which table, and the key of what is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.cdc_jobs.model import TransformRule
from bridge.cdc_jobs.routes import match_rules
from bridge.cdc_jobs.source_tables import SourceTable, key_columns
from bridge.cdc_jobs.table_ids import TableId
from bridge.config.yaml_tree import Document, Place
from bridge.errors import DefinitionError, UnsupportedError


@dataclass(frozen=True)
class Transformed:
    """A table with its rule. `key` identifies the rows that are sent; it is empty if nothing says so."""

    table: SourceTable
    key: tuple[str, ...]
    rule: TransformRule | None = None
    number: int = 0

    @property
    def is_direct(self) -> bool:
        """Whether all columns and rows of a Delta table are sent as they are, without a query and a state."""
        is_plain = self.rule is None or (self.rule.projection is None and self.rule.filter is None)
        return is_plain and self.table.delta is not None

    @property
    def place(self) -> Place:
        """Where the file says what is done with the table."""
        return ("source",) if self.rule is None else ("transform", self.number)


def transformed_tables(
    document: Document, rules: Sequence[TransformRule], tables: Sequence[SourceTable]
) -> tuple[Mapping[TableId, Transformed], tuple[str, ...]]:
    """Returns each table with the rule that matches it, and warnings about rules that match none.

    The key is that of the source; where the source has none, `primary-keys` gives it. Raises DefinitionError with the
    position for a key that is not legal, and UnsupportedError for a table that two rules match.
    """
    matched = match_rules(document, "transform", rules, [table.id for table in tables])
    found = {}
    for table in tables:
        matching = matched.rules[table.id]
        if len(matching) > 1:
            first = document.where(("transform", matching[0]))
            raise UnsupportedError(
                f"{document.where(('transform', matching[1], 'source-table'))}: table {table.title} is matched by "
                f"{first.rpartition(': ')[2]}, too; rules that classify rows are not supported: write one rule with "
                "CASE WHEN and OR, or a script with UNION ALL (docs/sql.md)",
                "several transform rules for one table",
            )
        found[table.id] = (
            _with_rule(document, table, rules[matching[0]], matching[0])
            if matching
            else Transformed(table, table.key)
        )
    return found, matched.warnings


def _with_rule(document: Document, table: SourceTable, rule: TransformRule, number: int) -> Transformed:
    if rule.primary_keys is None:
        return Transformed(table, table.key, rule, number)
    place: Place = ("transform", number, "primary-keys")
    if rule.projection is None:
        key = key_columns(document, place, rule.primary_keys, table)
    else:
        key = tuple(name.strip() for name in rule.primary_keys.split(",") if name.strip())
    if table.key and set(key) != set(table.key):
        raise DefinitionError(
            f"{document.where(place)}: the key of table {table.title} is ({', '.join(table.key)}); by another key, "
            f"({', '.join(key)}), rows would overwrite each other or be left behind. Remove primary-keys, or "
            "declare this key in the source"
        )
    return Transformed(table, table.key or key, rule, number)
