"""Compares whole jobs of the bridge with the recipe of Delta Lake's documentation and with Flink; checks every table.

    python -m benchmarks [--rows N] [--full] [--only PART,...] [--tolerance SHARE] [--report FILE] [--out FILE]

Prints a table and JSON lines. Exit code 1 when a goal is missed, 2 when a table was incorrect.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks import goals, performance
from benchmarks.cores import gain
from benchmarks.found import Found
from benchmarks.goals import Outcome
from benchmarks.ground import Ground
from benchmarks.parts import NORMAL, PARTS, play
from benchmarks.results import TOLERANCE, Say
from benchmarks.scale import Scale
from bridge.embedded.broker import Broker

ROWS = 1_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark, prints it, and writes the report if every table was correct; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=int(os.environ.get("ROWS") or ROWS))
    parser.add_argument(
        "--full", action="store_true", help="all parts, with tables of 20 and 100 times as many rows"
    )
    parser.add_argument(
        "--only",
        type=_parts,
        help=f"parts of {', '.join(PARTS)}; default: {', '.join(NORMAL)}, and all with --full",
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often each job is run; default: %(default)s"
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=float(os.environ.get("BENCH_TOLERANCE") or TOLERANCE),
        help="a round does not count if other processes used more than this share of its own CPU seconds; default: "
        "%(default)g (BENCH_TOLERANCE)",
    )
    parser.add_argument(
        "--report",
        type=Path,
        help="write the report to this Markdown file, with plots beside it; with --full a page of each part, "
        "FILE-PART.md for FILE.md",
    )
    parser.add_argument("--out", type=Path, help="file for a JSON line per comparison")
    chosen = parser.parse_args(arguments)
    chosen.only = chosen.only or _unasked(chosen.full)
    started, said = time.monotonic(), Console(stderr=True, highlight=False, soft_wrap=True)

    def say(text: str) -> None:
        said.print(f"{time.monotonic() - started:5.0f} s  {text}", markup=False)

    # A terminated benchmark leaves neither jobs nor files.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        scale = Scale.of(chosen.rows, full=chosen.full, rounds=chosen.rounds)
        screen, outcomes = Console(width=180), list[Outcome]()
        for page in pages(chosen.only, chosen.report, full=chosen.full):
            outcomes += _played(folder, scale, chosen, page, say, screen)
        screen.print(goals.table(outcomes))
        lines = "".join(json.dumps(outcome.json(), ensure_ascii=False) + "\n" for outcome in outcomes)
        sys.stdout.write(lines)
        if chosen.out:
            chosen.out.write_text(lines, encoding="utf-8")
        return goals.exit_code(outcomes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _parts(given: str) -> tuple[str, ...]:
    asked = {name.strip() for name in given.split(",")}
    if unknown := asked - set(PARTS):
        raise argparse.ArgumentTypeError(
            f"unknown part {', '.join(sorted(unknown))}; legal values are {', '.join(PARTS)}"
        )
    return tuple(part for part in PARTS if part in asked)


def _unasked(full: bool) -> tuple[str, ...]:
    return tuple(PARTS) if full else NORMAL


def _command(parts: Sequence[str]) -> str:
    if len(parts) == 1 and parts[0] in ("sql", "s3", "semantics"):
        return f"make bench-{parts[0]}"
    return "make bench" if tuple(parts) == _unasked(False) else f"ONLY={','.join(parts)} make bench"


@dataclass(frozen=True)
class Page:
    """The parts of one document."""

    parts: tuple[str, ...]
    command: str
    file: Path | None
    """Where to write it; None prints its results only."""


def pages(parts: Sequence[str], report: Path | None, *, full: bool) -> list[Page]:
    """The documents of a run. A full run takes hours: each of its parts has a page, performance-tables.md beside
    performance.md, which can be written anew alone."""
    if not full:
        return [Page(tuple(parts), _command(parts), report)]
    return [
        Page((part,), f"ONLY={part} make bench-full", report and report.with_stem(f"{report.stem}-{part}"))
        for part in parts
    ]


def _played(
    folder: Path, scale: Scale, chosen: argparse.Namespace, page: Page, say: Say, screen: Console
) -> list[Outcome]:
    """Plays the parts, and writes the report after each, so that a run that is cut off leaves what it has found. Prints
    the steps of batches while their logs are there."""
    from bridge.session import build_session

    started, place = time.monotonic(), Path(tempfile.mkdtemp(dir=folder))
    spark = build_session("bridge-benchmarks", stores=("s3a",) if {"s3", "age"} & {*page.parts} else ())
    try:
        with Broker(place / "broker") as broker:
            ground = Ground(spark, broker, place, say, chosen.tolerance)

            def write(found: Found) -> None:
                if page.file and goals.exit_code(found.outcomes) != 2:
                    _write(page, chosen.tolerance, found, ground, time.monotonic() - started)
                    say(f"written: {page.file}")

            found = play(ground, scale, page.parts, after_part=write)
            screen.print(performance.profiles(found.profiled))
            return found.outcomes
    finally:
        spark.sparkContext.stop()
        shutil.rmtree(place, ignore_errors=True)


def _write(page: Page, tolerance: float, found: Found, ground: Ground, seconds: float) -> None:
    assert page.file is not None
    open_parts = [name for name in page.parts if name not in found.minutes]
    cut = f", so far without {', '.join(open_parts)}" if open_parts else ""
    performance.written(
        performance.Report(
            command=f"`{page.command}`{cut}",
            commit=performance.commit(),
            date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
            machine=f"{performance.machine()}; all cores together do {gain():.2f} times the work of one",
            seconds=seconds,
            tolerance=tolerance,
            found=found,
            entries=ground.entries,
        ),
        page.file,
    )


if __name__ == "__main__":
    sys.exit(main())
