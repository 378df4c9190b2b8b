"""What the driver computes is what Spark does; the rest is left to Spark, which raises its own errors.

Numbers of values and groups, compared with those of Python's dictionaries.

Aggregates of numbered groups are those of Python; sums of integers wrap, and one of a DECIMAL that might overflow is
not computed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bridge import failpoints
from bridge.errors import ConcurrentRunError
from bridge.pipelines.scripts import driver_groups as driver
from bridge.pipelines.scripts import few_rows
from bridge.pipelines.scripts.driver_groups import Groups, Values, aggregated, driver_groups, new_values
from bridge.pipelines.scripts.result import open_result
from bridge.pipelines.scripts.run import run_script
from bridge.pipelines.scripts.source_tables import SourceRange, open_sources
from bridge.pipelines.scripts.state import ScriptState
from bridge.sql.plain_aggregates import PlainFunction as Function
from bridge.ways import NotThisWay
from tests.pipelines.scripts.both_ways import (
    DISTINCT,
    by_spark,
    counts,
    create,
    in_driver,
    insert,
    load,
    opened,
    same,
)
from tests.refusals import optional

LEAST, GREATEST = -(2**63), 2**63 - 1
NUMBERS = {"g": "STRING", "l": "BIGINT", "i": "INT", "p": "DECIMAL(20, 0)"}
TOTALS = {
    "totals": (
        "CREATE TABLE totals (g STRING, l BIGINT, i INT, p DECIMAL(38, 0), PRIMARY KEY (g) NOT ENFORCED) "
        "WITH ('connector' = 'print')",
        "INSERT INTO totals SELECT g, SUM(l), SUM(i), SUM(p) FROM e GROUP BY g",
    )
}


def test_sums_of_integers_wrap(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the batch, and where it is merged with the result."""
    script = load(lake, TOTALS, NUMBERS)
    create(spark, lake, "g STRING, l BIGINT, i INT, p DECIMAL(20, 0)")
    most = 2**31 - 1
    given = [
        f"('a', {2**62 - 1}, {most - 1}, 1), ('b', 0, 0, 0)",
        f"('a', {2**62 - 1}, 1, 3), ('c', NULL, NULL, NULL)",
        f"('a', {2**62 + 1}, 0, 0)",
        f"('b', {LEAST}, 0, 0), ('b', -1, 0, 0)",
        "('a', 0, 2, 0)",
        f"('b', 0, {most}, 0), ('b', 0, 1, 0)",
    ]
    sums = {}
    for version, values in enumerate(given, 1):
        spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES {values}")
        if version == 1:
            run_script(spark, script)
            continue
        found = in_driver(spark, script, "totals", version)
        same(found, by_spark(spark, script, "totals", monkeypatch, version))
        assert found is not None
        sums[version] = {row["g"]: (row["l"], row["i"]) for row in found.to_pylist()}
    assert sums == {
        2: {"a": (2**63 - 2, most), "c": (None, None)},
        3: {"a": (LEAST, most - 1)},
        4: {"b": (2**63 - 1, 0)},
        5: {"a": (2**62 - 1, -(2**31))},
        6: {"b": (0, -(2**31))},
    }


