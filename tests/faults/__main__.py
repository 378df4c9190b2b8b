"""make faults: plays rounds of faults and judges them; exit code 1 on anything lost, twice, out of order, or left over.

`--seed 0`, the default, draws one and prints it; `--report FILE` writes the document when all is well.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

from tests.faults.checker import Verdict, judge
from tests.faults.ground import Ground, ground
from tests.faults.plan import plan
from tests.faults.reading import leftovers, log_scratch, open_transactions
from tests.faults.report import LEAKS, Outcome, recovery, written
from tests.faults.rounds import PATIENCE, Player

_CHECK_EVERY = 25
_began = time.monotonic()


def say(text: str) -> None:
    print(f"{time.monotonic() - _began:7.1f} {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--keep", action="store_true", help="keep the folder, even when all is well")
    asked = parser.parse_args()
    seed = asked.seed or random.SystemRandom().randrange(1, 2**31)
    folder = Path(tempfile.mkdtemp(prefix="bridge-faults-"))
    say(f"SEED={seed} ROUNDS={asked.rounds}, in {folder}")
    rounds = plan(seed, asked.rounds)
    outcome = Outcome(seed, asked.rounds, Counter(r.kind for r in rounds), Counter())
    clean = False
    try:
        with ground(folder, seed) as here:
            _play(here, outcome)
        clean = outcome.clean
    except (TimeoutError, AssertionError) as failed:
        say(f"FAILED: {failed}")
    except Exception:
        traceback.print_exc()
    outcome.seconds = time.monotonic() - _began
    _tell(outcome)
    (folder / "outcome.json").write_text(outcome.json())
    if clean and asked.report:
        written(outcome, asked.report)
        say(f"written to {asked.report}")
    if clean and not asked.keep:
        shutil.rmtree(folder, ignore_errors=True)
    say(
        "well"
        if clean
        else f"NOT WELL: play it again with SEED={seed} ROUNDS={asked.rounds}; all is in {folder}"
    )
    return 0 if clean else 1


def _play(here: Ground, outcome: Outcome) -> None:
    here.begin(PATIENCE)
    player = Player(here, say)
    checked = time.monotonic()
    for this in plan(outcome.seed, outcome.rounds):
        at = f" at {this.place}" if "failpoint" in this.kind else ""
        say(f"round {this.number}: {this.kind}{at}, {this.verb}{f', {this.user}' if this.user else ''}")
        player.play(this)
        if this.number % _CHECK_EVERY == 0:
            _judged(here, outcome, drained=False)
    player.finish()
    say(f"played in {time.monotonic() - checked:.0f} s; draining")
    here.drain(PATIENCE)
    for job in here.jobs.values():
        job.stop()
    verdict = _judged(here, outcome, drained=True)
    outcome.records_in, outcome.records_out = verdict.records_in, verdict.records_out
    outcome.batches, outcome.stall, outcome.users = verdict.commits, here.stall.longest, player.users
    _leaks(here, outcome)
    outcome.date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    outcome.machine = _machine()


def _judged(here: Ground, outcome: Outcome, *, drained: bool) -> Verdict:
    started = time.monotonic()
    verdict = judge(here.observer.look(), drained=drained)
    for example in verdict.examples:
        say(f"  FOUND {example}")
    outcome.found.update(verdict.counts)
    outcome.found.update({name: 0 for name in verdict.counts})
    say(
        f"  checked in {time.monotonic() - started:.1f} s: {verdict.records_in:,} records in, "
        f"{verdict.commits:,} batches, {verdict.records_out:,} records out: "
        f"{'all well' if verdict.clean else 'NOT WELL'}"
    )
    if not verdict.clean:
        raise AssertionError(dict(+verdict.counts))
    return verdict


def _leaks(here: Ground, outcome: Outcome) -> None:
    left = leftovers([here.folder / "ingests", here.folder / "publishs"], here.table)
    jobs = here.jobs.values()
    found = (
        open_transactions(here.broker.bootstrap),
        [x for job in jobs for x in job.leaks],
        left + [x for job in jobs for x in job.files],
    )
    told = dict(zip(LEAKS, found, strict=True))
    orphaned = _vacuumed(here)
    outcome.orphaned_files, outcome.log_scratch = orphaned[0], len(log_scratch(here.table))
    told[LEAKS[2]] = [*told[LEAKS[2]], *orphaned[1]]
    for name, what in told.items():
        outcome.found[name] += len(what)
        for one in what:
            say(f"  FOUND {name}: {one}")
    outcome.unasked = [x for job in jobs for x in job.unasked]
    outcome.recoveries = {job.verb: recovery(job.recoveries) for job in jobs}


def _vacuumed(here: Ground) -> tuple[int, list[str]]:
    """How many data files no commit names, and those that VACUUM leaves. It must not touch any other."""
    path = str(here.table)

    def unnamed() -> list[str]:
        named = {Path(x).name for x in here.spark.read.format("delta").load(path).inputFiles()}
        return sorted(p.name for p in here.table.glob("*.parquet") if p.name not in named)

    commits, rows = here.observer.history.commits, sorted(here.observer.history.table)
    committed = {
        line.split('"path":"')[1].split('"')[0]
        for log in (here.table / "_delta_log").glob("*.json")
        for line in log.read_text().splitlines()
        if line.startswith('{"add":')
    }
    before = [name for name in unnamed() if name not in committed]
    here.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    here.spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS").collect()
    left = unnamed()
    if sorted(here.observer._rows(commits[-1].version)) != rows:
        left.append("the table itself has changed under VACUUM")
    return len(before), left


def _tell(outcome: Outcome) -> None:
    for verb, found in outcome.recoveries.items():
        say(f"{verb}: {found.of} recoveries, p50 {found.p50:.1f} s, p99 {found.p99:.1f} s")
    for words in outcome.unasked:
        say(f"  ended by itself: {words}")
    say(
        f"users: {outcome.users}; longest stall {outcome.stall:.1f} s; files of killed MERGEs {outcome.orphaned_files}"
    )
    say(f"found: {dict(outcome.found)}")


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}"


if __name__ == "__main__":
    sys.exit(main())
