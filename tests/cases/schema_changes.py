"""Derives the columns that a step expects of a table that follows its DDL (docs/adr/006)."""

from __future__ import annotations

from tests.cases.case import Part

Columns = list[tuple[str, str]]


def after(step: Part, columns: Columns) -> Columns:
    """Returns the columns (name, type) of the DDL after this step: added, widened, or unchanged."""
    types = dict(columns)
    for item in step.own("expected_columns") or []:
        name, type = (item, types.get(item, "STRING")) if isinstance(item, str) else item
        types[name] = type
    for text in (step.own("expected_column_added"), step.own("expected_column_type")):
        if text is not None:
            name, _, type = text.partition(" (")[0].partition(" ")
            types[name] = type
    return list(types.items())