def test_what_is_left_to_spark(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, files and places that are not those of the driver; with nothing in the way it computes them."""
    script = load(
        lake,
        {"n": insert({"g": "STRING"}, "n", ["g"], [*counts(["k"]), *counts(["k"], DISTINCT)])},
        dict(g="STRING", k="INT"),
    )
    create(spark, lake, "g STRING, k INT")
    spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a', 1)")
    run_script(spark, script)
    spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a', 1), ('b', 2)")

    def computed(version: int = 2) -> list[tuple[object, ...]] | None:
        found = in_driver(spark, script, "n", version)
        return None if found is None else sorted(tuple(row.values()) for row in found.to_pylist())

    groups = [("a", 2, 1, "+U"), ("b", 1, 1, "+U")]
    assert computed() == groups
    for owner, name, value in (
        (few_rows, "FEW_BYTES", 1),
        (driver, "MOST_BYTES", 1),
        (driver, "MOST_ROWS", 1),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, value)
            assert computed() is None, name
    result, ranges = opened(spark, script, "n", 2)
    assert optional(driver_groups)(replace(result.plan, plain=None), result.table, ranges) is None
    whole = {name: replace(source, first=0) for name, source in ranges.items()}
    assert optional(driver_groups)(result.plan, result.table, whole) is None
    spark.sql(f"OPTIMIZE delta.`{lake}/e`")
    assert computed(3) == [], "no row was added"
    spark.sql(f"UPDATE delta.`{lake}/e` SET k = 3 WHERE g = 'b'")
    assert computed(4) is None and computed() == groups, "an update is Spark's to refuse"
    state = Path(str(result.table.target.path))
    (file,) = state.glob("*.parquet")
    file.rename(state / "gone")
    assert computed() is None
    (state / "gone").rename(file)
    assert computed() == groups
    first = next(f for f in (lake / "e").glob("*.parquet") if pq.read_metadata(f).num_rows == 1)
    first.write_bytes(b"PAR1")
    assert computed() is None


LEFT = {
    "doubles": ("g, MAX(f)", "g STRING, x DOUBLE"),
    "binary": ("raw, COUNT(*)", "g BYTES, x BIGINT"),
    "prices": ("q, COUNT(*)", "g DECIMAL(29, 2), x BIGINT"),
    "different": ("g, COUNT(DISTINCT q)", "g STRING, x BIGINT"),
    "counted": ("g, COUNT(f)", "g STRING, x BIGINT"),
}


def test_types_that_are_left_to_spark(spark: SparkSession, lake: Path) -> None:
    columns = {"g": "STRING", "f": "DOUBLE", "q": "DECIMAL(29, 2)", "raw": "BYTES"}
    inserts = {
        name: (
            f"CREATE TABLE {name} ({declared}, PRIMARY KEY (g) NOT ENFORCED) WITH ('connector' = 'print')",
            f"INSERT INTO {name} SELECT {selected} FROM e GROUP BY {selected.split(',')[0]}",
        )
        for name, (selected, declared) in LEFT.items()
    }
    script = load(lake, inserts, columns)
    create(spark, lake, "g STRING, f DOUBLE, q DECIMAL(29, 2), raw BINARY")
    for _ in range(2):
        spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a', 1, 2, X'00')")
    for plan in script.inserts:
        assert plan.plain is not None
        state = ScriptState(script)
        result = open_result(spark, state, plan)
        source = SourceRange(open_sources(spark, state, plan).tables["e"], 2, 2, appends=True)
        assert optional(driver_groups)(plan, result.table, {"e": source}) is None, plan.name


def test_another_run_that_commits_meanwhile(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first merged the result as it was before, so its MERGE fails."""
    script = load(lake, {"n": insert({"g": "STRING"}, "n", ["g"], counts(["g"]))}, {"g": "STRING"})
    create(spark, lake, "g STRING")
    spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a')")
    run_script(spark, script)
    spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a')")
    (first, _), (second, _) = (opened(spark, script, "n") for _ in range(2))
    sources = open_sources(spark, ScriptState(script), first.plan)
    waiting = [second]

    def hit(name: str) -> None:
        if name == "script.before-commit" and waiting:
            waiting.pop().refresh(sources)

    monkeypatch.setattr(failpoints, "hit", hit)
    with pytest.raises(ConcurrentRunError):
        first.refresh(sources)
    monkeypatch.undo()
    assert second.table.delta().toDF().collect() == [("a", 2)]
    assert opened(spark, script, "n")[0].refresh(sources) is None


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "close": (pa.int64(), [-3, -1, 0, 2, 5]),
    "extreme": (pa.int64(), [LEAST, GREATEST, 0, LEAST + 1, GREATEST - 1]),
    "near the end": (pa.int64(), [GREATEST, GREATEST - 1, GREATEST - 2, GREATEST - 4]),
    "tiny": (pa.int8(), [-128, 127, 0, 1]),
    "texts": (pa.string(), ["", "a", "A", "é", "e\u0301", "\uffff", "\U0001f600", "\0"]),
    "coded": (pa.dictionary(pa.int32(), pa.string()), ["", "a", "b", "\U0001f600"]),
    "truths": (pa.bool_(), [True, False]),
    "days": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1)]),
    "moments": (pa.timestamp("us"), [datetime(1600, 2, 29), datetime(9999, 12, 31, 23, 59, 59, 999999)]),
}


