"""What the analysis of a query reads and returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from bridge.schema import DataType
from bridge.sql.accumulators import Accumulator
from bridge.sql.catalogue import Catalogue, Reads
from bridge.sql.grouping import JoinedGroups
from bridge.sql.relation import Distribution, Relation
from bridge.sql.tree import QueryTree


@dataclass(frozen=True)
class JoinColumn:
    """A column of a SELECT's FROM by which its joined rows are computed in parts, whether it is selected or not."""

    node: exp.Column
    type: DataType
    distribution: Distribution


@dataclass(frozen=True)
class Analysed:
    """A query that is analysed: what is known about its result, and the query in Spark SQL."""

    relation: Relation
    spark: exp.Query
    groups: JoinedGroups | None = None
    """Those of an aggregate over a join; None for every other query, and for one that selects from such a query."""
    accumulators: tuple[Accumulator | None, ...] = ()
    """Of the columns of an aggregate whose input only adds rows; empty for every other query."""
    join_column: JoinColumn | None = None
    """That of a join whose rows are projected and filtered only."""


@dataclass
class Environment:
    """What a query may refer to. `reads` collects the columns of tables that it uses, `views` the views."""

    tree: QueryTree
    catalogue: Catalogue
    reads: Reads = field(default_factory=dict)
    views: dict[str, None] = field(default_factory=dict)
    positioned: dict[str, None] = field(default_factory=dict)
    """The topics of whose rows it needs the positions; see `positions`."""
    subqueries: dict[str, Analysed] = field(default_factory=dict)
    """The queries of WITH, by name; they hide tables and views of the same name."""


Analyse = Callable[[exp.Expr, Environment], Analysed]
"""Analyses a query inside of another one."""
