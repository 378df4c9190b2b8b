"""Checks an episode: every lane, and leftover processes, transactions and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.appended import AppendHistory, judge_appends
from tests.faults.checker import Verdict, judge
from tests.faults.ground import Ground
from tests.faults.intervals import judge_intervals
from tests.faults.lane import Lane
from tests.faults.parquet import Log
from tests.faults.reading import leftovers, log_scratch, open_transactions
from tests.faults.sums import judge_sums

LEAKS = ("open transactions", "leaked processes", "leaked temporary files")


def check_lane(ground: Ground, lane: Lane) -> Verdict:
    """Checks a drained lane."""
    return judge(
        ground.observers[lane.name].look(),
        drained=True,
        exactly_once=lane.exactly_once,
        grown=not lane.is_in_order,
    )


def check_appends(ground: Ground, lane: Lane) -> tuple[Verdict, AppendHistory]:
    """Checks the table without a key of a drained lane that has one."""
    history = ground.append_observers[lane.name].appends()
    return judge_appends(history, drained=True), history


def check_intervals(ground: Ground, lane: Lane) -> Verdict:
    """Checks the history of the keys of a drained lane that has one."""
    return judge_intervals(ground.interval_observers[lane.name].intervals(), drained=True)


def check_sums(ground: Ground, lane: Lane) -> Verdict:
    """Checks the combined values of a drained lane that has them."""
    return judge_sums(ground.combined_observers[lane.name].sums(), drained=True)


def find_leaks(ground: Ground, say: Callable[[str], None]) -> Counter[str]:
    """Returns what ended jobs left over; `say` receives each."""
    jobs, topics = ground.jobs.values(), {topic for lane in ground.lanes for topic in lane.topics}
    topics |= {output.topic for observer in ground.derived for output in observer.outputs}
    left = {
        path
        for lane in ground.lanes
        for table in ground.tables(lane)
        for path in leftovers([c for v in ground.jobs for c in ground.checkpoints(lane, v).values()], table)
    }
    found = (
        [x for x in open_transactions(ground.world.broker.bootstrap) if x.rpartition("-")[0] in topics],
        [x for job in jobs for x in job.leaks],
        sorted(left) + [x for job in jobs for x in job.files_left],
    )
    for name, what in zip(LEAKS, found, strict=True):
        for one in what:
            say(f"  FOUND {name}: {one}")
    return Counter({name: len(what) for name, what in zip(LEAKS, found, strict=True)})


def check_vacuum(spark: Any, log: Log) -> tuple[int, int, list[str]]:
    """Returns (data files without a commit, partial files of Delta's log writer, faults after VACUUM, which must delete
    the former and nothing else). `log` has been read to its end."""
    table, columns = log.table, ["seq", "writer", "seed"]
    before, rows = _uncommitted_files(table), sorted(log.rows(columns))
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS").collect()
    for _ in log.commits():
        pass
    there = {p.name for p in table.glob("*.parquet")}
    wrong = [f"{name} outlives VACUUM" for name in sorted(there - log.files)]
    if not log.files <= there or sorted(log.rows(columns)) != rows:
        wrong.append(f"the table {table.parent.name}/{table.name} itself has changed under VACUUM")
    return len(before), len(log_scratch(table)), wrong


def _uncommitted_files(table: Path) -> set[str]:
    log = Log(table)
    named = {action["add"]["path"] for _, actions in log.commits() for action in actions if "add" in action}
    return {p.name for p in table.glob("*.parquet")} - named
