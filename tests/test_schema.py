"""Types in Flink SQL and in Spark SQL."""

from __future__ import annotations

import pytest

from bridge import schema as s


@pytest.mark.parametrize(
    ("type", "flink", "spark"),
    [
        (s.ScalarType("VARCHAR", (20,)), "VARCHAR(20)", "STRING"),
        (s.ScalarType("BYTES"), "BYTES", "BINARY"),
        (s.ScalarType("DECIMAL", (10, 2), nullable=False), "DECIMAL(10, 2) NOT NULL", "DECIMAL(10,2)"),
        (s.ScalarType("TIMESTAMP", (3,)), "TIMESTAMP(3)", "TIMESTAMP_NTZ"),
        (s.ScalarType("TIMESTAMP_LTZ", (3,)), "TIMESTAMP_LTZ(3)", "TIMESTAMP"),
        (s.ArrayType(s.ScalarType("INT")), "ARRAY<INT>", "ARRAY<INT>"),
        (
            s.MapType(s.ScalarType("STRING"), s.ScalarType("INT").required()),
            "MAP<STRING, INT NOT NULL>",
            "MAP<STRING,INT>",
        ),
        (
            s.RowType((s.RowField("a`b", s.ScalarType("DATE")), s.RowField("c", s.ScalarType("DOUBLE")))),
            "ROW<`a``b` DATE, `c` DOUBLE>",
            "STRUCT<`a``b`: DATE,`c`: DOUBLE>",
        ),
    ],
)
def test_both_names_of_a_type(type: s.DataType, flink: str, spark: str) -> None:
    assert type.flink() == flink
    assert type.spark() == spark


@pytest.mark.parametrize("name", ["TIME", "INTERVAL", "RAW", "NULL", "VARIANT", "TIMESTAMP_TZ"])
def test_types_without_a_counterpart_say_what_to_declare_instead(name: str) -> None:
    nested = s.RowType((s.RowField("x", s.MapType(s.ScalarType("STRING"), s.ArrayType(s.ScalarType(name)))),))
    reason = s.unsupported(nested)
    assert reason is not None and ("declare" in reason or "leave it out" in reason)


def test_nanoseconds_are_refused_and_microseconds_are_not() -> None:
    assert "TIMESTAMP_LTZ(6)" in (s.unsupported(s.ScalarType("TIMESTAMP_LTZ", (9,))) or "")
    assert s.unsupported(s.ScalarType("TIMESTAMP", (6,))) is None


def test_a_table_sorts_its_columns_by_what_they_are() -> None:
    string = s.ScalarType("STRING")
    table = s.TableSchema(
        (
            s.PhysicalColumn("k_id", string),
            s.MetadataColumn("at", string, "timestamp"),
            s.PhysicalColumn("v", string),
            s.ComputedColumn("shout", "UPPER(v)", "UPPER(v)"),
        ),
        primary_key=("k_id",),
    )
    assert table.names == ("k_id", "at", "v", "shout") and [c.name for c in table] == list(table.names)
    assert [c.name for c in table.physical] == ["k_id", "v"]
    assert [c.key for c in table.metadata] == ["timestamp"]
    assert [c.expression for c in table.computed] == ["UPPER(v)"]
    assert table.row(("k_id",), "k_").names == ("id",)
