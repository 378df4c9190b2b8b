"""What is judged or computed of unavailable values waits until they are filled."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from bridge.columns import BAD, KIND, POSITION
from bridge.decode import UNAVAILABLE
from bridge.definition import BadRecords, Definition
from bridge.pipelines.changes.changelog_decode import decode, fill_unavailable, fold
from bridge.schema import RowConstraint
from tests.config.files import loaded
from tests.decode.records import AT, RECORD

LEFT_OUT = "__debezium_unavailable_value"
NO_ROW = "value: it leaves out p, and there is no row of this key whose value could be kept"
_PHYSICAL = "id BIGINT, name STRING, p STRING"


def defined(folder: Path, computed: str = "", delta: str = "", *, key: bool = True) -> Definition:
    identity = ", PRIMARY KEY (id) NOT ENFORCED" if key else ", kind STRING METADATA FROM 'row-kind' VIRTUAL"
    file = f"""version: 1
name: orders
topic:
  ddl: |
    CREATE TABLE t ({_PHYSICAL}{computed}{identity}) WITH ('connector' = 'kafka', 'topic' = 't',
      'properties.bootstrap.servers' = 'x:1', 'scan.startup.mode' = 'earliest-offset', 'value.format' = 'debezium-json')
delta: {{path: table{delta}}}
run: {{checkpoint: c}}
"""
    return loaded(folder, file)


def event(name: str | None, p: str | None, op: str = "c", *, id: int = 1) -> str:
    row = {"id": id, "name": name, "p": p}
    before, after = (row, None) if op == "d" else (None, row)
    return json.dumps({"before": before, "after": after, "op": op})


def decoded(spark: SparkSession, definition: Definition, documents: Iterable[str]) -> DataFrame:
    rest = {"key": None, "topic": "t", "partition": 0, "timestamp": AT, "timestampType": 0}
    rows = [{"value": text.encode(), "offset": n} | rest for n, text in enumerate(documents)]
    return decode(spark.createDataFrame(pa.Table.from_pylist(rows, schema=RECORD)), definition)


def filled(
    spark: SparkSession, definition: Definition, documents: Iterable[str], table: list[tuple[Any, ...]]
) -> DataFrame:
    rows = spark.createDataFrame(table, "id BIGINT, name STRING, p STRING")
    return fill_unavailable(decoded(spark, definition, documents), rows, definition, DataFrame.persist)


def shown(changes: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    rows = changes.select(f"{POSITION}.offset", KIND, BAD, *columns).collect()
    return [tuple(row)[1:] for row in sorted(rows)]


def in_batches(
    spark: SparkSession, definition: Definition, batches: list[list[str]]
) -> tuple[list[Any], list[Any]]:
    """The rows after the batches, and the reasons of bad records, by key."""
    table: dict[int, tuple[Any, ...]] = {}
    reasons = []
    for batch in batches:
        changes = filled(spark, definition, batch, list(table.values())).localCheckpoint()
        reasons += [(id, reason) for _, reason, id in shown(changes, "id") if reason]
        for kind, *row in fold(changes, definition).select(KIND, "id", "name", "p").collect():
            table.pop(row[0], None)
            table |= {} if kind == "-D" else {row[0]: tuple(row)}
    return sorted(table.values()), sorted(reasons)


def test_a_condition_waits_for_the_values_that_it_reads(spark: SparkSession, tmp_path: Path) -> None:
    definition = defined(tmp_path, delta=', apply-as-delete: "p IS NULL OR 1 / CHAR_LENGTH(p) > 1"')
    documents = [event("a", LEFT_OUT), event("b", None), event("c", "")]
    assert shown(decoded(spark, definition, documents), UNAVAILABLE)[:2] == [
        ("+I", None, ["p"]),
        ("-D", None, None),
    ]
    changes = filled(spark, definition, documents[:1], [(1, "a", "big")])
    assert shown(changes, "name", "p") == [("+I", None, "a", "big")]
    [(kind, reason, name)] = shown(filled(spark, definition, documents[:1], [(1, "a", "")]), "name")
    assert (kind, name) == (None, "a")
    assert reason.startswith("delta.apply-as-delete: division by zero")
    changes = filled(spark, definition, documents[:1], [(1, "a", None)])
    assert shown(changes, "name", "p") == [("-D", None, None, None)]


def test_a_condition_on_other_columns_does_not_wait(spark: SparkSession, tmp_path: Path) -> None:
    definition = defined(tmp_path, delta=", apply-as-delete: \"name = 'd'\"")
    changes = decoded(spark, definition, [event("d", LEFT_OUT)])
    assert shown(changes, UNAVAILABLE) == [("-D", None, None)]


def test_under_a_sequence_a_condition_on_a_value_left_out_deletes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    definition = defined(tmp_path, delta=', sequence-by: name, apply-as-delete: "p IS NULL"')
    [(kind, reason)] = shown(decoded(spark, definition, [event("b", LEFT_OUT)]))
    assert (kind, reason.split(",")[0]) == (None, "value: it leaves out p")


def test_computed_columns_are_computed_of_filled_values(spark: SparkSession, tmp_path: Path) -> None:
    computed = ", n AS CHAR_LENGTH(p), q AS 6 / CHAR_LENGTH(COALESCE(p, '')), s AS UPPER(name)"
    definition = defined(tmp_path, computed)
    documents = [event("a", LEFT_OUT), event("b", "xy"), event("c", LEFT_OUT), event("d", LEFT_OUT, "u")]
    assert shown(filled(spark, definition, documents, [(1, "a", "big")]), "p", "n", "q", "s") == [
        ("+I", None, "big", 3, 2, "A"),
        ("+I", None, "xy", 2, 3, "B"),
        ("+I", None, "xy", 2, 3, "C"),
        ("+U", None, "xy", 2, 3, "D"),
    ]
    [(kind, reason)] = shown(filled(spark, definition, documents[:1], [(1, "a", "")]))
    assert kind is None
    assert reason.startswith("computed column 'q': division by zero")


def test_a_deletion_forgets_values_whatever_the_bounds_of_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    condition = "name = 'd' OR name = 'e' AND p = 'big'"
    definition = defined(tmp_path, delta=f', apply-as-delete: "{condition}"')
    histories = {
        1: [event("c", "big", id=1), event("c", None, "d", id=1), event("u", LEFT_OUT, id=1)],
        2: [event("c", "big", id=2), event("d", "big", id=2), event("u", LEFT_OUT, id=2)],
        3: [event("c", "big", id=3), event("e", LEFT_OUT, id=3), event("u", LEFT_OUT, id=3)],
        4: [event("c", "big", id=4), event("e", LEFT_OUT, id=4), event("c", "new", id=4)],
        5: [event("c", "big", id=5), event("u", LEFT_OUT, id=5), event("v", LEFT_OUT, id=5)],
        6: [event("u", LEFT_OUT, id=6), event(LEFT_OUT, "x", id=6), event("c", "all", id=6)],
        7: [event("c", "big", id=7), event("e", LEFT_OUT, id=7), event("e", LEFT_OUT, id=7)],
    }
    rounds = [list(round) for round in zip(*histories.values(), strict=True)]
    expected = (
        [(4, "c", "new"), (5, "v", "big"), (6, "c", "all")],
        [(1, NO_ROW), (2, NO_ROW), (3, NO_ROW), (6, NO_ROW.replace("p,", "name,")), (6, NO_ROW), (7, NO_ROW)],
    )
    assert in_batches(spark, definition, rounds) == expected
    assert in_batches(spark, definition, [[text for round in rounds for text in round]]) == expected


@pytest.mark.parametrize(
    ("left_out", "delta"),
    [(LEFT_OUT, ""), (None, ", ignore-null-updates: [name, p]")],
    ids=["left out", "null"],
)
def test_no_change_gets_values_of_one_that_is_refused_once_it_is_filled(
    left_out: str | None, delta: str, spark: SparkSession, tmp_path: Path
) -> None:
    """A change with the values of a refused one would be refused, too, or would bring them into the table."""
    refused = "the name is long"
    definition = replace(
        defined(tmp_path, delta=delta),
        bad_records=BadRecords.SKIP,
        constraints=(RowConstraint("coalesce(length(name), 0) < 3", refused),),
    )
    histories = {
        1: [event("a", "big", id=1), event("long", left_out, id=1), event(left_out, "new", id=1)],
        2: [event("a", "big", id=2), event("long", left_out, id=2), event("b", left_out, id=2)],
        3: [event("a", "big", id=3), event(left_out, "x", id=3), event(left_out, "y", id=3)],
        4: [event("long", "big", id=4), event("a", "x", id=4), event("long", left_out, id=4)],
    }
    histories[1] += [event("longer", left_out, id=1), event(left_out, "newest", id=1)]
    histories = {id: (of + [event("z", "z", "c", id=9)] * 5)[:5] for id, of in histories.items()}
    rounds = [list(round) for round in zip(*histories.values(), strict=True)]
    expected = (
        [(1, "a", "newest"), (2, "b", "big"), (3, "a", "y"), (4, "a", "x"), (9, "z", "z")],
        [(id, refused) for id in (1, 1, 2, 4, 4)],
    )
    assert in_batches(spark, definition, rounds) == expected
    assert in_batches(spark, definition, [[text for round in rounds for text in round]]) == expected


def test_without_a_key_no_value_can_be_kept(spark: SparkSession, tmp_path: Path) -> None:
    definition = defined(tmp_path, key=False)
    changes = decoded(spark, definition, [event("a", LEFT_OUT), event("b", "x"), event("c", LEFT_OUT, "d")])
    why = "value: it leaves out p, and without a PRIMARY KEY there is no row whose value could be kept"
    assert shown(changes, UNAVAILABLE) == [(None, why, None), ("+I", None, None), (None, why, None)]
