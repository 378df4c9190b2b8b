"""Compares decode and encode of every format with Spark's own functions, in one run on the same rows.

    python -m benchmarks.formats [--rows N] [--only json,csv] [--unkeyed] [--out FILE]

Prints a table, and with --out a JSON line per comparison. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from benchmarks.entries import ENTRIES, HALF, Entry
from benchmarks.measure import Line, compare
from benchmarks.rows import Shape, changes, rows
from bridge.errors import BridgeError
from bridge.formats import catalog
from bridge.formats.base import PAYLOAD, FastPathDecoder
from bridge.options.formats import FORMATS
from bridge.options.model import Support

ROWS = 150_000


class Bench:
    """Measures formats on the same rows. `url` is that of a schema registry; without it, it starts its own.

    `keyed`: changes are read for a table with a PRIMARY KEY, which needs only the key of a before image."""

    def __init__(
        self,
        spark: SparkSession,
        count: int,
        *,
        rounds: int = 5,
        warm: int = 2,
        url: str | None = None,
        keyed: bool = True,
    ) -> None:
        self.spark, self.count, self.rounds, self.warm, self.keyed = spark, count, rounds, warm, keyed
        self._inputs: dict[tuple[str, bool], DataFrame] = {}
        self._stack = ExitStack()
        self._url = url

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def lines(self, name: str, shapes: Sequence[Shape] = ()) -> Iterator[Line]:
        """Yields every comparison of one format, with its own shapes or `shapes`. Raises BridgeError for a format
        without an entry, and for one that cannot read what it wrote."""
        if name not in ENTRIES:
            raise BridgeError(f"format '{name}' has no entry in benchmarks/entries.py: add one to measure it")
        entry = ENTRIES[name]
        for shape in shapes or entry.shapes:
            yield from self._decode(name, entry, shape)
            yield from self._encode(name, entry, shape)

    def _decode(self, name: str, entry: Entry, shape: Shape) -> Iterator[Line]:
        payloads = self._payloads(name, entry, shape)
        bridge = self._decoded(name, entry, shape, payloads)
        label, spark = entry.baseline.decode_name, payloads.select(entry.baseline.decode(shape.type))
        yield self._line(f"{name} decode {shape.name} / {label}", spark, bridge, shape, HALF)
        if entry.than:
            than = ENTRIES[entry.than]
            other = self._decoded(entry.than, than, shape, self._payloads(entry.than, than, shape))
            yield self._line(
                f"{name} decode {shape.name} / {entry.than}", other, bridge, shape, entry.than_goal
            )

    def _encode(self, name: str, entry: Entry, shape: Shape) -> Iterator[Line]:
        source, bridge = self._input(shape, entry.changes), self._encoded(name, entry, shape)
        label, spark = entry.baseline.encode_name, source.select(entry.baseline.encode(shape.type))
        yield self._line(f"{name} encode {shape.name} / {label}", spark, bridge, shape, HALF)
        if entry.than:
            other = self._encoded(entry.than, ENTRIES[entry.than], shape)
            yield self._line(
                f"{name} encode {shape.name} / {entry.than}", other, bridge, shape, entry.than_goal
            )

    def _line(self, name: str, baseline: DataFrame, bridge: DataFrame, shape: Shape, goal: float) -> Line:
        count = self.count * shape.times
        goal = goal if self.keyed else 0.0
        return compare(name, baseline, bridge, count, goal, rounds=self.rounds, warm=self.warm)

    def _decoded(self, name: str, entry: Entry, shape: Shape, payloads: DataFrame) -> DataFrame:
        """Decodes as for a batch: by the fast path where it suffices, else by the schemas of its payloads."""
        key = (shape.type.fields[0].name,) if entry.changes and self.keyed else ()
        decoder = catalog.get(name).decoder(shape.type, self._options(name, entry), key=key)
        wrong = None
        for fast in (True, False):
            if fast and isinstance(decoder, FastPathDecoder):
                decoded = decoder.decode_fast(payloads, F.col(PAYLOAD), "decoded").select("decoded")
            else:
                full = decoder.for_payloads(payloads)
                decoded = payloads.select(full.decode(F.col(PAYLOAD)).alias("decoded"))
            kept = decoded.localCheckpoint()  # otherwise the filter moves into the steps
            wrong = kept.select("decoded.error").where("error IS NOT NULL").first()
            if wrong is None:
                return decoded
        raise BridgeError(f"format '{name}' cannot read what it wrote: {wrong and wrong[0]}")

    def _encoded(self, name: str, entry: Entry, shape: Shape) -> DataFrame:
        encoder: Any = catalog.get(name).encoder(shape.type, self._options(name, entry))
        source, before, after = self._input(shape, entry.changes), F.col("before"), F.col("after")
        if entry.changes:
            written: DataFrame = encoder.encode_change(source, before, after, PAYLOAD)
        else:
            written = encoder.encode(source, F.col("row"), PAYLOAD)
        return written.select(PAYLOAD)

    def _payloads(self, name: str, entry: Entry, shape: Shape) -> DataFrame:
        return self._encoded(name, entry, shape).localCheckpoint()

    def _input(self, shape: Shape, changed: bool) -> DataFrame:
        key = (shape.name, changed)
        if key not in self._inputs:
            self._inputs[key] = (changes if changed else rows)(self.spark, shape, self.count)
        return self._inputs[key]

    def _options(self, name: str, entry: Entry) -> Mapping[str, Any]:
        """Returns the defaults of the format, as a definition resolves them, and the options of the entry."""
        defaults = {
            o.key: o.parse(o.default)
            for o in FORMATS[name].options
            if o.default is not None and o.support is not Support.REFUSED
        }
        reached = {"url": self._registry(), "subject": f"bench-{name}"} if entry.needs_registry else {}
        return {**defaults, **reached, **entry.options}

    def _registry(self) -> str:
        if self._url is None:
            from bridge.embedded.schema_registry import SchemaRegistryServer

            folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-registry-")))
            self._url = self._stack.enter_context(SchemaRegistryServer(folder)).url
        return self._url


def table(lines: Sequence[Line], baseline: str) -> Table:
    """Returns the lines as a table for a terminal; `baseline` is the title of the first speed."""
    table = Table(box=None)
    table.add_column(f"bridge / {baseline}")
    for title in (f"{baseline} rows/s", "bridge rows/s", "ratio", "goal", ""):
        table.add_column(title, justify="right")
    for line in lines:
        goal = f"{line.goal:.2g}" if line.goal else ""
        verdict = ("met" if line.held else "[red]missed[/red]") if line.goal else ""
        table.add_row(
            line.name, f"{line.baseline:,.0f}", f"{line.bridge:,.0f}", f"{line.ratio:.2f}", goal, verdict
        )
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs and prints the benchmark; returns 0 when every goal is met, otherwise 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=int(os.environ.get("ROWS") or ROWS))
    parser.add_argument("--only", type=lambda text: tuple(text.split(",")), default=catalog.available())
    parser.add_argument("--unkeyed", action="store_true", help="read changes for a table without a key")
    parser.add_argument("--out", type=Path, help="file for a JSON line per comparison")
    chosen = parser.parse_args(arguments)
    from bridge.session import build_session

    spark, console = build_session("bridge-benchmarks"), Console(stderr=True)
    lines: list[Line] = []
    try:
        with Bench(spark, chosen.rows, keyed=not chosen.unkeyed) as bench:
            for name in chosen.only:
                for line in bench.lines(name):
                    console.print(f"{line.name}: {line.ratio:.2f}", highlight=False)
                    lines.append(line)
    finally:
        spark.sparkContext.stop()
    Console(width=110).print(table(lines, "Spark"))
    if chosen.out:
        chosen.out.write_text("".join(json.dumps(line.json()) + "\n" for line in lines))
    return 0 if all(line.held for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
