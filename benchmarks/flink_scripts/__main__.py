"""Runs scripts on Flink and on the bridge, and says where their results differ.

    python -m benchmarks.flink_scripts [--only FAMILY,...] [--scripts NAME,...] [--seed N] [--drawn N] [--events N]
                                       [--report FILE]

Exit code 1 when a script differs that is not known to, 2 when Flink is not there (`make bench-peers` fetches it).
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import flink, performance
from benchmarks.flink_scripts.cases import load_cases
from benchmarks.flink_scripts.data import drawn
from benchmarks.flink_scripts.grammar import drawn_cases
from benchmarks.flink_scripts.manuals import manual_cases
from benchmarks.flink_scripts.page import Drawn, rendered, summary
from benchmarks.flink_scripts.systems import Outcome, Say, compared
from bridge.embedded.broker import Broker


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the scripts, prints each that is not equal, and writes the report; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.flink_scripts", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--only", type=_names, default=(), help="families: the names of the *.yaml files, and manuals"
    )
    parser.add_argument("--scripts", type=_names, default=(), help="names of scripts")
    parser.add_argument("--seed", type=_seeds, default=(), help="draw data, and new scripts, from this seed")
    parser.add_argument("--drawn", type=int, default=20, help="scripts for each seed; default: %(default)s")
    parser.add_argument("--events", type=int, default=100_000, help="Nexmark's events; default: %(default)s")
    parser.add_argument("--report", type=Path, help="write the page to this Markdown file")
    chosen = parser.parse_args(arguments)
    peer = flink.found()
    if peer is None:
        print("Flink is not here: make bench-peers fetches it", file=sys.stderr)
        return 2
    started, said = time.monotonic(), Console(stderr=True, highlight=False, soft_wrap=True)

    def say(text: str) -> None:
        said.print(f"{time.monotonic() - started:5.0f} s  {text}", markup=False)

    from bridge.session import build_session

    every = [*load_cases(), *manual_cases()]
    cases = [c for c in every if not chosen.only or c.family in chosen.only]
    cases = [c for c in cases if not chosen.scripts or c.name in chosen.scripts]
    folder = Path(tempfile.mkdtemp(prefix="flink-scripts-"))
    spark = build_session("flink-scripts")
    try:
        with Broker(folder / "broker") as broker:
            place = folder / "fixed"
            place.mkdir()
            topics = drawn(0, nexmark=chosen.events)
            outcomes = compared(peer, spark, broker, place, cases, topics, say) if cases else []
            _tell(outcomes, say)
            found = []
            for seed in chosen.seed:
                place = folder / f"seed-{seed}"
                place.mkdir()
                topics = drawn(seed, nexmark=2)
                made = drawn_cases(seed, chosen.drawn)
                found.append(Drawn(seed, compared(peer, spark, broker, place, made, topics, say)))
                _tell(found[-1].outcomes, say)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    everything = [*outcomes, *(outcome for one in found for outcome in one.outcomes)]
    say(summary(everything))
    if chosen.report:
        date, commit = datetime.date.today().isoformat(), performance.commit()
        seeds = f"SEED={','.join(map(str, chosen.seed))} " if chosen.seed else ""
        command = f"{seeds}make flink-scripts"
        text = rendered(outcomes, found, command=command, events=chosen.events, commit=commit, date=date)
        chosen.report.write_text(text, encoding="utf-8")
    return 0 if all(outcome.is_expected for outcome in everything) else 1


def _tell(outcomes: Sequence[Outcome], say: Say) -> None:
    """Say at once what is not equal, as another seed takes minutes."""
    for outcome in outcomes:
        if outcome.verdict != "equal":
            say(f"{outcome.case.name}: {outcome.verdict} {outcome.detail}")
            if not outcome.is_expected:
                say("  " + "; ".join([*outcome.case.views, *outcome.case.statements]))


def _names(given: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(","))


def _seeds(given: str) -> tuple[int, ...]:
    return tuple(map(int, given.split(",")))


if __name__ == "__main__":
    sys.exit(main())
