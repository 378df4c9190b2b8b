"""The sequence of a truncate: changes and rows whose sequence is not greater have no effect, or go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import col
from bridge.delta.merge_semantics import TARGET, not_older
from bridge.formats.sql import literal
from bridge.schema import quote

if TYPE_CHECKING:
    import pyarrow as pa

    from bridge.delta.merge_semantics import Mask


@dataclass(frozen=True)
class Floor:
    """A sequence, which is in no column of a row."""

    values: pa.Table
    """Its columns, in one row."""
    fields: tuple[T.StructField, ...]

    @classmethod
    def of(cls, rows: DataFrame, sequence: Sequence[str]) -> Floor | None:
        """The greatest of some rows; None where there are none. Runs a job."""
        greatest = (
            rows.agg(F.max(F.struct(*map(col, sequence))).alias("s")).where("s IS NOT NULL").select("s.*")
        )
        values = greatest.toArrow()
        return cls(values, tuple(greatest.schema.fields)) if values.num_rows else None

    @property
    def reached(self) -> str:
        """That a row of deletions has this sequence or a greater one, as SQL."""
        return f"struct({', '.join(quote(f.name) for f in self.fields)}) >= {self._literal()}"

    @property
    def sql(self) -> str:
        """That a row of the table, alias `__t`, has no greater sequence. A null of the row is less than every value."""
        names = ", ".join(f"{TARGET}.{quote(f.name)}" for f in self.fields)
        return f"struct({names}) <= {self._literal()}"

    def is_below(self) -> Column:
        """True for changes that have a greater sequence."""
        return F.struct(*(col(f.name) for f in self.fields)) > F.expr(self._literal())

    def below(self, changes: pa.Table) -> Mask:
        """The same of changes in Arrow."""
        rows = self.values.take(np.zeros(changes.num_rows, np.int64))
        names = [f.name for f in self.fields]
        given = changes.select(names).cast(rows.schema)
        return np.asarray(~not_older(rows, given, names))

    def _literal(self) -> str:
        # Spark compares structs with the same names only.
        return f"named_struct({', '.join(f'{literal(f.name)}, {self._value(f)}' for f in self.fields)})"

    def _value(self, field: T.StructField) -> str:
        """The value as a literal of SQL, which does not depend on a time zone."""
        value = self.values[field.name]
        if isinstance(field.dataType, T.TimestampType):
            return f"timestamp_micros({value.cast('int64')[0].as_py()}L)"
        return f"CAST({literal(str(value.cast('string')[0].as_py()))} AS {field.dataType.simpleString()})"
