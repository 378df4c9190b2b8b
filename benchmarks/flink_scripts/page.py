"""The page of a run: docs/sql-conformance.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from benchmarks.flink import VERSION
from benchmarks.flink_scripts.systems import Outcome
from benchmarks.performance import since

_HEAD = """\
# Scripts beside Flink

Whole scripts in Flink SQL run on Flink {flink} and on the bridge (Spark {spark}), over the same topics: with updates,
deletes, tombstones, equal rows, equal times, NULL in the keys of joins and groups, late rows, and a restart of the
bridge between two parts of the data. What the topics of the sinks come to is compared: the last row of each key, or
all rows where a sink only takes rows. Measured by `{command}` at {commit} on
{date}. Commits of `bridge/` since: {since}.

{summary}

`equal`: the same rows. `refused`: `bridge validate` refuses the script, with this reason. `not in Flink`: Flink itself
refuses it. Everything else is a difference. The scripts are data, in `benchmarks/flink_scripts/`; those of `manuals`
are printed in the manuals of the connectors. Not compared: several INSERTs into one table, which only the bridge
merges; late rows in topics of several partitions, as it depends on the order in which Flink reads the partitions
which of them it drops; `table.exec.emit.allow-lateness`; a kill.
"""


@dataclass(frozen=True)
class Drawn:
    """The scripts that a seed made."""

    seed: int
    outcomes: Sequence[Outcome]


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many scripts came to what, in one line."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    return f"{len(outcomes)} scripts: " + ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common())


def rendered(
    outcomes: Sequence[Outcome], drawn: Sequence[Drawn], *, command: str, events: int, commit: str, date: str
) -> str:
    """The page in Markdown."""
    nexmark = [o for o in outcomes if o.case.family == "nexmark"]
    lines = [summary(outcomes)]
    if nexmark:
        equal = sum(o.verdict == "equal" for o in nexmark)
        lines.append(
            f"Of Nexmark's {len(nexmark)} queries {equal} are equal over {events:,} events; queries and their "
            "sources are in `benchmarks/flink_scripts/nexmark.yaml`."
        )
    if drawn:
        texts = [f"seed {one.seed}: {summary(one.outcomes)}" for one in drawn]
        lines.append("Drawn scripts (`SEED=`): " + "; ".join(texts) + ".")
    head = _HEAD.format(
        flink=VERSION,
        spark=version("pyspark"),
        command=command,
        date=date,
        commit=commit,
        since=since(commit),
        summary="\n\n".join(lines),
    )
    parts = [head]
    different = [o for o in [*outcomes, *(o for one in drawn for o in one.outcomes)] if o.verdict != "equal"]
    if different:
        parts.append(
            "## What is not equal\n\n| Script | | Why |\n|---|---|---|\n" + "".join(map(_row, different))
        )
    for family in dict.fromkeys(o.case.family for o in outcomes):
        rows = "".join(
            f"| `{o.case.name}` | {o.verdict} | {o.rows:,} |\n" for o in outcomes if o.case.family == family
        )
        parts.append(f"## {family}\n\n| Script | | Rows |\n|---|---|---|\n{rows}")
    return "\n".join(parts)


def _row(outcome: Outcome) -> str:
    case = outcome.case
    why = case.differs or case.refused or outcome.detail[:300]
    return f"| `{case.name}` | {outcome.verdict} | {why.replace('|', chr(92) + '|')} |\n"
