"""docs/reliability.md: what the rounds of faults have shown, in numbers; written and read here alone."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.checker import FAULTS

__all__ = ["LEAKS", "Outcome", "Recovery", "parsed", "percentile", "recovery", "rendered", "written"]

LEAKS = ("open transactions", "leaked processes", "leaked temporary files")
_KILLS = "## What was done"
_FOUND = "## What was found"
_RECOVERY = "## Recovery"


@dataclass(frozen=True)
class Recovery:
    """How long a job was away, in seconds, and how often."""

    p50: float
    p99: float
    of: int


@dataclass
class Outcome:
    """One play of rounds."""

    seed: int
    rounds: int
    kinds: Counter[str]
    found: Counter[str]
    """How often each of FAULTS and LEAKS was found."""
    seconds: float = 0.0
    records_in: int = 0
    records_out: int = 0
    batches: int = 0
    recoveries: dict[str, Recovery] = field(default_factory=dict)
    stall: float = 0.0
    unasked: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    orphaned_files: int = 0
    log_scratch: int = 0
    machine: str = ""
    date: str = ""

    @property
    def clean(self) -> bool:
        return not any(self.found.values())

    def json(self) -> str:
        """All of it, for people and programs that look into a play."""
        plain = {**vars(self), "recoveries": {verb: vars(r) for verb, r in self.recoveries.items()}}
        return json.dumps(plain, indent=2)


def recovery(measured: Sequence[tuple[str, float]]) -> Recovery:
    """Of the times that a job was away, each with the kind of round; that it was not there before its first start
    counts for nothing."""
    seconds = [s for kind, s in measured if kind != "first start"]
    return Recovery(percentile(seconds, 50), percentile(seconds, 99), len(seconds))


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile; nan of nothing."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def rendered(outcome: Outcome) -> str:
    """The document. `parsed` reads its tables back."""
    facts = {
        "date": outcome.date,
        "machine": outcome.machine,
        "rounds": f"{outcome.rounds:,}",
        "seed": str(outcome.seed),
        "took": f"{outcome.seconds / 60:.0f} min",
        "records written": f"{outcome.records_in:,}",
        "records published": f"{outcome.records_out:,}",
        "ingest batches": f"{outcome.batches:,}",
        "users' OPTIMIZE and UPDATE": f"{len(outcome.users)}, of which {_lost(outcome)} lost against the ingest",
        "ended though nobody had hit them": str(len(outcome.unasked)),
        "longest wait of a reader of committed records": f"{outcome.stall:.1f} s",
        "data files of MERGEs that were killed, gone with VACUUM": str(outcome.orphaned_files),
        "temporary files of Delta's own log writer, left where a kill hit it": str(outcome.log_scratch),
    }
    found = {name: str(outcome.found[name]) for name in (*FAULTS, *LEAKS)}
    kinds = {name: str(count) for name, count in sorted(outcome.kinds.items(), key=lambda x: (-x[1], x[0]))}
    return "\n".join(
        [
            _HEAD,
            _table(("of the run", ""), facts),
            f"\n{_FOUND}\n",
            _table(("fault", "found"), found),
            f"\n{_KILLS}\n",
            _table(("round", "times"), kinds),
            f"\n{_RECOVERY}\n",
            _recovery(outcome),
            _FOOT,
        ]
    )


def written(outcome: Outcome, path: Path) -> None:
    """Write the document whole, in place of the one before."""
    scratch = path.with_name(f".{path.name}.tmp")
    scratch.write_text(rendered(outcome), encoding="utf-8")
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


def _lost(outcome: Outcome) -> int:
    return sum("lost" in user for user in outcome.users)


def _table(head: tuple[str, str], rows: dict[str, str]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {value} |" for name, value in rows.items())])


def _recovery(outcome: Outcome) -> str:
    lines = ["| who | p50 | p99 | of |", "|---|---|---|---|"]
    lines += [
        f"| {verb} | {r.p50:.1f} s | {r.p99:.1f} s | {r.of} |" for verb, r in outcome.recoveries.items()
    ]
    return "\n".join(lines)


_HEAD = """\
# Reliability

Written by `make faults`, which plays rounds of faults on one machine: a writer changes a topic all the time, one
`bridge ingest` makes a table of it, one `bridge publish` with `exactly-once` makes a second topic of the table,
and each round kills somebody. A checker that shares no code with the bridge then compares every record of both
topics, every commit of the table and its rows. It knows which changes the second topic must hold, and holds no other
to be right. `make faults ROUNDS=20 SEED=7` plays other rounds; it ends with an error unless every number under
"found" is 0.
"""
_FOOT = """
Recovery is the time from the fault until the next progress: a commit to the table, or a stretch of the table's versions
that is in the topic to its end. Most of it is the start of Python, the JVM and Spark, with both jobs and the broker on
the machine's cores, and some of it what the round wants (a broker that stays away, a process that is stopped); the JVMs
start from an archive of classes that the first of them has left (`-XX:SharedArchiveFile`).

## What is not claimed

- One machine and one broker with one replica; what it has written outlives it, as memory of the system: power cuts,
  disks that lie, leader changes and lost networks are not in these rounds.
- Order and once-ness in the second topic are those that readers with `isolation.level=read_committed` find. Others see
  records of transactions that were taken back.
- A run that was killed cannot clean up. The next one removes what the run kept under `run.checkpoint`; data files that
  no commit names are gone with the table's next VACUUM, and Spark's own temporary files are the system's to remove.
- A table is the fold of the topic after each batch, not after each record: values that came and went within a batch are
  in no version, and so in no second topic.
"""
