"""Writes docs/reliability.md, the results of the rounds of faults, and reads its tables."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.faults.derived import JOB, SCRIPT
from tests.faults.lane import AGGREGATES, APPENDS, CHOICES, HISTORY, SEQUENCE, TRUNCATES
from tests.faults.plays import CLUSTER, FOUND, Play


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the nearest-rank percentile; nan without values."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def render(play: Play) -> str:
    """Returns the document, whose tables `parsed` reads."""
    facts = {
        "commit": ", ".join(play.commits),
        # A number would soon be wrong; on the site the result takes its place (docs/hooks.py).
        "commits of `bridge/` since": f"`git rev-list --count {play.commits[-1]}..HEAD -- bridge`",
        "digest of the code": play.tree,
        "date": ", ".join(play.dates),
        "machine": "; ".join(play.machines),
        "rounds": f"{play.count:,}",
        "lanes": f"{len(play.rounds):,}",
        "seeds": ", ".join(map(str, play.seeds)),
        "duration": f"{play.seconds / 60:.0f} min",
        "records written": f"{play.records_in:,}",
        "records published": f"{play.records_out:,}",
        "ingest batches": f"{play.batches:,}",
        "ranges sent file by file, in the current logs": f"{play.by_file:,}",
        "statements of users": f"{len(play.users)}, {_lost(play)} of them lost a conflict with the ingest",
        "pipelines ended without a fault": str(len(play.unasked)),
        "aborted plays": str(len(play.broken)),
        "longest wait of a read_committed consumer": f"{play.stall:.1f} s",
        "data files of killed MERGEs, deleted by VACUUM": str(play.orphaned_files),
        "temporary files of Delta's log writer, left by kills": str(play.log_scratch),
    }
    has_appends = bool(play.by("with")[APPENDS])
    if has_appends:  # the plays of earlier code have no such tables
        facts |= {
            "rows appended to tables without a key": f"{play.rows_appended:,}",
            "batches of these": f"{play.append_batches:,}, {play.appended_by_consumers:,} of them by consumers",
            "data files of these without a commit, deleted by VACUUM": str(play.orphaned_appends),
        }
    has_derived = bool(play.by("with")[SCRIPT] + play.by("with")[JOB])
    if has_derived:
        facts["records of scripts and jobs"] = f"{play.records_derived:,}"
    has_ordered = bool(play.by("with")[SEQUENCE])
    has_histories = bool(play.by("with")[HISTORY])
    if has_histories:
        facts["rows of histories"] = f"{play.intervals:,}, in {play.interval_batches:,} batches"
    has_sums, has_truncates = bool(play.by("with")[AGGREGATES]), bool(play.by("with")[TRUNCATES])
    if has_sums:
        facts["batches of combined values"] = f"{play.combined_batches:,}"
    left_out = {
        APPENDS: not has_appends,
        SEQUENCE: not has_ordered,
        HISTORY: not has_histories,
        AGGREGATES: not has_sums,
        TRUNCATES: not has_truncates,
        SCRIPT: not has_derived,
        JOB: not has_derived,
    }
    parts = [
        (_ON_CLUSTER if play.where == CLUSTER else _HEAD).format(
            left_out=", ".join(f"`{folder}`" for folder in play.left_out)
        ),
        *([_APPENDED] if has_appends else []),
        *([_ORDERED] if has_ordered else []),
        *([_HISTORIES] if has_histories else []),
        *([_SUMS] if has_sums else []),
        *([_TRUNCATES] if has_truncates else []),
        *([_DERIVED] if has_derived else []),
        _table(("runs", ""), facts),
        "\n## What was found\n",
    ]
    parts.append(_table(("fault", "found"), {name: str(play.found[name]) for name in FOUND}))
    if play.judged_again:
        parts.append("\nJudged again, as the judge was wrong:\n")
        parts += [f"- {text}" for text in play.judged_again]
    for dimension, choices in CHOICES.items():
        told = play.by(dimension)
        parts.append(f"\n## Rounds by {dimension}\n")
        shown = [name for name in choices if not left_out.get(name)]
        parts.append(_table((dimension, "rounds"), {name: f"{told[name]:,}" for name in shown}))
    kinds = sorted(play.by("kind").items(), key=lambda x: (-x[1], x[0]))
    parts += ["\n## Rounds by fault\n", _table(("fault", "rounds"), {name: f"{n:,}" for name, n in kinds})]
    return "\n".join([*parts, "\n## Recovery\n", _recovery(play), _FOOT])


def write(play: Play, path: Path) -> None:
    """Writes the document atomically."""
    scratch = path.with_name(f".{path.name}.tmp")
    scratch.write_text(render(play), encoding="utf-8")
    os.replace(scratch, path)


def parse_tables(text: str) -> dict[str, dict[str, str]]:
    """Returns the table of each section as {first cell: second cell}; the first section is ''."""
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


_CLUSTER_FIRST = """\
`make faults WHERE=cluster`, which plays rounds of faults as for [Reliability](reliability.md), but
the jobs run on a standalone cluster of Spark: a master and two workers on this machine, and an executor of each job
on each of the workers, with a Python that has no checkout. A driver that is killed leaves executors that work on until
they notice. One executor of a job is killed, too, or a worker with all executors on it"""
_HEAD = """\
# Reliability

