"""Applies changes to a table like a user's commits, and reads them from the change data feed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.columns import same_key
from bridge.definition import Definition
from bridge.schema import DataType, quote
from tests.cases.outcome import Unsupported
from tests.cases.values import comparable, from_case

Shape = Sequence[tuple[str, DataType]]
"""Column names and types, in the order in which a case writes its rows."""

Commits = list[list[tuple[Any, ...]]]
"""Changes (kind, values...) by commit. Within a commit retractions come before adds; keys have no order."""

_KINDS = {"insert": "+I", "update_preimage": "-U", "update_postimage": "+U", "delete": "-D"}


def commit(
    spark: SparkSession, definition: Definition, shape: Shape, changes: Sequence[Sequence[Any]]
) -> None:
    """Applies [kind, values...] changes one by one, each as one Delta commit.

    A -U followed by +U is one UPDATE (also of the key); +I and +U alone are a MERGE that inserts or updates;
    -D and -U alone delete by key.
    """
    path = str(definition.delta.path)
    fields = {f.name: f for f in spark.read.format("delta").load(path).schema}
    key = list(definition.primary_key) or [name for name, _ in shape]
    for old, new in _pairs(changes):
        rows = {"old": old, "new": new}
        columns: dict[str, tuple[T.DataType, Any]] = {}
        for side, row in rows.items():
            for at, (name, type) in enumerate(shape):
                value = None if row is None else from_case(row[at + 1], type)
                columns[f"{side}.{name}"] = (fields[name].dataType, value)
        schema = T.StructType([T.StructField(name, type) for name, (type, _) in columns.items()])
        frame = spark.createDataFrame([tuple(v for _, v in columns.values())], schema, verifySchema=False)
        side = "new" if old is None else "old"
        source = frame.select(
            *[frame[quote(f"{side}.{name}")].alias(name) for name in key],
            *[frame[quote(f"new.{name}")].alias(f"__{name}") for name, _ in shape],
        )
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), same_key(key, "t", "s"))
        sets = {quote(name): f"s.{quote(f'__{name}')}" for name, _ in shape}
        if new is None:
            merge = merge.whenMatchedDelete()
        else:
            merge = merge.whenMatchedUpdate(set=dict(sets))
            merge = merge.whenNotMatchedInsert(values=dict(sets)) if old is None else merge
        merge.execute()


Row = Sequence[Any]


def _pairs(changes: Sequence[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    waiting: Row | None = None
    for change in changes:
        kind = change[0]
        if kind not in _KINDS.values():
            raise Unsupported(f"row kind {kind!r}")
        if kind == "+U" and waiting is not None:
            yield waiting, change
            waiting = None
            continue
        if waiting is not None:
            yield waiting, None
            waiting = None
        if kind == "-U":
            waiting = change
        else:
            yield (change, None) if kind == "-D" else (None, change)
    if waiting is not None:
        yield waiting, None


def read_feed(spark: SparkSession, definition: Definition, shape: Shape, start: int) -> Commits:
    """Reads the change data feed from version `start` on, values in comparable form."""
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", start)
    names = [quote(name) for name, _ in shape]
    feed = reader.load(str(definition.delta.path))
    found = feed.select("_change_type", "_commit_version", *names).collect()
    kinds = list(_KINDS.values())
    rows = [
        (
            row[1],
            kinds.index(_KINDS[row[0]]) in (0, 2),
            (_KINDS[row[0]], *[comparable(v, t) for v, (_, t) in zip(row[2:], shape, strict=True)]),
        )
        for row in found
    ]
    ordered = sorted(rows, key=lambda r: (r[0], r[1], repr(r[2])))
    return [[change for *_, change in commit] for _, commit in groupby(ordered, key=lambda r: r[0])]