def column(draw: random.Random, name: str, count: int, nulls: bool = True) -> pa.ChunkedArray:
    """Drawn values in some chunks; those of texts have dictionaries of their own."""
    type, values = VALUES[name]
    plain = type.value_type if pa.types.is_dictionary(type) else type
    chunks = []
    for part in np.array_split(np.arange(count), draw.choice([1, 2, 3])):
        given = [draw.choice([*values, None] if nulls else values) for _ in part]
        chunks.append(pa.array(given, plain))
    if plain is not type:
        chunks = [chunk.dictionary_encode() for chunk in chunks]
    return pa.chunked_array(chunks, type)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("seed", range(6))
def test_numbers_are_the_same_for_equal_values(name: str, seed: int) -> None:
    draw = random.Random(seed)
    for nulls in (True, False):
        known, other = column(draw, name, 6, nulls=bool(seed % 2)), column(draw, name, 40)
        values = Values(known, nulls=nulls)
        expected = {v for v in known.to_pylist() if nulls or v is not None}
        assert len(values) == len(expected)
        found = dict(zip(known.to_pylist(), values.numbers(known).tolist(), strict=True))
        assert {found[v] for v in expected} == set(range(len(expected)))
        numbers = values.numbers(other).tolist()
        assert numbers == [found[v] if v in expected else -1 for v in other.to_pylist()]


def rows(draw: random.Random, names: Sequence[str], count: int) -> pa.Table:
    return pa.table({name: column(draw, name, count) for name in names})


@pytest.mark.parametrize("seed", range(20))
def test_groups_of_several_columns(seed: int) -> None:
    draw = random.Random(seed)
    names = draw.sample(list(VALUES), draw.choice([1, 2, 3, 4]))
    given, other = rows(draw, names, draw.choice([0, 1, 60])), rows(draw, names, draw.choice([0, 80]))
    groups = Groups(given, names)
    keys, others = (list(zip(*table.to_pydict().values(), strict=True)) for table in (given, other))
    numbered = dict(zip(keys, groups.of_rows.tolist(), strict=True))
    assert sorted(numbered.values()) == list(range(groups.count)) and groups.count == len(set(keys))
    assert [numbered[keys[row]] for row in groups.first_rows] == list(range(groups.count))
    renamed = other.rename_columns([f"their {name}" for name in names])
    found = groups.numbers(renamed, renamed.column_names).tolist()
    assert found == [numbered.get(key, -1) for key in others]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("counted", VALUES)
def test_values_that_were_not_known(counted: str, seed: int) -> None:
    draw = random.Random(seed)
    names = ["coded", "close"][: draw.choice([1, 2])]
    (added, known), columns = (rows(draw, ["coded", "close"], n) for n in draw.choices([0, 5, 50], k=2)), []
    for table in (added, known):
        columns.append(column(draw, counted, table.num_rows))
    groups = Groups(added, names)
    found = new_values(groups, columns[0], columns[1], groups.numbers(known, names))
    pairs = [
        {
            (*key, value)
            for *key, value in zip(*(table[n].to_pylist() for n in names), values.to_pylist(), strict=True)
            if value is not None
        }
        for table, values in zip((added, known), columns, strict=True)
    ]
    numbers = zip(*(added[n].to_pylist() for n in names), groups.of_rows.tolist(), strict=True)
    by_number = {number: tuple(key) for *key, number in numbers}
    new = [key[:-1] for key in pairs[0] - pairs[1]]
    assert found.tolist() == [new.count(by_number[number]) for number in range(groups.count)]


TEXTS = ["", "a", "Z", "é", "\uffff", "\U0001f600", "\0", "ab"]
"""Of the last but one and its neighbours: UTF-16 has another order than bytes."""
BOUNDED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [LEAST, GREATEST, 0, None]),
    "tiny": (pa.int8(), [-128, 127, None]),
    "texts": (pa.string(), [*TEXTS, None]),
    "truths": (pa.bool_(), [True, False, None]),
    "days": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None]),
    "moments": (
        pa.timestamp("us", "UTC"),
        [datetime(1600, 2, 29, tzinfo=timezone.utc), datetime(9999, 1, 1, tzinfo=timezone.utc), None],
    ),
    "prices": (pa.decimal128(38, 2), [Decimal(f"{sign}{'9' * 36}.99") for sign in ("", "-")] + [None]),
}


