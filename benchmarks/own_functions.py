"""What functions cost that the bridge builds itself, as Spark's have other values than Flink's: a query of twenty drawn
ones beside the same query with Spark's own, over the same drawn rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame

from benchmarks.cpu import Others
from benchmarks.goals import Outcome, at_most, number
from benchmarks.ground import Ground
from benchmarks.scale import SEED
from bridge.ddl import parse

_SEEDS, _CHOSEN, _WARM, _ROUNDS, _GOAL = 5, 20, 2, 5, 1.3
COLUMNS = (
    "t STRING, part STRING, code STRING, numeral STRING, moment STRING, n INT, i INT, i2 INT, b BIGINT, b2 BIGINT, "
    "d DOUBLE, d2 DOUBLE, m DECIMAL(10, 2), ts TIMESTAMP(3), ts2 TIMESTAMP(3)"
)
FUNCTIONS = {
    "SUBSTRING(t, n, 5)": "SUBSTRING(t, n, 5)",
    "SUBSTRING(t, n)": "SUBSTRING(t, n)",
    "LPAD(t, n, part)": "LPAD(t, n, part)",
    "RPAD(t, n, part)": "RPAD(t, n, part)",
    "SPLIT_INDEX(t, '/', 2)": "SPLIT_PART(t, '/', 3)",
    "SPLIT(t, '/')": "SPLIT(t, '/')",
    "INSTR(t, part)": "INSTR(t, part)",
    "INSTR(t, '/', 1, 2)": "INSTR(SUBSTR(t, INSTR(t, '/') + 1), '/')",
    "LOCATE(part, t, n)": "LOCATE(part, t, n)",
    "OVERLAY(t PLACING part FROM n)": "OVERLAY(t PLACING part FROM n)",
    "REPLACE(t, part, numeral)": "REPLACE(t, part, numeral)",
    "TRANSLATE(t, 'ace', 'xyz')": "TRANSLATE(t, 'ace', 'xyz')",
    "ASCII(t)": "ASCII(t)",
    "FROM_BASE64(code)": "CAST(UNBASE64(code) AS STRING)",
    "REGEXP_EXTRACT(t, '([a-z]+)/([0-9]+)', 2)": "REGEXP_EXTRACT(t, '([a-z]+)/([0-9]+)', 2)",
    "REGEXP_SUBSTR(t, '[0-9]+')": "REGEXP_SUBSTR(t, '[0-9]+')",
    "REGEXP_REPLACE(t, '[0-9]+', numeral)": "REGEXP_REPLACE(t, '[0-9]+', numeral)",
    "i + i2": "i + i2",
    "i - i2": "i - i2",
    "i * n": "i * n",
    "i / i2": "i DIV i2",
    "MOD(b, i2)": "b % i2",
    "b + b2": "b + b2",
    "b - b2": "b - b2",
    "b * n": "b * n",
    "b / i2": "b DIV i2",
    "-i": "-i",
    "ABS(b)": "ABS(b)",
    "d / d2": "d / d2",
    "m * m": "m * m",
    "m / 7": "m / 7",
    "FLOOR(d)": "FLOOR(d)",
    "CEIL(d)": "CEIL(d)",
    "FLOOR(m)": "FLOOR(m)",
    "ROUND(m, 1)": "ROUND(m, 1)",
    "ROUND(d, 2)": "ROUND(d, 2)",
    "TRUNCATE(d, 2)": "FLOOR(d * 100) / 100",
    "SIGN(d)": "SIGN(d)",
    "LN(d2)": "LN(d2)",
    "LOG10(d2)": "LOG10(d2)",
    "GREATEST(i, n)": "GREATEST(i, n)",
    "LEAST(d, d2)": "LEAST(d, d2)",
    "CAST(d AS INT)": "CAST(d AS INT)",
    "CAST(d AS BIGINT)": "CAST(d AS BIGINT)",
    "CAST(i AS SMALLINT)": "CAST(n AS SMALLINT)",
    "CAST(numeral AS INT)": "CAST(numeral AS INT)",
    "CAST(ts AS STRING)": "CAST(ts AS STRING)",
    "CAST(d > d2 AS STRING)": "CAST(d > d2 AS STRING)",
    "CAST(moment AS TIMESTAMP(3))": "CAST(moment AS TIMESTAMP_NTZ)",
    "CAST(moment AS DATE)": "CAST(moment AS DATE)",
    "TO_TIMESTAMP(moment)": "CAST(moment AS TIMESTAMP_NTZ)",
    "TO_TIMESTAMP(moment, 'yyyy-MM-dd HH:mm:ss')": "TO_TIMESTAMP(moment, 'yyyy-MM-dd HH:mm:ss')",
    "TO_DATE(moment)": "CAST(moment AS DATE)",
    "UNIX_TIMESTAMP(moment)": "UNIX_TIMESTAMP(moment)",
    "DATE_FORMAT(moment, 'yyyy-MM-dd')": "DATE_FORMAT(moment, 'yyyy-MM-dd')",
    "FROM_UNIXTIME(i)": "FROM_UNIXTIME(i)",
    "HOUR(ts)": "HOUR(ts)",
    "MINUTE(ts)": "MINUTE(ts)",
    "YEAR(ts)": "YEAR(ts)",
    "FLOOR(ts TO HOUR)": "DATE_TRUNC('HOUR', ts)",
    "TIMESTAMPDIFF(HOUR, ts, ts2)": "TIMESTAMPDIFF(HOUR, ts, ts2)",
}
"""Expressions that the bridge translates to others than Spark's function of that name, and this function of Spark."""


