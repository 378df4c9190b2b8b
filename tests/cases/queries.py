"""Checks expectations about queries and earlier versions of the final table."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from bridge.definition import Definition
from tests.cases.bench import Bench, rows_of
from tests.cases.case import Part
from tests.cases.changelog import Shape
from tests.cases.expectations import check_same, row_of
from tests.cases.outcome import Unsupported
from tests.cases.values import types


def check_query(bench: Bench, definition: Definition, part: Part, topic: str) -> None:
    """Runs a SELECT ... GROUP BY without FROM on the table; compares values as text."""
    if not part.has("query"):
        return
    head, word, tail = part.take("query").partition(" GROUP BY ")
    bench.table(definition).createOrReplaceTempView("case_query")
    found = bench.world.spark.sql(f"{head} FROM case_query{word}{tail}").collect()
    wanted = [tuple(topic if v == "<topic>" else str(v) for v in row) for row in part.take("expected_query")]
    check_same("query", wanted, [tuple(map(str, row)) for row in found])


def check_as_of(bench: Bench, definition: Definition, part: Part, shape: Shape) -> None:
    """Checks rows [time, key, values...]: the key's row after all records up to that source time are applied.

    Each record was a batch of its own, so each state is a version of the table.
    """
    rows: Sequence[Any] = part.take("expected_as_of") or []
    if not rows:
        return
    times = [_source_ms(record["value"]) for record in part.take("records")]
    if times != sorted(times):
        raise Unsupported("expected_as_of where source times go back")
    moment = [("at", types([("at", "TIMESTAMP(3)")])["at"])]
    for time, key, *values in rows:
        limit = row_of([time], moment)[0].timestamp() * 1000
        version = sum(at <= limit for at in times)
        reader = bench.world.spark.read.format("delta").option("versionAsOf", version)
        found = [r for r in rows_of(reader.load(str(definition.delta.path)), shape) if r[0] == key]
        wanted = [] if set(values) == {None} else [row_of([key, *values], shape)]
        check_same(f"as of {time}, key {key}", wanted, found)


def _source_ms(value: str) -> int:
    found = re.fullmatch(r"\d+", str(json.loads(value)["source"]["ts_ms"]))
    assert found is not None
    return int(found[0])
