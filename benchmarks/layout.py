"""Measures small batches by the layout of the table's files: the same rows sorted by id, unordered, and clustered by id
with OPTIMIZE."""

from __future__ import annotations

from benchmarks.base_tables import Laid
from benchmarks.found import Found
from benchmarks.goals import at_least
from benchmarks.ground import Ground, engines
from benchmarks.plots import Plot
from benchmarks.scale import SEED, Scale
from benchmarks.topics import load_together


def play(ground: Ground, scale: Scale, found: Found) -> None:
    """Merges batches of adjacent keys with the Spark engine, whose reads the layout is to save."""
    small, curves = scale.records // 1000, dict[str, list[tuple[float, float]]]()
    engine = "spark" if "spark" in engines() else None
    for rows in scale.laid_tables:
        load = load_together(small * scale.small_batches, small, rows, SEED)
        topic = ground.topic(f"laid-{rows}", load)
        what = f"{small:,} adjacent keys into {rows:,} rows"
        jobs = {
            laid: ground.bridge(
                f"{what} {laid.value}", topic, batch=small, rows=rows, engine=engine, laid=laid
            )
            for laid in Laid
        }
        for laid, job in jobs.items():
            curves.setdefault(laid.value, []).append((rows, job.warm))
        found.profiled += jobs.values()
        other = jobs[Laid.ANY_ORDER]
        for laid in (Laid.CLUSTERED, Laid.IN_ORDER):
            name = f"{what} {laid.value}; baseline: {Laid.ANY_ORDER.value}"
            given = ("records/s", small / other.warm, small / jobs[laid].warm, 0.0)
            found.add(at_least, name, *given, of=(other, jobs[laid]))
    found.plots["layout"] = Plot(
        f"A batch of {small:,} adjacent keys, by the layout of the table's files",
        "rows in the table",
        "seconds",
        curves,
        True,
        True,
    )
