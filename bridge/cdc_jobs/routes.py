"""Which tables of the source go to which tables of the sink: `route`, as in Flink CDC (docs "Route")."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.cdc_jobs.model import RouteRule, TransformRule
from bridge.cdc_jobs.table_ids import MOST_PARTS, TableId, TableSelector
from bridge.config.yaml_tree import Document, Place
from bridge.errors import DefinitionError

_GROUP = re.compile(r"\$(\d)")


@dataclass(frozen=True)
class Routed:
    """A table of the source and one of the sink that it goes to; `place` says so in the file."""

    table: TableId
    sink: TableId
    place: Place


@dataclass(frozen=True)
class Matched:
    """The rules of a section beside the tables of the source."""

    selectors: tuple[TableSelector, ...]
    """Of each rule, in their order."""
    rules: Mapping[TableId, Sequence[int]]
    """The numbers of the rules that match a table, in their order."""
    warnings: tuple[str, ...]
    """About rules that match no table."""


def route_tables(
    document: Document, rules: Sequence[RouteRule], tables: Sequence[TableId]
) -> tuple[tuple[Routed, ...], tuple[str, ...]]:
    """Returns where each table goes, in the order of `tables` and then of the rules, and warnings about rules that
    match no table.

    A table goes to the sink tables of all rules that match it; without one it keeps its id. `replace-symbol` in a sink
    table stands for the table's name, and `$1` for what a group of `source-table` has captured. Raises DefinitionError
    with the position for an expression that is not legal, and for two tables with one sink table.
    """
    matched = match_rules(document, "route", rules, tables)
    routed: list[Routed] = []
    for table in tables:
        for n in matched.rules[table]:
            place: Place = ("route", n, "sink-table")
            target = Routed(table, _target(document, place, rules[n], matched.selectors[n], table), place)
            if target.sink not in (r.sink for r in routed if r.table == table):
                routed.append(target)
        if not matched.rules[table]:
            routed.append(Routed(table, table, ("source",)))
    _refuse_merged(document, routed)
    return tuple(routed), matched.warnings


def match_rules(
    document: Document,
    section: str,
    rules: Sequence[RouteRule | TransformRule],
    tables: Sequence[TableId],
) -> Matched:
    """Returns which rules of a section are about which tables. Raises DefinitionError with the position for an
    expression that is not legal."""
    selectors = [
        selector_at(document, (section, n, "source-table"), rule.source_table) for n, rule in enumerate(rules)
    ]
    found = {table: [n for n, s in enumerate(selectors) if s.matches(table)] for table in tables}
    used = {n for numbers in found.values() for n in numbers}
    warnings = (
        f"{section}.{n}: no table of the source matches '{rule.source_table}'"
        for n, rule in enumerate(rules)
        if n not in used
    )
    return Matched(tuple(selectors), found, tuple(warnings))


def selector_at(document: Document, place: Place, text: str) -> TableSelector:
    """Parses an expression of the file. Raises DefinitionError with its position."""
    try:
        return TableSelector.parse(text)
    except DefinitionError as error:
        raise DefinitionError(f"{document.where(place)}: {error}") from None


def _target(
    document: Document, place: Place, rule: RouteRule, selector: TableSelector, table: TableId
) -> TableId:
    text = rule.sink_table
    groups = selector.groups(table)

    def group(match: re.Match[str]) -> str:
        number = int(match[1])
        if not 1 <= number <= len(groups):
            raise DefinitionError(
                f"{document.where(place)}: {match[0]} is no group of '{rule.source_table}', which has {len(groups)}"
            )
        return groups[number - 1] or ""

    text = text.replace(rule.replace_symbol, table[-1]) if rule.replace_symbol else _GROUP.sub(group, text)
    parts = tuple(part.strip() for part in text.split("."))
    if not all(parts) or len(parts) > MOST_PARTS:
        raise DefinitionError(
            f"{document.where(place)}: '{text}' is not the id of a table; legal are table, schema.table and "
            "namespace.schema.table"
        )
    return parts


def _refuse_merged(document: Document, routed: Sequence[Routed]) -> None:
    for number, one in enumerate(routed):
        for other in routed[:number]:
            if one.sink == other.sink:
                both = f"{'.'.join(other.table)} and {'.'.join(one.table)}"
                raise DefinitionError(
                    f"{document.where(one.place)}: {both} both go to {'.'.join(one.sink)}, where each would overwrite "
                    "rows of the other; give each a topic of its own (sink-table: ods.<>, replace-symbol: <>), or "
                    "write a script with UNION ALL, whose key has a column that names the table (docs/sql.md)"
                )