def in_spark(expressions: Sequence[str]) -> list[str]:
    """Returns what the bridge makes of expressions over `COLUMNS`."""
    computed = ", ".join(f"c{number} AS {text}" for number, text in enumerate(expressions))
    made = parse(f"CREATE TABLE t ({COLUMNS}, {computed}) WITH ('connector' = 'kafka')")
    return [column.spark for column in made.schema.computed]


def outcomes(ground: Ground, records: int) -> list[Outcome]:
    """The worst of five seeds: each draws the rows and the functions, and both queries take turns. The fewest CPU
    seconds of each count, as other processes on the machine make a run longer, and dearer only a little."""
    found = [_of(ground, SEED + turn, records) for turn in range(_SEEDS)]
    ratios = sorted(outcome.ratio or 0.0 for outcome in found)
    worst = max(found, key=lambda outcome: outcome.ratio or 0.0)
    return [replace(worst, spread=f"ratios of {_SEEDS} seeds: {' '.join(map(number, ratios))}")]


def _of(ground: Ground, seed: int, records: int) -> Outcome:
    table = _rows(ground, seed, records)
    chosen = random.Random(seed).sample(sorted(FUNCTIONS), _CHOSEN)
    ways = [in_spark(chosen), [FUNCTIONS[name] for name in chosen]]

    def way(texts: Sequence[str]) -> None:
        query = table.selectExpr(*(f"{text} AS c{number}" for number, text in enumerate(texts)))
        query.write.format("noop").mode("overwrite").save()

    cpu: list[list[float]] = [[], []]
    for _ in range(_WARM + _ROUNDS):
        for found, texts in zip(cpu, ways, strict=True):
            used = Others(ground.serving)
            way(texts)
            found.append(used.served)
    own, plain = (min(found[_WARM:]) for found in cpu)
    name = f"{_CHOSEN} functions built by the bridge / Spark's own, {records:,} rows, worst of {_SEEDS} seeds"
    outcome = at_most(name, "CPU s", plain, own, _GOAL)
    ground.say(f"{name}: seed {seed}: {plain:.2f} and {own:.2f} CPU s, {outcome.ratio}: {', '.join(chosen)}")
    return outcome


def _rows(ground: Ground, seed: int, records: int) -> DataFrame:
    """A Delta table of drawn rows; its numbers are such that Spark's own functions raise no error."""
    path = str(ground.place() / "t")
    salt = int(np.random.default_rng(seed).integers(1 << 30))
    draws = [f"PMOD(XXHASH64(id, {salt}, {n}), 1000000007) AS r{n}" for n in range(8)]
    text = "CONCAT_WS('/', 'www', SUBSTR(SHA1(STRING(r0)), 1, INT(r1 % 12) + 1), 'item', r2 % 10000, 'abcde')"
    moment = "CAST(TIMESTAMP_MILLIS(1600000000000 + r3 * 100) AS TIMESTAMP_NTZ)"
    made = ground.spark.range(records).selectExpr(*draws)
    columns = (
        f"{text} AS t",
        "SUBSTR('abcdefwi', INT(r4 % 7) + 1, 1) AS part",
        "BASE64(CAST(SHA1(STRING(r5)) AS BINARY)) AS code",
        "STRING(r6 % 100000) AS numeral",
        f"DATE_FORMAT({moment}, 'yyyy-MM-dd HH:mm:ss') AS moment",
        "INT(r7 % 14) - 4 AS n",
        "INT(r1 % 100000) AS i",
        "INT(r2 % 999) + 1 AS i2",
        "r3 * 1000 AS b",
        "r4 * 77 AS b2",
        "r5 / 1000D AS d",
        "(r6 + 1) / 100000D AS d2",
        "CAST(r7 / 1000 AS DECIMAL(10, 2)) AS m",
        f"{moment} AS ts",
        "CAST(TIMESTAMP_MILLIS(1500000000000 + r0 * 100) AS TIMESTAMP_NTZ) AS ts2",
    )
    made.selectExpr(*columns).write.format("delta").save(path)
    return ground.spark.read.format("delta").load(path)
