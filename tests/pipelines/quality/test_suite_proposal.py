"""A proposed suite is one that the table meets.

The expectations of a proposed suite.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import config
from bridge.cli.app import main
from bridge.definition import Definition
from bridge.errors import DefinitionError
from bridge.pipelines.quality.check import check
from bridge.pipelines.quality.suite_proposal import ColumnFacts, propose, propose_suite, suite_text
from bridge.quality.suite import load
from tests.config.files import pipeline_text

FILE = pipeline_text(
    "id BIGINT, part STRING, kind STRING, n INT, price DECIMAL(10, 2), ratio DOUBLE, odd DOUBLE, at TIMESTAMP(3), "
    "later TIMESTAMP_LTZ(3), day DATE, tags ARRAY<STRING>, `a.b` STRING, nothing STRING, "
    "PRIMARY KEY (id, part) NOT ENFORCED",
    name="things",
    sections="quality: {suite: things.json}\n",
)
ROWS = """
    SELECT id, IF(id % 7 = 0, NULL, 'p') AS part, elt(1 + id % 3, 'new', 'paid', 'sent') AS kind,
      CAST(id - 5 AS INT) AS n, CAST(id / 4 AS DECIMAL(10, 2)) AS price, id / 3D AS ratio,
      IF(id = 3, CAST('NaN' AS DOUBLE), 1D) AS odd,
      CAST(current_timestamp() - INTERVAL 3 DAY AS TIMESTAMP_NTZ) AS at, current_timestamp() + INTERVAL 1 DAY AS later,
      DATE '2024-01-01' AS day, array('x') AS tags, 'y' AS `a.b`, CAST(NULL AS STRING) AS nothing
    FROM range(60)
"""


@pytest.fixture
def definition(tmp_path: Path) -> Definition:
    (tmp_path / "things.yaml").write_text(FILE)
    return config.load(tmp_path / "things.yaml")


def test_the_proposed_suite_passes_on_its_table(spark: SparkSession, definition: Definition) -> None:
    writer = spark.sql(ROWS).write.format("delta").option("delta.columnMapping.mode", "name")
    writer.save(str(definition.delta.path))
    made = propose(spark, definition)
    assert (made.rows, made.version) == (60, 0)
    suite = load(made.suite)
    asked = {(e.configuration.type, e.configuration.kwargs.get("column")) for e in suite.expectations}
    assert len(suite) == made.expectations
    assert {
        ("expect_key_to_be_unique", None),
        ("expect_column_values_to_not_be_null", "id"),
        ("expect_column_values_to_be_in_set", "kind"),
        ("expect_column_values_to_be_between", "n"),
        ("expect_column_values_to_be_between", "price"),
        ("expect_column_values_to_be_between", "ratio"),
        ("expect_column_values_to_be_of_type", "tags"),
        ("expect_table_to_be_fresh", "at"),
    } <= asked
    assert not asked & {
        ("expect_column_values_to_not_be_null", "part"),
        ("expect_column_values_to_be_between", "odd"),
        ("expect_table_to_be_fresh", "later"),
        ("expect_column_values_to_be_of_type", "a.b"),
    }
    verdict = check(spark, definition).verdict
    assert verdict.success, [(o.title, o.observed, o.reason) for o in verdict.failed]
    with pytest.raises(DefinitionError, match="exists and was not changed"):
        propose(spark, definition)
    before = json.loads(Path(made.suite).read_text())
    propose(spark, definition, overwrite=True)
    assert [e["type"] for e in json.loads(Path(made.suite).read_text())["expectations"]] == [
        e["type"] for e in before["expectations"]
    ]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--init", "--since", "1"], "--init runs no check"),
        (["--init", "--junit", "x.xml"], "--init runs no check"),
        (["--overwrite"], "--overwrite has no effect without --init"),
    ],
)
def test_options_that_say_nothing_together_are_refused(
    definition: Definition, capsys: pytest.CaptureFixture[str], options: list[str], why: str
) -> None:
    assert main(["check", f"{definition.base}/things.yaml", *options]) == 2
    assert why in " ".join(capsys.readouterr().err.split())


def kwargs_of(
    type: str, *columns: ColumnFacts, rows: int = 100, fresh: str | None = None
) -> list[dict[str, object]]:
    """The arguments of the proposed expectations of a type, without their column."""
    made = propose_suite("t", columns, rows=rows, key=["id"], event_time_column=fresh)["expectations"]
    return [
        {k: v for k, v in e["kwargs"].items() if k != "column"} for e in made if e["type"] == f"expect_{type}"
    ]


@pytest.mark.parametrize(
    ("low", "high", "range"),
    [
        ("0", "9843", (0, 20000)),
        ("1.5", "1.5", (0, 5)),
        ("-3", "70", (-10, 200)),
        ("-0.2", "-0.1", (-0.5, 0)),
        ("0", "0", (0, 0)),
        ("0.004", "0.0042", (0, 0.01)),
    ],
)
def test_ranges_have_a_margin_and_round_ends(low: str, high: str, range: tuple[float, float]) -> None:
    column = ColumnFacts("n", "IntegerType", 100, Decimal(low), Decimal(high))
    assert kwargs_of("column_values_to_be_between", column) == [
        {"min_value": range[0], "max_value": range[1]}
    ]


def test_value_sets_are_small_and_their_values_frequent(tmp_path: Path) -> None:
    def sets(values: tuple[str, ...], present: int) -> list[dict[str, object]]:
        return kwargs_of("column_values_to_be_in_set", ColumnFacts("s", "StringType", present, values=values))

    assert sets(("b", "a"), 20) == [{"value_set": ["a", "b"]}]
    assert sets(("b", "a"), 19) == [] and sets(("x" * 61,), 100) == []
    assert sets(tuple("abcdefghijklm"), 1000) == []


def test_not_null_holds_only_where_it_does_and_keys_have_no_range() -> None:
    some, all, key = (
        ColumnFacts("a", "LongType", 99),
        ColumnFacts("b", "LongType", 100),
        ColumnFacts("id", "LongType", 100, Decimal(1), Decimal(9)),
    )
    assert len(kwargs_of("column_values_to_not_be_null", some, all, key)) == 2
    assert kwargs_of("column_values_to_be_between", key) == []
    assert kwargs_of("column_values_to_not_be_null", ColumnFacts("a", "LongType", 0), rows=0) == []
    assert kwargs_of("column_values_to_be_of_type", some, ColumnFacts("a.b", "LongType", 9)) == [
        {"type_": "LongType"}
    ]


def test_a_suite_file_has_one_expectation_per_line() -> None:
    suite = propose_suite("t", [ColumnFacts("a", "LongType", 1)], rows=1, key=["a"], event_time_column=None)
    text = suite_text(suite)
    assert json.loads(text) == suite
    assert [line for line in text.splitlines() if '"type"' in line] == [
        line for line in text.splitlines() if line.startswith("    {")
    ]
