"""Windows are those that SQLite computes from all rows that were not late, after every batch of drawn rows.

Many histories run at once: each has a number `h`, which is in every GROUP BY. Rows of one batch come in any order, some
of them after their window has closed. The expected result of a batch is computed from the rows that Flink would count,
by rules that share no code with the bridge.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.metrics import BatchReport
from bridge.pipelines.scripts.run import run_script
from bridge.sql import load_script
from tests.delta.tables import create_fed
from tests.pipelines.scripts.oracle import Rows, computed
from tests.pipelines.scripts.scripts import MakeScript

BEGIN = datetime(1969, 12, 31, 23, 59, 0)
"""Windows on both sides of 1970."""
DELAY = 20
CALLS = {
    "tumble": ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '30' SECOND)", 30, 30, 0),
    "tumble_offset": (
        "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '-7' SECOND)",
        30,
        30,
        -7,
    ),
    "hop": ("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '15' SECOND, INTERVAL '45' SECOND)", 45, 15, 0),
    "cumulate": ("CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND)", 30, 10, 0),
}
FROM_DELTA = "'connector' = 'delta', 'path' = 't'"
Row = tuple[int, str | None, int | None, int]
"""h, g, v, and the time in seconds after BEGIN."""


def windows(call: str, second: int) -> list[tuple[int, int]]:
    """The windows of a row, in seconds after 1970: by trying all of them."""
    _, size, step, offset = CALLS[call]
    at = int((BEGIN + timedelta(seconds=second) - datetime(1970, 1, 1)).total_seconds())
    starts = range(-400, 400)
    if call == "cumulate":
        bases = [s for s in starts if (s - offset) % size == 0]
        every = [(b, b + n * step) for b in bases for n in range(1, size // step + 1)]
    else:
        every = [(s, s + size) for s in starts if (s - offset) % step == 0]
    return [(start, end) for start, end in every if start <= at < end]


def script_text(names: list[str], head: str = "", key: str = "", source: str = FROM_DELTA) -> str:
    parts = [
        f"SET 'bridge.state' = 'state';{head}",
        "CREATE TABLE t (h INT, g STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - "
        f"INTERVAL '{DELAY}' SECOND) WITH ({source});",
    ]
    for name in names:
        parts.append(
            f"CREATE TABLE {name} (ws TIMESTAMP(3), we TIMESTAMP(3), h INT, g STRING, n BIGINT, total INT, "
            f"wt TIMESTAMP(3){key}) WITH ('connector' = 'delta', 'path' = 'results/{name}');\n"
            f"INSERT INTO {name} SELECT window_start, window_end, h, g, COUNT(*), SUM(v), window_time FROM "
            f"TABLE({CALLS[name][0]}) GROUP BY window_start, window_end, window_time, h, g;"
        )
    return "\n".join(parts)


def result(spark: SparkSession, lake: Path, name: str) -> Rows:
    rows = spark.read.format("delta").load(str(lake / "results" / name)).collect()
    for row in rows:
        assert row.we - row.wt == timedelta(milliseconds=1)
    epoch = datetime(1970, 1, 1)
    return Counter(
        (int((r.ws - epoch).total_seconds()), int((r.we - epoch).total_seconds()), r.h, r.g, r.n, r.total)
        for r in rows
    )


class Expected:
    """The rows that count in a window, decided row by row as they come."""

    def __init__(self, call: str, lateness: int = 0) -> None:
        self.call, self.lateness = call, lateness
        self.rows: list[tuple[int, int, int, str | None, int | None]] = []
        self.watermark = -(10**9)

    def add(self, batch: list[Row], *, is_end: bool = False) -> None:
        base = int((BEGIN - datetime(1970, 1, 1)).total_seconds())
        for h, g, v, second in batch:
            for start, end in windows(self.call, second):
                if end * 1000 - 1 > self.watermark * 1000 - self.lateness * 1000:
                    self.rows.append((start, end, h, g, v))
        newest = max((second for *_, second in batch), default=None)
        if newest is not None:
            self.watermark = max(self.watermark, base + newest - DELAY)
        if is_end:
            self.watermark = max([self.watermark, *(end for _, end, *_ in self.rows)])

    def result(self) -> Rows:
        closed = [row for row in self.rows if row[1] * 1000 - 1 <= self.watermark * 1000]
        query = "SELECT ws, we, h, g, COUNT(*), SUM(v) FROM w GROUP BY ws, we, h, g"
        return computed(query, {"w": (("ws", "we", "h", "g", "v"), closed)})


def drawn(draw: random.Random, histories: int, now: int) -> list[Row]:
    return [
        (
            h,
            draw.choice(["a", "b", "", None]),
            draw.choice([None, 1, 2, 3]),
            max(0, now + draw.randrange(-120, 30)),
        )
        for h in range(histories)
        for _ in range(draw.randrange(3))
    ]


def append(spark: SparkSession, lake: Path, batch: list[Row]) -> None:
    rows = [(h, g, v, BEGIN + timedelta(seconds=second)) for h, g, v, second in batch]
    frame = spark.createDataFrame(rows, "h INT, g STRING, v INT, ts TIMESTAMP_NTZ")
    frame.coalesce(1).write.format("delta").mode("append").save(str(lake / "t"))


def played(
    spark: SparkSession,
    lake: Path,
    seed: int,
    names: list[str],
    histories: int,
    batches: int,
    lateness: int = 0,
) -> None:
    draw = random.Random(seed)
    create_fed(spark, lake / "t", "h INT, g STRING, v INT, ts TIMESTAMP_NTZ")
    head = f"\nSET 'table.exec.emit.allow-lateness' = '{lateness} s';" if lateness else ""
    key = ", PRIMARY KEY (we, h, g) NOT ENFORCED" if lateness else ""
    loaded = load_script(lake / "windows.sql", text=script_text(names, head, key))
    expected = {name: Expected(name, lateness) for name in names}
    late = 0
    for number in range(batches):
        batch = drawn(draw, histories, number * 25)
        append(spark, lake, batch)
        reports: list[BatchReport] = []
        run_script(spark, loaded, listener=reports.append)
        late += sum("late rows dropped" in (r.warning or "") for r in reports)
        for name in names:
            expected[name].add(batch)
            assert result(spark, lake, name) == expected[name].result(), (
                f"{name}, batch {number}, seed {seed}"
            )
    assert late and all(sum(e.result().values()) for e in expected.values())


def test_windows(spark: SparkSession, lake: Path) -> None:
    played(spark, lake, 1, ["tumble_offset", "cumulate"], histories=30, batches=4)


def test_late_rows_that_are_allowed_correct_their_windows(spark: SparkSession, lake: Path) -> None:
    played(spark, lake, 2, ["hop"], histories=30, batches=4, lateness=10)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10, 15))
def test_a_thousand_histories(spark: SparkSession, lake: Path, seed: int) -> None:
    played(spark, lake, seed, list(CALLS), histories=200, batches=8, lateness=10 * (seed % 2))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(20, 23))
def test_runs_with_a_bound_between_others(
    script_of: MakeScript, spark: SparkSession, lake: Path, seed: int
) -> None:
    """The end of a run with a bound closes the windows that have rows, no later ones."""
    draw = random.Random(seed)
    names, lateness = ["tumble", "hop", "cumulate"], 15 * (seed % 2)
    head = f"\nSET 'table.exec.emit.allow-lateness' = '{lateness} s';" if lateness else ""
    head += "\nSET 'bridge.state.closed-windows' = 'remove';" if seed != 20 else ""
    key = ", PRIMARY KEY (we, h, g) NOT ENFORCED" if lateness else ""
    text = script_text(names, head, key, "{kafka}, 'topic' = '{prefix}-t'")
    script = script_of(text)
    script.create("t", partitions=1)
    expected = {name: Expected(name, lateness) for name in names}
    sizes: list[int] = []
    for number in range(8):
        is_end = draw.random() < 0.4
        batch = drawn(draw, 20, number * 35) if number != 4 else []
        sizes.append(len(batch))
        documents = [
            {"h": h, "g": g, "v": v, "ts": f"{BEGIN + timedelta(seconds=s)}"} for h, g, v, s in batch
        ]
        script.send("t", [(None, document) for document in documents])
        script.text = (
            text.replace("'{prefix}-t'", "'{prefix}-t', 'scan.bounded.mode' = 'latest-offset'")
            if is_end
            else text
        )
        script.run()
        for name in names:
            expected[name].add(batch, is_end=is_end)
            assert result(spark, lake, name) == expected[name].result(), f"{name}, batch {number}"
    kept = spark.read.format("delta").load(str(lake / "state" / "script" / "sources" / "t")).count()
    assert (kept < sum(sizes)) is (seed != 20), "files of closed windows are gone"
    if lateness and kept < sum(sizes):
        before = {name: result(spark, lake, name) for name in names}
        script.run(rebuild=True)
        ends = max(end for _, end, *_ in expected["hop"].rows) - 150
        for name in names:
            rows = result(spark, lake, name)
            assert {row for row in rows if row[1] <= ends} == {row for row in before[name] if row[1] <= ends}
            assert {row[:4] for row in before[name]} <= {row[:4] for row in rows}, "no window is lost"
