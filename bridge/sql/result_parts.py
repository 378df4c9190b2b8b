"""By which columns the result of an INSERT is computed in parts, or merged with those of new rows."""

from __future__ import annotations

from bridge.sql.accumulators import Accumulator, counted_values, merged_columns
from bridge.sql.analysis import Analysed
from bridge.sql.plan import PartColumn
from bridge.sql.sink import Result
from bridge.sql.sums import has_long_sum
from bridge.sql.tree import spark_text

__all__ = ["result_accumulators", "result_parts"]


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
    parts = tuple(PartColumn(name, tuple(sorted(columns[i]))) for i, name in names.items())
    return parts, spark_text(analysed.groups.query(names))


def result_accumulators(result: Result, analysed: Analysed) -> dict[str, Accumulator]:
    """Those of an aggregate over rows that are only added, each of which belongs to one group.

    Over a join none that need rows before, or more than one column: a batch is several queries there."""
    operations = analysed.relation.operations
    if (
        not analysed.accumulators
        or not result.key
        or analysed.relation.is_windowed
        or set(operations[:-1]) - {"union", "join"}
        or has_long_sum(result.spark)
    ):
        return {}
    types = [column.type for column in analysed.relation.columns]
    found = merged_columns(analysed.accumulators, types, result.targets, result.uncast)
    if "join" not in operations:
        return found
    needs_more = Accumulator.AVERAGE in found.values() or counted_values(result.spark, result.key, found)
    return {} if needs_more else found
