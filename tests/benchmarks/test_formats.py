"""The benchmark measures every format there is; what it finds is for `make bench-formats` to say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from benchmarks.entries import ENTRIES
from benchmarks.formats import Bench
from bridge.errors import BridgeError
from bridge.formats.catalog import available

if TYPE_CHECKING:
    from bridge.embedded.schema_registry import SchemaRegistryServer


def test_every_format_has_an_entry() -> None:
    assert sorted(ENTRIES) == list(available())


def test_a_format_without_an_entry_is_named(spark: SparkSession) -> None:
    with (
        Bench(spark, 1) as bench,
        pytest.raises(BridgeError, match=r"format .protobuf. has no entry in benchmarks/entries\.py"),
    ):
        list(bench.lines("protobuf"))


_BY_DEFAULT = ("avro-confluent",)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in _BY_DEFAULT else pytest.mark.slow) for n in sorted(ENTRIES)]
)
def test_each_format_reads_what_it_wrote_and_gives_well_formed_lines(
    spark: SparkSession, registry: SchemaRegistryServer, name: str
) -> None:
    entry = ENTRIES[name]
    with Bench(spark, 3, rounds=1, warm=0, url=registry.url) as bench:
        lines = [line.json() for line in bench.lines(name, entry.shapes[-1:])]
    assert len(lines) == (4 if entry.than else 2)
    for line in lines:
        assert list(json.loads(json.dumps(line))) == [
            *("name", "baseline", "bridge", "ratio", "goal", "held")
        ]
        assert str(line["name"]).startswith(f"{name} ")
        assert line["held"] == (float(str(line["ratio"])) >= float(str(line["goal"])))
