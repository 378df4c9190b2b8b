"""docs/performance.md and its plots: what one run has found, and nothing else."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from math import isnan
from pathlib import Path

from rich.table import Table

from benchmarks.goals import Outcome, number
from benchmarks.ground import Entry, Laid
from benchmarks.plots import Plot, svg
from benchmarks.steps import STEPS, profile

__all__ = ["Report", "machine", "profiles", "written"]


@dataclass(frozen=True)
class Report:
    """One run of the benchmark."""

    command: str
    date: str
    machine: str
    seconds: float
    outcomes: Sequence[Outcome]
    entries: Sequence[Entry]
    profiled: Sequence[Entry]
    plots: Mapping[str, Plot]


def machine() -> str:
    """Cores, memory, processor and versions."""
    cpu = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    total = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    memory = f", {total / 2**20:.0f} GB" if total else ""
    return (
        f"{os.cpu_count()} cores ({cpu}){memory}, {platform.system()}, Python {platform.python_version()}, "
        f"Spark {version('pyspark')}, Delta {version('delta-spark')}"
    )


def profiles(entries: Sequence[Entry]) -> Table:
    """The seconds of each step of a warm batch, for a terminal."""
    shown = Table(box=None)
    for title in ("a warm batch of", "system"):
        shown.add_column(title)
    for title in (*STEPS, "s in all"):
        shown.add_column(title, justify="right")
    for row in _profiled(entries):
        shown.add_row(*row)
    return shown


def written(report: Report, path: Path) -> None:
    """Write the document and, into a folder of its name beside it, the plots; each in place of what was there."""
    folder = path.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, plot in report.plots.items():
        (folder / f"{name}.svg").write_text(svg(plot), encoding="utf-8")
    scratch = path.with_name(f".{path.name}.tmp")
    scratch.write_text(rendered(report, folder.name), encoding="utf-8")
    os.replace(scratch, path)


def rendered(report: Report, folder: str) -> str:
    """The document; `folder` holds the plots."""
    goals = [
        (o.name, number(o.baseline), number(o.bridge), o.unit, f"{o.ratio:.2f}", o.wanted, o.verdict)
        for o in report.outcomes
        if o.ratio is not None
    ]
    facts = [
        ("written by", f"`{report.command}`; not by hand"),
        ("date", report.date),
        ("machine", report.machine),
        ("took", f"{report.seconds / 60:.0f} min"),
    ]
    jobs = [_job(entry) for entry in report.entries]
    plots = [f"![{plot.title}]({folder}/{name}.svg)" for name, plot in report.plots.items()]
    parts = [
        _HEAD,
        _table(("of the run", ""), facts),
        "## Goals\n",
        _table(("what", "baseline", "bridge", "unit", "ratio", "goal", ""), goals),
        _READING
        + (_LAID if any(e.what.endswith(laid.value) for e in report.entries for laid in Laid) else ""),
    ]
    if report.profiled:
        parts += [
            "## Where the time of a warm batch goes\n",
            _table(_STEPS_HEAD, _profiled(report.profiled)),
            _PROFILE,
        ]
    if plots:
        parts += ["## Curves\n", "\n\n".join(plots) + "\n"]
    if jobs:
        parts += ["## Every job\n", _table(_JOBS_HEAD, jobs), _FOOT]
    return "\n".join(parts)


def _profiled(entries: Sequence[Entry]) -> list[tuple[str, ...]]:
    found = []
    for entry in entries:
        steps = profile(entry.ran) if entry.ran else {}
        if steps:
            shown = (f"{steps[step]:.2f}" if steps[step] >= 0.005 else "–" for step in STEPS)
            found.append((entry.what, entry.system, *shown, f"{sum(steps.values()):.2f}"))
    return found


def _job(entry: Entry) -> tuple[str, ...]:
    warm = "–" if isnan(entry.warm) else f"{entry.warm:.2f}"
    seconds = f"{entry.ran.seconds:.1f}" if entry.ran else "–"
    peak = "–" if isnan(entry.peak_mb) else f"{entry.peak_mb:,.0f}"
    batches = entry.ran.engines if entry.ran else "–"
    return (
        entry.what,
        entry.system,
        seconds,
        f"{entry.rate:,.0f}",
        batches,
        warm,
        peak,
        entry.wrong or "right",
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text().splitlines()
    except OSError:
        return []


_STEPS_HEAD = ("a batch of", "system", *STEPS, "all")
_JOBS_HEAD = ("what", "system", "seconds", "records/s", "batches", "warm batch, s", "peak MB", "table")
_HEAD = """\
# Performance

`bridge ingest` and `bridge publish` beside what one writes without them, in one run on one machine. The numbers are
this machine's; the ratios are what to look at. Baseline of an ingest is the recipe of Delta Lake's documentation
(`foreachBatch`, the newest record of a key by a window function, `MERGE`; `benchmarks/recipe.py`) with the settings
that Spark and Delta have by themselves, and as much memory as the bridge. It keeps no progress in the table, checks
nothing and writes no change feed; the bridge does all that here as everywhere.
"""
_READING = """
Topics are made by a fixed seed: records of random keys, one in twenty a tombstone. Every table was compared with what
numpy folds from the keys that were sent; a wrong one would have voided its row and this document would not have been
written. "Cold start counts" is the time of the whole process, from its start to its end; a warm batch is the median
time from one commit to the next, without the first three batches and the last. The Flink → Paimon row takes the
recipe's rate in this run times 95/20, which is what the two did beside each other on another day.

What keeps goals from being held, where they are not. The goals about tables are set for 20 and 100 million rows (`make
bench-full`): the smaller a table, the more a batch is made of what costs the same for every table, planning, commits
and the pauses between (see below), on both sides. So is a publish the shorter it is; its goal is set for five million
changes. A publish is made of reading rows and writing their JSON documents (half of its time here), handing them to
Python (an eighth) and sending them, on the same cores on which the bare loop, which has its bytes ready, only sends. A
large version by another writer is read twice, the first time for two numbers of each row, which are grouped by key:
nothing else tells which rows changed nothing or moved to another key (ADR 010); small versions are grouped as they
are. Exactly-once sends large versions file by file (ADR 017); others, and those of too few files for the cores, as
delta-rs's own, it shuffles and sorts, so that a later attempt knows which records are sent (ADR 009). Of a batch of
100,000 random keys delta-rs needs most for its own scan and join of the whole table. Memory grows with a backlog up to
`run.max-offsets-per-batch` (5,000,000) and no further, as the JVM's heap fills up to its limit before it collects. On
two cores two executors and their driver share what `local[1]` has to itself, the compilation of Spark's code and the
collection of its garbage among it; what two cores are worth here stands above.
"""
_LAID = """
Tables whose rows lie "in their order", "in any order" or "clustered by their key" have 40 files each, and the Spark
engine merges into them; the last is what `delta: {cluster-by: [...]}` and an OPTIMIZE make of the one before.
"""
_PROFILE = """
Mean seconds between two commits of warm batches, by what Spark's event log says of its jobs. "Plan, commit, pauses" is
the time in which no Spark job ran: planning, Delta's commit, the streaming query's own log, and what the driver does.
"""
_FOOT = """
Memory is what all processes of a job hold together (resident), looked at five times a second.
"""
