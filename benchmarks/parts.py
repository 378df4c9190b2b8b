"""The parts of a run, by name: each plays its jobs and adds its comparisons."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from benchmarks import (
    age,
    freshness,
    layout,
    log_size,
    many,
    on_s3,
    one_core,
    own_functions,
    publishing,
    random_keys,
    scenarios,
    semantics,
    shapes,
    sql_scripts,
    start,
    width,
)
from benchmarks.found import Found
from benchmarks.ground import Ground
from benchmarks.plots import Plot
from benchmarks.scale import SEED, Scale
from benchmarks.topics import Load

Part = Callable[[Ground, Scale, Found], None]


def play(
    ground: Ground,
    scale: Scale,
    names: Collection[str],
    parts: Mapping[str, Part] | None = None,
    after_part: Callable[[Found], None] = lambda _: None,
) -> Found:
    """Plays the parts of these names, in their order; calls `after_part` with what was found so far."""
    found = Found()
    for name, part in (parts or PARTS).items():
        if name in names:
            started = time.monotonic()
            part(ground, scale, found)
            found.minutes[name] = (time.monotonic() - started) / 60
            ground.say(f"part {name}: {found.minutes[name]:.1f} min")
            if any(found.by_table_size.values()):
                title = f"A batch of {scale.records // 1000:,} keys by the size of the table"
                found.plots["table-size"] = Plot(
                    title, "rows in the table", "seconds", found.by_table_size, True, True
                )
            after_part(found)
    return found


def _freshness(ground: Ground, scale: Scale, found: Found) -> None:
    warm = max(2, scale.stream_seconds // 6)
    stream = freshness.Stream(scale.stream_rate, scale.stream_seconds + warm, warm, scale.records)
    found.outcomes += freshness.outcomes(ground, stream, scale.stream_rounds)


def _start(ground: Ground, scale: Scale, found: Found) -> None:
    found.outcomes += start.outcomes(ground, scale.rounds)


def _width(ground: Ground, scale: Scale, found: Found) -> None:
    found.outcomes += width.outcomes(ground, scale.wide_batch, scale.wide_partitions, scale.rounds)


def _cores(ground: Ground, scale: Scale, found: Found) -> None:
    load = Load.random(scale.records, scale.keys, SEED)
    found.outcomes += one_core.outcomes(ground, load, scale.batch)


def _log(ground: Ground, scale: Scale, found: Found) -> None:
    found.outcomes += log_size.outcomes(ground)


def _many(ground: Ground, scale: Scale, found: Found) -> None:
    found.outcomes += many.outcomes(ground)


def _age(ground: Ground, scale: Scale, found: Found) -> None:
    found.outcomes += age.outcomes(ground)


def _publish(ground: Ground, scale: Scale, found: Found) -> None:
    place = ground.folder / "publish"
    place.mkdir()
    found.outcomes += publishing.outcomes(ground, place, scale.published, scale.rounds)


def _shapes(ground: Ground, scale: Scale, found: Found) -> None:
    shapes.play(ground, scale.records // 2, found)


def _s3(ground: Ground, scale: Scale, found: Found) -> None:
    found.outcomes += on_s3.outcomes(ground, 2 * scale.records)


def _sql(ground: Ground, scale: Scale, found: Found) -> None:
    found.outcomes += sql_scripts.outcomes(ground, scale.records, scale.rounds)
    found.outcomes += own_functions.outcomes(ground, scale.records)


PARTS: dict[str, Part] = {
    "batches": scenarios.batches,
    "freshness": _freshness,
    "start": _start,
    "width": _width,
    "backlog": scenarios.backlog,
    "publish": _publish,
    "cores": _cores,
    "tables": random_keys.play,
    "large-batches": random_keys.play_large,
    "together": scenarios.together,
    "log": _log,
    "many": _many,
    "age": _age,
    "layout": layout.play,
    "shapes": _shapes,
    "sql": _sql,
    "s3": _s3,
    "semantics": semantics.play,
}
NORMAL = ("batches", "freshness", "start", "width")
"""What fits twenty minutes."""
