"""make faults: plays rounds of faults and checks them; exit code 1 for lost, duplicate, reordered or leftover data.

`--seed 0`, the default, draws a seed and prints it. `--ledger FILE` appends the play, whatever it found, and writes
the document of the same name, `.md`, from all plays of this code; it refuses while bridge/ has changes that are not
committed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

from tests.faults.checker import Verdict
from tests.faults.episode_checks import (
    LEAKS,
    check_appends,
    check_intervals,
    check_lane,
    check_sums,
    check_vacuum,
    find_leaks,
)
from tests.faults.ground import Ground, World, ground, world
from tests.faults.lane import Lane
from tests.faults.plan import Episode, plan
from tests.faults.plays import (
    CLUSTER,
    LOCAL,
    NOT_PLAYED,
    Play,
    append_play,
    code_version,
    machine,
    read_plays,
    sum_of_newest_code,
)
from tests.faults.report import percentile, write
from tests.faults.rounds import PATIENCE, Player

_began = time.monotonic()


def say(text: str) -> None:
    print(f"{time.monotonic() - _began:7.1f} {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="minimum number of rounds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lanes", type=int, default=4, help="number of concurrent lanes")
    parser.add_argument("--blows", type=int, default=12, help="number of faults before new lanes are drawn")
    parser.add_argument(
        "--episodes",
        type=int,
        help="play this many sets of lanes instead, with each fault on all lanes of a set",
    )
    parser.add_argument("--where", choices=[LOCAL, CLUSTER], default=LOCAL, help="what the jobs run on")
    parser.add_argument(
        "--plain", action="store_true", help="no scripts, no jobs of Flink CDC, and users who change nothing"
    )
    parser.add_argument("--ledger", type=Path)
    parser.add_argument("--keep", action="store_true", help="keep the working folder even without findings")
    asked = parser.parse_args()
    there = code_version()
    if asked.ledger and there.changed:
        say(f"bridge/ has uncommitted changes, so these rounds would not count: {there.changed}")
        return 1
    seed = asked.seed or random.SystemRandom().randrange(1, 2**31)
    folder = Path(tempfile.mkdtemp(prefix="bridge-faults-"))
    say(f"SEED={seed} ROUNDS={asked.rounds}, in {folder}")
    today = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    play = Play(
        [there.commit], there.tree, [today], [seed], [machine()], where=asked.where, left_out=list(NOT_PLAYED)
    )
    whole = _played(asked, seed, folder, play)
    play.seconds = time.monotonic() - _began
    _tell(play)
    (folder / "play.json").write_text(play.json())
    clean = whole and play.clean
    if asked.ledger:  # with any result: a ledger of successes only would prove nothing
        append_play(play, asked.ledger)
        plays = read_plays(asked.ledger)
        if any(play.count for play in plays):
            write(sum_of_newest_code(plays), asked.ledger.with_suffix(".md"))
        say(f"updated {asked.ledger} and its document")
    if clean and not asked.keep:
        shutil.rmtree(folder, ignore_errors=True)
    again = f"repeat with SEED={seed} ROUNDS={asked.rounds}; all files are in {folder}"
    say("no findings" if clean else f"FINDINGS: {again}")
    return 0 if clean else 1


def _played(asked: argparse.Namespace, seed: int, folder: Path, play: Play) -> bool:
    """Plays and checks episodes; returns False when one was aborted."""
    try:
        cluster = asked.where == CLUSTER
        with world(folder, cluster=cluster) as there:
            all_of_them = bool(asked.episodes)
            for episode in plan(
                seed,
                asked.lanes,
                asked.blows,
                all_of_them=all_of_them,
                cluster=cluster,
                plain=asked.plain,
            ):
                _episode(there, folder / f"episode-{episode.number}", episode, seed, play)
                enough = episode.number >= asked.episodes if asked.episodes else play.count >= asked.rounds
                if enough or not play.clean:
                    return True
    except (TimeoutError, AssertionError) as failed:
        say(f"FAILED: {failed}")
        play.broken.append(str(failed).partition(";")[0][:200])
    except Exception as failed:
        traceback.print_exc()
        play.broken.append(type(failed).__name__)
    return False


def _episode(there: World, folder: Path, episode: Episode, seed: int, play: Play) -> None:
    for lane in episode.lanes:
        say(f"lane {lane.name}: {lane}")
    with ground(there, folder, episode.lanes, seed + episode.number) as here:
        here.begin(PATIENCE)
        player = Player(here, say)
        for number, blow in enumerate(episode.blows):
            if number == len(episode.blows) // 2:
                here.grow()
            at = f" at {blow.place}" if "failpoint" in blow.kind else ""
            say(f"{blow.kind}{at}, {blow.verb}{f', {blow.user}' if blow.user else ''}")
            player.play(blow)
        player.finish()
        say("draining")
        here.drain(3 * PATIENCE)  # a lane that is published file by file is slow at this size
        for job in here.jobs.values():
            job.stop()
        _judged(here, episode, play)
        play.users += player.users
    if play.clean:
        shutil.rmtree(folder, ignore_errors=True)


def _judged(here: Ground, episode: Episode, play: Play) -> None:
    for lane in episode.lanes:
        verdict = check_lane(here, lane)
        _count(verdict, lane, play)
        play.records_in += verdict.records_in
        play.records_out += verdict.records_out
        play.batches += verdict.commits
        kinds: Counter[str] = Counter()
        for job in here.jobs.values():
            for (name, kind), count in job.rounds.items():
                if name in map(lane.pipeline, lane.pipelines) and count:
                    kinds[kind] += count
        play.lane(lane, kinds)
        play.by_file += here.by_file(lane)
        if lane.appends:
            verdict, history = check_appends(here, lane)
            _count(verdict, lane, play)
            play.rows_appended += verdict.records_out
            play.append_batches += verdict.commits
            play.appended_by_consumers += history.by_consumers
        if lane.keeps_history:
            verdict = check_intervals(here, lane)
            _count(verdict, lane, play)
            play.intervals += verdict.records_out
            play.interval_batches += verdict.commits
        if lane.aggregates:
            verdict = check_sums(here, lane)
            _count(verdict, lane, play)
            play.combined_batches += verdict.commits
    for observer in here.derived:
        verdict = observer.judged()
        _count(verdict, observer.lane, play)
        play.records_derived += verdict.records_out
    play.found.update(find_leaks(here, say))
    _vacuumed(here, episode, play)
    for verb, job in here.jobs.items():
        times = [seconds for kind, seconds in job.recoveries if kind != "first start"]
        play.recoveries.setdefault(verb, []).extend(times)
        play.unasked += job.unasked
        for words in job.unasked:
            say(f"  ended by itself: {words}")
    play.stall = max(play.stall, here.stall.longest)
    say(f"{play.count} rounds checked: {'no findings' if play.clean else 'FINDINGS'}")


def _count(verdict: Verdict, lane: Lane, play: Play) -> None:
    for example in verdict.examples:
        say(f"  FOUND in {lane.name} ({lane}) {example}")
    play.found.update(verdict.counts)


def _vacuumed(here: Ground, episode: Episode, play: Play) -> None:
    """Checks a VACUUM of one lane's table, of all histories and combined values, and of all tables without a key."""
    lane = episode.lanes[episode.number % len(episode.lanes)]
    spark, wrong = here.world.spark, []
    more = *here.interval_observers.values(), *here.combined_observers.values()
    for merged in (here.observers[lane.name], *more):
        orphaned, scratch, found = check_vacuum(spark, merged.log)
        play.orphaned_files, play.log_scratch = play.orphaned_files + orphaned, play.log_scratch + scratch
        wrong += found
    for observer in here.append_observers.values():
        orphaned, scratch, found = check_vacuum(spark, observer.log)
        play.orphaned_appends, play.log_scratch = play.orphaned_appends + orphaned, play.log_scratch + scratch
        wrong += found
    for what in wrong:
        say(f"  FOUND {LEAKS[2]}: {what}")
    play.found[LEAKS[2]] += len(wrong)


def _tell(play: Play) -> None:
    for verb, times in play.recoveries.items():
        say(
            f"{verb}: {len(times)} recoveries, p50 {percentile(times, 50):.1f} s, p99 {percentile(times, 99):.1f} s"
        )
    say(f"{play.count} rounds in {play.seconds:.0f} s: {play.seconds / max(play.count, 1):.1f} s each")
    say(
        f"users: {play.users}; longest stall {play.stall:.1f} s; files of killed MERGEs {play.orphaned_files}"
    )
    say(
        f"appended: {play.rows_appended} rows in {play.append_batches} batches, {play.appended_by_consumers} of them "
        f"by consumers; uncommitted files {play.orphaned_appends}; by scripts and jobs: {play.records_derived} records"
        f"; histories: {play.intervals} rows in {play.interval_batches} batches"
    )
    say(f"ranges by file: {play.by_file}; found: {dict(play.found)}")


if __name__ == "__main__":
    sys.exit(main())
