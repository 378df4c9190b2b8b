"""docs/reliability.md: what the rounds of faults have shown, in numbers; written and read here alone."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.faults.lane import CHOICES
from tests.faults.plays import FOUND, Play

__all__ = ["parsed", "percentile", "rendered", "written"]


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile; nan of nothing."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def rendered(play: Play) -> str:
    """The document. `parsed` reads its tables back."""
    facts = {
        "commit": ", ".join(play.commits),
        "git's id of bridge/": play.tree,
        "date": ", ".join(play.dates),
        "machine": "; ".join(play.machines),
        "rounds": f"{play.count:,}",
        "lanes": f"{len(play.rounds):,}",
        "seeds": ", ".join(map(str, play.seeds)),
        "took": f"{play.seconds / 60:.0f} min",
        "records written": f"{play.records_in:,}",
        "records published": f"{play.records_out:,}",
        "ingest batches": f"{play.batches:,}",
        "ranges sent file by file, that the logs still tell of": f"{play.by_file:,}",
        "users' OPTIMIZE and UPDATE": f"{len(play.users)}, of which {_lost(play)} lost against the ingest",
        "ended though nobody had hit them": str(len(play.unasked)),
        "plays that broke off before their end": str(len(play.broken)),
        "longest wait of a reader of committed records": f"{play.stall:.1f} s",
        "data files of MERGEs that were killed, gone with VACUUM": str(play.orphaned_files),
        "temporary files of Delta's own log writer, left where a kill hit it": str(play.log_scratch),
    }
    parts = [_HEAD, _table(("of the runs", ""), facts), "\n## What was found\n"]
    parts.append(_table(("fault", "found"), {name: str(play.found[name]) for name in FOUND}))
    for dimension, choices in CHOICES.items():
        told = play.by(dimension)
        parts.append(f"\n## Rounds by {dimension}\n")
        parts.append(_table((dimension, "rounds"), {name: f"{told[name]:,}" for name in choices}))
    kinds = sorted(play.by("kind").items(), key=lambda x: (-x[1], x[0]))
    parts += ["\n## Rounds by fault\n", _table(("fault", "rounds"), {name: f"{n:,}" for name, n in kinds})]
    return "\n".join([*parts, "\n## Recovery\n", _recovery(play), _FOOT])


def written(play: Play, path: Path) -> None:
    """Write the document whole, in place of the one before."""
    scratch = path.with_name(f".{path.name}.tmp")
    scratch.write_text(rendered(play), encoding="utf-8")
    os.replace(scratch, path)


def parsed(text: str) -> dict[str, dict[str, str]]:
    """Each section's table as {first cell: second cell}; the first section is ''."""
    found: dict[str, dict[str, str]] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line
        elif match := re.fullmatch(r"\| ([^|]+?) \| ([^|]+?) \|.*", line):
            found.setdefault(section.removeprefix("## "), {})[match[1]] = match[2]
    return found


def _lost(play: Play) -> int:
    return sum("lost" in user for user in play.users)


def _table(head: tuple[str, str], rows: Mapping[str, str]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {value} |" for name, value in rows.items())])


def _recovery(play: Play) -> str:
    lines = ["| who | p50 | p99 | of |", "|---|---|---|---|"]
    for verb, times in play.recoveries.items():
        lines.append(
            f"| {verb} | {percentile(times, 50):.1f} s | {percentile(times, 99):.1f} s | {len(times)} |"
        )
    return "\n".join(lines)


_HEAD = """\
# Reliability

Written by `make faults`, which plays rounds of faults on one machine. A lane is a writer that changes a topic all
the time, an ingest that makes a table of it, and a publish that makes a second topic of the table, in a
configuration that a seed draws: engine, delivery, key, format, and what else there is below. Several lanes are
played at once, and new ones are drawn after a few faults. One process carries the ingests of all lanes, another
one the publishes, in threads that call `bridge.ingest` and `bridge.publish` on one Spark session; so one kill hits
several pipelines, each at another place. **A round is one pipeline hit by one fault**: a kill of four ingests is
four rounds. An error raised at a place in the code hits one pipeline alone.

A judge that shares no code with the bridge then compares every record of both topics, every commit of the table
and its rows, which it reads from the Parquet files that the log names, with deletion vectors and without
statistics. It knows which changes the second topic must hold, in which order, and holds no other to be right.
Exactly once, each is there once. At least once, a key's changes may go back to an earlier one and come again; none
may be passed over that was not there before, and the last record is the newest. Records that nobody can decode are
in the quarantine once, and nowhere else. Each play is a line in `docs/reliability.jsonl`, whatever it found; this page
adds up those of one state of `bridge/`. A play breaks off when a pipeline does not come back within five minutes, or
when the player fails: its last set of lanes is then not judged, and its rounds are not counted.
"""
_FOOT = """
Recovery is the time from the fault until the pipeline's next batch is committed. Most of it is the start of the
JVM and of Spark, and the first batches of all lanes at once, with both jobs and the broker on the machine's cores,
and some of it what the round wants (a broker that stays away, a process that is stopped). Python is forked from a
process that has imported everything; the JVMs start from the archive of classes that `make setup` leaves.

## How the rounds differ from earnest use

- Tables are small, and a version goes out file by file from 40 rows on, where 200,000 are asked for in earnest
  (`BRIDGE_FILE_SLOT_ROWS`, docs/adr/017); transactions have 10 records (`publish.transaction-rows`), and Python is
  given 20 rows at a time, so that few rows are several of each. Spark generates code as it always does; three JVMs of
  four do without Java's second compiler (`-XX:TieredStopAtLevel=1`), as they are killed before it pays. Publishes run
  one task at a time, and ingests write a file for each task, so that files become shards.
- Where partitions were added, a key's order is asked for within each partition. Between two of them the newest
  timestamp decides what the last record is: the rule by which an ingest folds a batch.
- A publish at least once has its progress in its checkpoint alone, so its checkpoint is not taken away.

## What is not claimed

- One machine and one broker with one replica; what it has written outlives it, as memory of the system: power
  cuts, disks that lie, leader changes and lost networks are not in these rounds.
- Order and once-ness in the second topic are those that readers with `isolation.level=read_committed` find. Others
  see records of transactions that were taken back.
- A run that was killed cannot clean up. The next one removes what the run kept under `run.checkpoint`; data files
  that no commit names are gone with the table's next VACUUM, and Spark's own temporary files are the system's to
  remove.
- A table is the fold of the topic after each batch, not after each record: values that came and went within a
  batch are in no version, and so in no second topic.
"""
