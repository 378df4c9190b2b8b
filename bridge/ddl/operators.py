"""What the expression of a computed column may have: constants, operators, functions, and columns of its table."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from bridge.ddl.cursor import nearest
from bridge.ddl.functions import AGGREGATES
from bridge.expressions.refusal import Refusal
from bridge.schema import DataType, RowType

__all__ = ["check", "resolve"]

_NOT_SCALAR = (
    *(exp.Query, exp.Exists, exp.Window, exp.Star, exp.Placeholder, exp.Parameter, exp.Lambda),
    *(exp.JSONExtract, exp.JSONExtractScalar, exp.Tuple),
)


def check(node: exp.Expr, types: Mapping[str, DataType]) -> None:
    """Raises Refusal if `node` is not a scalar expression over the columns in `types`; gives a column its type."""
    if isinstance(node, _NOT_SCALAR):
        raise Refusal("only columns, constants, operators and scalar functions are supported", node)
    if isinstance(node, exp.Column):
        node.meta["type"] = resolve(node, types)
    if isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES:
        raise Refusal(
            f"{node.name.upper()} is an aggregate function; a computed column is computed from one row", node
        )


def resolve(column: exp.Column, types: Mapping[str, DataType]) -> DataType:
    """Returns the type of a column or of a field of it. Raises Refusal if there is none."""
    first, *rest = column.parts
    if first.name not in types:
        raise Refusal(
            f"there is no physical or metadata column `{first.name}`; {nearest(first.name, types)}", first
        )
    type, name = types[first.name], first.name
    for part in rest:
        if not isinstance(type, RowType):
            raise Refusal(f"`{name}` is not a ROW and has no field `{part.name}`", part)
        fields = {f.name: f.type for f in type.fields}
        if part.name not in fields:
            raise Refusal(f"`{name}` has no field `{part.name}`; {nearest(part.name, fields)}", part)
        type, name = fields[part.name], part.name
    return type
