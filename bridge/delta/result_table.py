"""Tables that results are stored in, a commit for each run: made for BI tools, and only ever given more columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import col
from bridge.definition import DeltaTarget
from bridge.delta.delta_errors import error_names, retry_conflicts, table_errors
from bridge.delta.table import create_by_sql, exists, handle
from bridge.errors import TableError

__all__ = ["ResultTable"]

_TABLE_PROPERTIES = {"delta.autoOptimize.autoCompact": "true"}
"""Each run adds a small file."""


@dataclass(frozen=True)
class ResultTable:
    """What a table of results has."""

    results: str
    """What they are called, e.g. `quality results`."""
    columns: Mapping[str, tuple[str, str]]
    """Name -> (type, meaning). They are only ever added: a table of an older bridge gets them with the next run."""
    id_column: str
    """A table without it is one of something else."""
    option: str
    """How another table is named."""
    again: str
    """What makes the results once more."""

    def append(self, spark: SparkSession, target: DeltaTarget, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append the rows of one run in one commit; a column that a row lacks is null. Creates the table when it is
        absent.

        Columns that the table lacks are added to it; those that only the table has are null. Raises TableError when the
        table does not accept the rows, or is one of something else (see `stored`).
        """
        schema = self._schema()
        frame = spark.createDataFrame([tuple(row.get(n) for n in self.columns) for row in rows], schema)

        def commit() -> None:
            if self.stored(spark, target) is None:
                self._create(spark, target, schema)
            writer = frame.coalesce(1).write.format("delta").mode("append").option("mergeSchema", "true")
            if target.table:
                writer.saveAsTable(target.table)
            else:
                writer.save(str(target.path))

        try:
            retry_conflicts(
                target, commit, f"{self.results} {target}:", f"they are not stored; {self.again} again"
            )
        except TableError:
            raise
        except Exception as error:
            why = ", ".join(sorted(error_names(error))) or type(error).__name__
            raise TableError(
                f"{target}: {self.results} cannot be written there ({why}); none of them is stored"
            ) from error

    def stored(self, spark: SparkSession, target: DeltaTarget) -> DataFrame | None:
        """All results, with `columns` in their order; None where there is no table yet.

        A column that the table does not have yet is null. Raises TableError for a table of something else.
        """
        if not exists(spark, target):
            return None
        with table_errors(target):
            frame = handle(spark, target).toDF()
        present = {f.name: f.dataType for f in frame.schema}
        for field in self._schema():
            if present.get(field.name, field.dataType) != field.dataType:
                actual = present[field.name].simpleString()
                raise TableError(
                    f"{target}: column {field.name!r} is {actual}, in a table of {self.results} it is "
                    f"{field.dataType.simpleString()}; name another table: {self.option}"
                )
        if self.id_column not in present:
            raise TableError(
                f"{target} is not a table of {self.results} (it has no column {self.id_column!r}); name another "
                f"table: {self.option}"
            )
        return frame.select(
            *(
                col(f.name) if f.name in present else F.lit(None).cast(f.dataType).alias(f.name)
                for f in self._schema()
            )
        )

    def _schema(self) -> T.StructType:
        schema = T.StructType.fromDDL(
            ", ".join(f"`{name}` {type}" for name, (type, _) in self.columns.items())
        )
        assert isinstance(schema, T.StructType)
        return schema

    def _create(self, spark: SparkSession, target: DeltaTarget, schema: T.StructType) -> None:
        comments = {name: comment for name, (_, comment) in self.columns.items()}
        create_by_sql(spark, target, schema.fields, _TABLE_PROPERTIES, comments)
