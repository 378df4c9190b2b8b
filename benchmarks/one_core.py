"""What of a batch does not shrink with more cores: the same batches on one core, and on all of this machine."""

from __future__ import annotations

import os
import shutil

from benchmarks.cores import gain
from benchmarks.goals import Outcome, faster, not_measured
from benchmarks.ground import Ground
from benchmarks.results import Entry
from benchmarks.rounds import compared, in_turn
from benchmarks.topics import Load


def unshrunk(one: float, all_: float, gain: float) -> float:
    """The seconds of a batch that do not shrink, of a batch that takes `one` second on one core and `all_` on cores
    that do `gain` times the work of one (Amdahl's law)."""
    return min(max((all_ * gain - one) / (gain - 1), 0.0), all_)


def outcomes(ground: Ground, load: Load, batch: int) -> list[Outcome]:
    """Warm batches on one core beside those on all, and what of the latter does not shrink."""
    cores = os.cpu_count() or 1
    what = f"cores: a warm batch of {batch:,} records"
    name = f"{what}, on 1 core / on {cores}"
    if cores == 1 or shutil.which("taskset") is None:
        return [not_measured(name, "s a batch", 0.0, "it needs two cores and taskset")]
    topic = ground.topic("cores", load)
    one, bridge = in_turn(
        1,
        [
            lambda: ground.bridge(what, topic, batch=batch, cores=1),
            lambda: ground.bridge(what, topic, batch=batch),
        ],
    )
    assert one is not None and bridge is not None
    more = gain()
    left = unshrunk(one.median(_warm), bridge.median(_warm), more)
    speed = f"{cores} cores do {more:.2f} times the work of 1"
    shrinks = f"{what}, what does not shrink with more cores / all of it ({speed})"
    return [
        compared(name, "s a batch", _warm, 0.0, one, bridge, by=faster),
        compared(shrinks, "s a batch", _warm, 0.0, bridge, bridge, bridge_number=lambda _: left),
    ]


def _warm(entry: Entry) -> float:
    return entry.warm