def drawn(draw: random.Random, type: pa.DataType, values: list[Any], count: int) -> pa.ChunkedArray:
    cut = draw.randrange(count + 1)
    given = [draw.choice(values) for _ in range(count)]
    return pa.chunked_array([pa.array(given[:cut], type), pa.array(given[cut:], type)])


def order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", BOUNDED)
def test_counts_and_bounds(name: str, seed: int) -> None:
    draw = random.Random(seed)
    groups = np.array(draw.sample([0, 1, 2, *(draw.randrange(3) for _ in range(9))], 12))
    values = drawn(draw, *BOUNDED[name], 12)
    functions = (Function.COUNT_ROWS, Function.COUNT, Function.MIN, Function.MAX)
    found = aggregated({f.value: (f, None if f is functions[0] else values) for f in functions}, groups, 3)
    for group in range(3):
        own = [v for v, g in zip(values.to_pylist(), groups, strict=True) if g == group]
        some = [v for v in own if v is not None]
        bounds = [min(some, key=order), max(some, key=order)] if some else [None, None]
        assert [found[f.value][group].as_py() for f in functions] == [len(own), len(some), *bounds]
    assert found["MIN"].type == values.type


@pytest.mark.parametrize("type", [pa.int8(), pa.int32(), pa.int64(), pa.decimal128(28, 3)], ids=str)
def test_sums_in_the_order_of_the_groups(type: pa.DataType) -> None:
    values = pa.chunked_array([pa.array([5, None, 100, 100, -7, None], pa.int64()).cast(type, safe=False)])
    found = aggregated({"s": (Function.SUM, values)}, np.array([2, 1, 0, 0, 2, 1]), 3)["s"]
    assert found.to_pylist() == [200, None, -2], "no values have no sum"
    assert found.type == (pa.decimal128(38, 3) if pa.types.is_decimal(type) else pa.int64())


def test_no_rows_have_no_groups() -> None:
    none = pa.chunked_array([pa.array([], pa.int64())])
    columns = {"n": (Function.COUNT_ROWS, None), "s": (Function.SUM, none), "m": (Function.MAX, none)}
    found = aggregated(columns, np.empty(0, np.int64), 0)
    assert {name: len(values) for name, values in found.items()} == {"n": 0, "s": 0, "m": 0}
    assert aggregated({}, np.array([0, 0]), 1) == {}


@pytest.mark.parametrize("seed", range(30))
def test_sums_of_integers_wrap_arrow_aggregates(seed: int) -> None:
    draw = random.Random(seed)
    ends = [
        GREATEST,
        LEAST,
        GREATEST // 2,
        GREATEST // 2 + 1,
        LEAST // 2,
        1,
        -1,
        0,
        None,
    ]
    given = [draw.choice(ends if seed % 3 else ends[2:]) for _ in range(draw.choice([1, 2, 4]))]
    values = pa.chunked_array([pa.array(given, pa.int64())])
    found = aggregated({"s": (Function.SUM, values)}, np.zeros(len(given), np.int64), 1)
    some = [v for v in given if v is not None]
    wrapped = (sum(some) - LEAST) % 2**64 + LEAST
    assert found["s"].to_pylist() == [wrapped if some else None]


@pytest.mark.parametrize(
    ("values", "type", "fits"),
    [
        (["9" * 28] * 2, pa.decimal128(28, 0), True),
        (["9" * 38], pa.decimal128(38, 0), True),
        (["9" * 38, "0"], pa.decimal128(38, 0), False),
        (["4" + "9" * 37, "4" + "9" * 37], pa.decimal128(38, 0), True),
        (["0." + "9" * 38, "0." + "0" * 37 + "1"], pa.decimal128(38, 38), False),
    ],
)
def test_the_bounds_of_sums(values: list[str], type: pa.DataType, fits: bool) -> None:
    given = list(map(Decimal, values))
    columns = {"s": (Function.SUM, pa.chunked_array([pa.array(given, type)]))}
    if fits:
        expected = sum(map(int, given))
        assert aggregated(columns, np.zeros(len(given), np.int64), 1)["s"].to_pylist() == [expected]
    else:
        with pytest.raises(NotThisWay):
            aggregated(columns, np.zeros(len(given), np.int64), 1)
    apart = aggregated(columns, np.arange(len(given)), len(given))
    assert apart["s"].to_pylist() == given, "groups of their own"
