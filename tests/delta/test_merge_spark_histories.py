"""Random histories, cut into random batches, some sent twice: the table equals the result of `rows.replay`.

A key column distinguishes the histories, so one MERGE covers them all.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.delta.ingest_progress import read_progress
from bridge.errors import ConcurrentRunError
from bridge.rows import Change, RowKind, compact, replay
from tests.delta.tables import NO_VECTORS, Merge, at, frame, kinds, made

FIELDS = tuple(
    T.StructField(name, type)
    for name, type in [
        ("history", T.LongType()),
        ("k", T.StringType()),
        ("v", T.LongType()),
        ("w", T.StringType()),
    ]
)
HISTORIES, CHANGES, BATCHES = 50, 40, 4
KEYS = [None, "a", "b", "", "A"]


def histories(dice: random.Random) -> list[list[Change]]:
    """Batches of changes; every history has its own cuts, and some batches of it are empty."""
    batches: list[list[Change]] = [[] for _ in range(BATCHES)]
    for history in range(HISTORIES):
        cuts = sorted(dice.choices(range(BATCHES), k=CHANGES))
        for position, batch in enumerate(cuts):
            key = (history, dice.choice(KEYS))
            if dice.random() < 0.35:
                change = Change(RowKind.DELETE, key, None, (position,))
            else:
                row = {"v": dice.choice([None, 1, 2]), "w": dice.choice([None, "", "x"])}
                change = Change(RowKind.UPDATE_AFTER, key, row, (position,))
            batches[batch].append(change)
    return batches


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param({}, id="deletion vectors"),
        pytest.param(NO_VECTORS, id="rewritten files", marks=pytest.mark.slow),
    ],
)
def test_the_table_is_the_fold(
    merge: Merge, spark: SparkSession, lake: Path, properties: dict[str, str]
) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    dice = random.Random(seed)
    table = made(spark, lake / "t", fields=FIELDS, properties=properties)
    done: list[Change] = []
    version = 0
    for number, batch in enumerate(histories(dice)):
        last = compact(batch)
        dice.shuffle(last)
        rows = [
            (c.kind.value, *key_of(c), *((c.row["v"], c.row["w"]) if c.row else (None, None))) for c in last
        ]
        before, done = replay(done), done + batch
        result = merge(table, frame(table, rows), key=["history", "k"], progress=at(number))
        after = replay(done)
        assert (result.version, result.skipped) == (version + 1, False)
        assert result.inserted == len(after.keys() - before.keys())
        assert result.deleted == len(before.keys() - after.keys())
        assert result.updated == sum(before[k] != after[k] for k in before.keys() & after.keys())
        version = result.version
        actual = {(r.history, r.k): {"v": r.v, "w": r.w} for r in table.delta().toDF().collect()}
        assert actual == after
        if number == dice.randrange(BATCHES) or number == BATCHES - 1:
            assert merge(table, frame(table, rows), key=["history", "k"], progress=at(number)).skipped
            with pytest.raises(ConcurrentRunError):
                merge(table, frame(table, rows), key=["history", "k"], progress=at(number, run="run-2"))
    repeat = merge(table, frame(table, rows), key=["history", "k"], progress=at(BATCHES))
    assert (repeat.inserted, repeat.updated, repeat.deleted, repeat.skipped) == (0, 0, 0, False)
    assert kinds(table, repeat.version) == {"commitInfo", "txn"}
    assert read_progress(table, "p") == (at(BATCHES), version + 1)


def key_of(change: Change) -> tuple[int, str | None]:
    assert isinstance(change.key, tuple)
    return change.key