Generated by `make faults`, which plays rounds of faults on one machine. A lane is a writer that changes a topic
continuously, an ingest that writes a table from it, and a publish that writes a second topic from the table, in a
configuration drawn from a seed: engine, delivery, key, format, and the extras below. Several lanes run at once, and
new ones are drawn after a few faults. One process runs the ingests of all lanes, another one the publishes, in
threads that call `bridge.ingest` and `bridge.publish` on one Spark session; so one kill hits several pipelines, each
at another point. **A round is one pipeline hit by one fault**: a kill of four ingests is four rounds. An error raised
at a failpoint hits a single pipeline.

A checker that shares no code with the bridge then compares every record of both topics, every commit of the table and
its rows, which it reads from the Parquet files in the log, with deletion vectors and without statistics. It computes
the changes that the second topic must contain, and their order, and accepts no others. With exactly-once each of them
is there once. With at-least-once the changes of a key may go back to an earlier one and repeat; none may be skipped
that was not there before, and the last record is the newest. Undecodable records are in the quarantine once, and
nowhere else. Each play is a line in `docs/reliability.jsonl`, whatever it found; this page sums up those of one state
of the code: of `bridge/` without the folders that nothing of what is played imports
({left_out}). A play is aborted when a pipeline does not recover within ten
minutes, or when the player fails: its last set of lanes is then not checked, and its rounds are not counted.
"""
_ON_CLUSTER = (
    _HEAD.replace("# Reliability\n", "# Reliability on a cluster\n")
    .replace("`make faults`, which plays rounds of faults on one machine", _CLUSTER_FIRST)
    .replace("`docs/reliability.jsonl`", "`docs/reliability-cluster.jsonl`")
)
_APPENDED = """\
Some lanes have a further ingest, which appends the rows of the same topic to a table without a key. There the checker
requires the row of each record once, by partition and offset, in the commit with these offsets, and no other rows.
"""
_ORDERED = """\
In some lanes the writer sends changes late, and the ingest orders them by their numbers (`sequence-by`). There the
checker requires the change with the greatest number of each key in the table, and in the topic rows whose numbers do
not go back, and at the end the table's.
"""
_HISTORIES = """\
Every second of these lanes has a further ingest, which keeps the history of each key (`history: scd2`). There the
checker requires the rows that the records determine, each with its start and its end, and no others.
"""
_SUMS = """\
Some lanes have a further ingest, which combines the values of each key (`aggregate`). There the checker requires the
sum, the least, the greatest and the first value and the set that the records give, and no other rows: a sum tells each
record that counts twice or not at all.
"""
_TRUNCATES = """\
In some lanes the writer also empties its topic, of one partition (`truncate: apply`). There the checker requires the
rows of records after the last truncate, in the table and at the end in the second topic.
"""
_DERIVED = """\
Some lanes also run a script in Flink SQL, which filters and counts the rows of the same topic, and some a job of Flink
CDC from the table, every second one with a projection and a filter. The checker computes from each state that the
source went through what their topics may contain: some of these results in their order, each once with exactly-once,
and in the end the last one.
"""
_FOOT = """
Recovery is the time from the fault until the pipeline's next batch is committed. Most of it is the start of the JVM
and of Spark, and the first batches of all lanes at once, with both jobs and the broker on the machine's cores; some
of it is part of the fault (a broker that stays down, a process that is stopped). Python is forked from a process that
has imported everything; the JVMs start from the class archive that `make setup` creates.

## Differences from production

- Tables are small, and a version is sent file by file from 40 rows on instead of 200,000 (`BRIDGE_FILE_SLOT_ROWS`,
  docs/adr/017); transactions have 10 or 40 records (`publish.transaction-rows`), and Python receives 20 rows at a
  time, so that few rows fill several of each. One JVM of four runs as it does for users; the others run without Spark's
  generated code and without Java's second compiler (`-XX:TieredStopAtLevel=1`), because they are killed before these
  pay off. Publishes run one task at a time, and ingests write a file for each task, so that files become shards.
- Where partitions were added, the order of a key is required within each partition. Between two of them the newest
  timestamp decides which record is the last: the rule by which an ingest folds a batch.
- An at-least-once publish has its progress only in its checkpoint, so its checkpoint is not deleted.

## What is not claimed

- There is one machine and one broker with one replica, and what the broker has written survives in memory of the
  operating system: power cuts, faulty disks, leader changes and network partitions are not part of these rounds.
- Order and exactly-once in the second topic are those that consumers with `isolation.level=read_committed` see.
  Others see records of aborted transactions.
- A killed run cannot clean up. The next run deletes what it left under `run.checkpoint`; data files without a commit
  are deleted by the table's next VACUUM, and Spark's own temporary files are left to the system.
- A table is the fold of the topic after each batch, not after each record: intermediate values within a batch are in
  no version, and therefore not in the second topic.
"""
