"""By which columns the result of an INSERT is computed in parts."""

from __future__ import annotations

from bridge.sql.analysis import Analysed
from bridge.sql.plan import PartColumn
from bridge.sql.sink import Result
from bridge.sql.tree import spark_text

__all__ = ["result_parts"]


def result_parts(result: Result, analysed: Analysed) -> tuple[tuple[PartColumn, ...], str]:
    """Returns the columns of the key that have a distribution, so that little is computed again; else one column. Where
    no column has one, the groups of a join and the query that finds them."""
    known = [c.name for c in result.columns if c.name in result.distributions]
    # Rows to which a cast gives one key are compared where they are computed together.
    chosen = [name for name in known if name in result.key] or (known[:1] if result.keeps_keys else [])
    if chosen or analysed.groups is None:
        return tuple(PartColumn(name, tuple(sorted(result.distributions[name]))) for name in chosen), ""
    columns = analysed.groups.columns
    names = {i: result.uncast[i] for i in columns if i in result.uncast and result.uncast[i] in result.key}
    if not names:
        return (), ""
    parts = tuple(PartColumn(name, (columns[i],)) for i, name in names.items())
    return parts, spark_text(analysed.groups.query(names))
