"""Topics of drawn columns in each format, narrow and wide, beside Flink; and what a record costs by its size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from benchmarks import beside
from benchmarks.drawn_columns import FORMATS, DrawnColumns
from benchmarks.found import Found
from benchmarks.goals import Outcome, at_most
from benchmarks.ground import Ground
from benchmarks.plots import Plot
from benchmarks.results import PAIMON, Entry
from benchmarks.rounds import Rounds, compared, in_turn
from benchmarks.scale import SEED
from benchmarks.topics import Load
from bridge.embedded.schema_registry import SchemaRegistryServer

SEEDS = 5
WIDTHS = {5: 1.0, 30: 0.4}
"""Columns, and the share of the records that a topic of so many has."""
_SIZES = (10, 100, 1_000, 10_000)
_BYTES = 400_000_000
"""Of the values of a topic of the curve, at most."""
_GOAL, _MEMORY_GOAL = 1.2, 1.25


@contextmanager
def embedded_registry(ground: Ground) -> Iterator[str]:
    """The URL of a schema registry of this run."""
    with SchemaRegistryServer(ground.folder / "registry") as registry:
        yield registry.url


def play(
    ground: Ground,
    records: int,
    found: Found,
    seeds: Sequence[int] = range(SEED, SEED + SEEDS),
    registry: Callable[[Ground], AbstractContextManager[str]] = embedded_registry,
) -> None:
    """A table of ratios by format and width, each that of the worst drawn shape; a curve of the cost of a record."""
    with registry(ground) as url:
        for format in FORMATS:
            for width, share in WIDTHS.items():
                found.outcomes += _worst(ground, format, width, int(records * share), url, seeds)
    found.plots["record-size"] = _by_size(ground, records)


def _worst(
    ground: Ground, format: str, width: int, records: int, registry: str, seeds: Sequence[int]
) -> list[Outcome]:
    """Speed and memory beside Flink of the shape in which the bridge compares worst."""
    what = f"{records:,} records of {format}, {width} columns"
    compared_by_seed: list[list[Outcome]] = []
    for seed in seeds:
        load = Load.random(records, records // 5, seed)
        load = replace(load, rows=DrawnColumns(format, width, seed, registry=registry))
        topic = ground.topic(f"{format}-{width}-{seed}", load)
        bridge, flink = _in_turn(ground, f"{what}, seed {seed}", topic)
        named = f"{what}, the worst of {len(seeds)} shapes"
        compared_by_seed.append(
            [
                compared(f"{named}, beside {PAIMON}", "records/s", _rate, _GOAL, flink, bridge),
                compared(
                    f"memory: {named}, beside {PAIMON}",
                    "MB",
                    _peak,
                    _MEMORY_GOAL,
                    flink,
                    bridge,
                    by=at_most,
                ),
            ]
        )
    speeds, memories = zip(*compared_by_seed, strict=True)
    return [_worse(speeds, min), _worse(memories, max)]


def _worse(rows: Sequence[Outcome], of: Callable[..., Outcome]) -> Outcome:
    """The row whose ratio is the worst; a row without a ratio comes first, as it says what went wrong."""
    void = [row for row in rows if row.ratio is None]
    return void[0] if void else of(rows, key=lambda row: row.ratio)


def _in_turn(ground: Ground, what: str, topic: str) -> tuple[Rounds, Rounds | None]:
    bridge, flink = in_turn(
        1,
        [
            lambda: ground.bridge(what, topic, batch=100_000),
            lambda: ground.paimon(what, topic, checkpoint=beside.CHECKPOINT),
        ],
    )
    assert bridge is not None
    return bridge, flink


def _by_size(ground: Ground, records: int) -> Plot:
    """Microseconds a record of a warm batch, by the bytes of its value."""
    curve: list[tuple[float, float]] = []
    for size in _SIZES:
        batch = max(1_000, min(records // 10, _BYTES // 6 // size))
        load = Load.random(6 * batch, 6 * batch // 5, SEED)
        load = replace(load, rows=DrawnColumns("json", 1, value_bytes=size))
        topic = ground.topic(f"bytes-{size}", load)
        entry = ground.bridge(f"{len(load):,} records of {size:,} bytes", topic, batch=batch)
        curve.append((size, entry.warm / batch * 1e6))
    return Plot(
        "A record of a warm batch by the size of its value",
        "bytes",
        "microseconds",
        {"bridge": curve},
        True,
        True,
    )


def _rate(entry: Entry) -> float:
    return entry.rate


def _peak(entry: Entry) -> float:
    return entry.peak_mb
