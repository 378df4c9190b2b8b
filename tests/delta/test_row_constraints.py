"""Which constraints a table has, and that Delta describes them so."""

from __future__ import annotations

from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.delta.delta_errors import BrokenConstraint, table_errors
from bridge.delta.row_constraints import row_constraints
from bridge.delta.table import described
from bridge.schema import RowConstraint


def test_constraints_are_those_of_the_table(spark: SparkSession, lake: Path) -> None:
    """Those of a table that only Delta describes, too: its columns have marks."""
    place = f"delta.`{lake}/t`"
    made = DeltaTable.create(spark).location(str(lake / "t")).property("delta.columnMapping.mode", "name")
    made = made.addColumn("a b", "BIGINT", nullable=False).addColumn("v", "VARCHAR(3)")
    made.addColumn("g", "BIGINT", generatedAlwaysAs="`a b` + 1").addColumn("c", "CHAR(2)").execute()
    spark.sql(f"ALTER TABLE {place} ADD CONSTRAINT low CHECK (`a b` < 9)")
    found = described(spark, DeltaTarget(path=str(lake / "t"))).constraints
    assert found == (
        RowConstraint(
            "`a b` IS NOT NULL",
            "column 'a b' is NOT NULL in the table, and the row has no value for it",
            not_null="a b",
        ),
        RowConstraint(
            "`v` IS NULL OR length(`v`) <= 3",
            "column 'v' is VARCHAR(3) in the table, and the value is longer",
        ),
        RowConstraint(
            "`g` <=> (`a b` + 1)",
            "column 'g' is GENERATED ALWAYS AS (`a b` + 1) in the table, and the row has another value",
        ),
        RowConstraint(
            "`c` IS NULL OR length(`c`) = 2",
            "column 'c' is CHAR(2) in the table, and the value has another length; Delta would add spaces to a shorter "
            "one (VARCHAR(2) keeps every value)",
            padded="c",
        ),
        RowConstraint("`a b` < 9", "the row breaks the constraint 'low' of the table: CHECK (`a b` < 9)"),
    )


def test_delta_refuses_the_rows_that_break_one(spark: SparkSession, lake: Path) -> None:
    """A CHECK that is NULL is broken, NULL is no longer than a VARCHAR; and the error names it, without values."""
    place = f"delta.`{lake}/t`"
    spark.sql(f"CREATE TABLE {place} (id BIGINT, v VARCHAR(3), n BIGINT NOT NULL) USING delta")
    spark.sql(f"ALTER TABLE {place} ADD CONSTRAINT low CHECK (id < 9)")
    spark.sql(f"INSERT INTO {place} VALUES (1, NULL, 0)")
    spark.sql(f"ALTER TABLE {place} ADD CONSTRAINT text CHECK (v IS NULL OR length(v) > NULLIF(id, 5))")
    broken = {
        "(1, NULL, NULL)": "breaks NOT NULL of column n; nothing",
        "(NULL, 'a', 0)": "breaks the constraint (low|text); nothing",
        "(2, 'secret', 0)": "breaks the length .*; nothing",
        "(10, NULL, 0)": "breaks the constraint low; nothing",
        "(5, 'abc', 0)": "breaks the constraint text; nothing",
    }
    for row, words in broken.items():
        with pytest.raises(BrokenConstraint, match=words) as refused, table_errors("t"):
            spark.sql(
                f"INSERT INTO {place} SELECT CAST(col1 AS BIGINT), col2, CAST(col3 AS BIGINT) FROM VALUES {row}"
            )
        assert "secret" not in str(refused.value)


def test_a_plain_table_has_none() -> None:
    assert (
        row_constraints(T.StructType([T.StructField("id", T.LongType())]), {"delta.appendOnly": "true"}) == ()
    )
