"""Aggregates of numbered groups in Arrow, where they are exactly those of Spark.

A sum of integers wraps. One of a DECIMAL that might not fit on the way is not computed: Spark raises an error for some
orders of its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

import numpy as np

from bridge.pipelines.scripts.group_codes import Numbers
from bridge.sql.plain_aggregates import PlainFunction
from bridge.sql.sums import MORE_DIGITS, MOST_DIGITS
from bridge.ways import NotThisWay

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["aggregated"]

_ANY = 80
"""More digits than any number has here."""
_ARROWS = {
    PlainFunction.COUNT_ROWS: "count_all",
    PlainFunction.COUNT: "count",
    PlainFunction.SUM: "sum",
    PlainFunction.MIN: "min",
    PlainFunction.MAX: "max",
}


def aggregated(
    columns: Mapping[str, tuple[PlainFunction, pa.ChunkedArray | None]], groups: Numbers, count: int
) -> dict[str, pa.ChunkedArray]:
    """The aggregates of columns for the groups 0 to `count` - 1, in this order; `groups` are those of the rows, each of
    which has one. COUNT(*) has no column; texts are plain.

    Nulls are passed over; the sum, least and greatest value of none are null. Sums of integers wrap in int64, those of
    a decimal have 38 digits. Raises NotThisWay.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    most = int(np.bincount(groups).max(initial=0))
    given: dict[str, pa.Array | pa.ChunkedArray] = {"group": pa.array(groups)}
    wanted: list[tuple[object, ...]] = []
    names = {}
    for number, (name, (function, values)) in enumerate(columns.items()):
        arrow, own = _ARROWS[function], str(number)
        if values is None:
            wanted.append(([], arrow))
            names[name] = arrow
            continue
        given[own] = _summable(values, most) if function is PlainFunction.SUM else values
        options = [pc.CountOptions(mode="only_valid")] if function is PlainFunction.COUNT else []
        wanted.append((own, arrow, *options))
        names[name] = f"{own}_{arrow}"
    found = pa.table(given).group_by("group", use_threads=False).aggregate(wanted)
    assert found.num_rows == count
    order = pa.array(np.argsort(found["group"].to_numpy()))
    return {name: found[own].take(order) for name, own in names.items()}


def _summable(values: pa.ChunkedArray, most: int) -> pa.ChunkedArray:
    """The values in the type of their sum; that of a decimal holds the sum of any `most` of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_decimal(values.type):
        return values.cast(pa.int64())
    digits, scale = values.type.precision, values.type.scale
    with localcontext() as context:
        context.prec = _ANY
        bounds = [abs(Decimal(bound)) for bound in pc.min_max(values).as_py().values() if bound is not None]
        greatest = max(bounds, default=Decimal(0)) * most
        if greatest.scaleb(scale) >= 10 ** min(digits + MORE_DIGITS, MOST_DIGITS):
            raise NotThisWay("a sum of a DECIMAL might not fit, in some order of its rows")
    return values.cast(pa.decimal128(MOST_DIGITS, scale))
