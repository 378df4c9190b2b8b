"""The columns that a step of a case expects of a table that follows its DDL (docs/adr/006)."""

from __future__ import annotations

from tests.cases.case import Part

__all__ = ["after"]

Columns = list[tuple[str, str]]


def after(step: Part, columns: Columns) -> Columns:
    """`columns` (name, type) as the step's user would write them now: added, widened, or as before."""
    types = dict(columns)
    for item in step.own("expected_columns") or []:
        name, type = (item, types.get(item, "STRING")) if isinstance(item, str) else item
        types[name] = type
    for text in (step.own("expected_column_added"), step.own("expected_column_type")):
        if text is not None:
            name, _, type = text.partition(" (")[0].partition(" ")
            types[name] = type
    return list(types.items())
