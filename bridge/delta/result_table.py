"""Tables that results are stored in, a commit for each run: made for BI tools, and only ever given more columns.

Results of quality checks: a row for each expectation of each run. Every row repeats the facts of its run, and only the
list of columns is nested. The ledger of `bridge verify --ledger`: a row for each comparison of a topic with its table.
"""

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


QUALITY_COLUMNS: Mapping[str, tuple[str, str]] = {
    "run_id": ("string", "id of the run; the same in all of its rows"),
    "pipeline": ("string", "name of the pipeline"),
    "suite": ("string", "name of the suite"),
    "started": ("timestamp", "when the run began"),
    "seconds": ("double", "how long the run took"),
    "trigger": ("string", "what started the run: check, schedule, gate"),
    "number": ("int", "place of the expectation in the suite, from 1"),
    "expectation": ("string", "type of the expectation"),
    "title": ("string", "the expectation in one sentence"),
    "columns": ("array<string>", "columns it is about"),
    "severity": ("string", "critical, warning, info"),
    "success": ("boolean", "whether it was met"),
    "observed": ("string", "what was observed, as a sentence"),
    "expected": ("string", "what was expected, as a sentence"),
    "unexpected_count": ("bigint", "values that are not as expected; null for expectations about aggregates"),
    "unexpected_percent": ("double", "the same, 0 to 100"),
    "reason": ("string", "why it could not be evaluated; null where it was"),
    "judged": (
        "string",
        "what was checked: table, changes (rows that changed after since_version), batch (of a gate)",
    ),
    "since_version": ("bigint", "of a check by --since; null for the whole table"),
    "changed_rows": ("bigint", "rows that had changed after since_version; of a gate, rows it checked"),
    "table": ("string", "path or name of the table"),
    "table_version": ("bigint", "the version that was checked"),
    "topic": ("string", "the pipeline's topic"),
    "offsets": ("string", "next offsets up to which the table includes the topic, JSON"),
    "row_count": ("bigint", "rows of the table"),
    "lag": ("bigint", "offsets between the table and the topic's end; null where it is not known"),
    "inserted": ("bigint", "rows inserted since the version of the run before"),
    "updated": ("bigint", "rows updated since then"),
    "deleted": ("bigint", "rows deleted since then"),
    "newest_event_time": ("timestamp", "largest value of the WATERMARK column"),
    "newest_arrival": ("timestamp", "when rows were last committed to the table"),
    "bridge_version": ("string", "version of the bridge"),
}
"""Name -> (type, meaning)."""

QUALITY_RESULTS = ResultTable(
    "quality results", QUALITY_COLUMNS, "run_id", "`quality: {results: {path: ...}}`", "run the check"
)


LEDGER_COLUMNS: Mapping[str, tuple[str, str]] = {
    "pipeline": ("string", "name of the pipeline"),
    "direction": ("string", "ingest: the table follows the topic; publish: the topic follows the table"),
    "started": ("timestamp", "when the comparison began"),
    "seconds": ("double", "how long it took"),
    "result": ("string", "equal, different, or failed: no comparison was possible"),
    "error": ("string", "why it failed; null for the others"),
    "topic": ("string", "the pipeline's topic"),
    "table": ("string", "path or name of the table"),
    "version": ("bigint", "the table version that was compared"),
    "offsets": ("string", "next offsets up to which the topic was compared, JSON"),
    "topic_rows": ("bigint", "rows that the topic describes up to there"),
    "table_rows": ("bigint", "rows of the table"),
    "topic_checksum": ("string", "sum of the fingerprints of the rows, hexadecimal"),
    "table_checksum": ("string", "the same of the table; equal where the rows are"),
    "missing_in_table": ("bigint", "keys that only the topic has"),
    "missing_in_topic": ("bigint", "keys that only the table has"),
    "different": ("bigint", "keys with different rows"),
    "duplicate_keys": ("bigint", "keys that one side has more than once"),
    "superseded": ("bigint", "keys whose records may have been compacted meanwhile, not compared"),
    "bridge_version": ("string", "version of the bridge"),
}
"""Name -> (type, meaning)."""

VERIFY_LEDGER = ResultTable("comparisons", LEDGER_COLUMNS, "topic_checksum", "`--ledger PATH`", "verify")
