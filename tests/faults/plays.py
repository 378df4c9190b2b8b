"""Reads and writes the ledger of plays, docs/reliability.jsonl, one line per play, and sums them up."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.checker import FAULTS
from tests.faults.episode_checks import LEAKS
from tests.faults.lane import Lane

FOUND = (*FAULTS, *LEAKS)
LOCAL, CLUSTER = "local", "cluster"
ROOT = Path(__file__).parents[2]
NOT_PLAYED = ("cli", "demo", "history", "pages", "peek")
"""Folders of bridge/ that no ingest, publish, script or job imports: plays before and after a change in them are plays
of the same code."""
_ONCE_NOT_PLAYED = ("cli", "demo", "peek", "pipelines/scripts", "sql")
"""Those of the plays that do not say it: they had no scripts and no jobs."""


@dataclass(frozen=True)
class Code:
    """The version of the code that was tested."""

    commit: str
    tree: str
    """A digest of the files of bridge/ outside of NOT_PLAYED: plays of the same code are summed up."""
    changed: tuple[str, ...] = ()
    """Those of these files that have uncommitted changes."""


def code_version() -> Code:
    """Returns the code of this checkout."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.strip()

    played = ["bridge", *(f":!bridge/{folder}" for folder in NOT_PLAYED)]
    changed = git("status", "--porcelain", "--", *played).splitlines()
    # Blobs and paths; `git ls-tree` takes no exclusions.
    files = [line.split(maxsplit=1)[1] for line in git("ls-files", "--stage", "--", *played).splitlines()]
    digest = hashlib.sha1("\n".join(files).encode()).hexdigest()
    return Code(git("rev-parse", "--short=12", "HEAD"), digest, tuple(changed))


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}"


@dataclass
class Play:
    """The results of one `make faults`, or the sum of several with the same code."""

    commits: list[str]
    tree: str
    dates: list[str]
    seeds: list[int]
    machines: list[str]
    seconds: float = 0.0
    rounds: list[dict[str, Any]] = field(default_factory=list)
    """The configuration of each lane, and how often each kind hit one of its pipelines (`kinds`)."""
    found: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(FOUND, 0)))
    records_in: int = 0
    records_out: int = 0
    batches: int = 0
    recoveries: dict[str, list[float]] = field(default_factory=dict)
    stall: float = 0.0
    users: list[str] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)
    orphaned_files: int = 0
    log_scratch: int = 0
    broken: list[str] = field(default_factory=list)
    """Why plays were aborted: a pipeline did not recover in time, or the player itself failed. Rounds that were checked
    before count; those of the current set of lanes do not."""
    by_file: int = 0
    """Publish ranges that were sent file by file, by the logs of the publishes."""
    rows_appended: int = 0
    """In tables without a key; the plays before there were any have none."""
    append_batches: int = 0
    appended_by_consumers: int = 0
    """Of these batches; the others were written by Spark's path."""
    orphaned_appends: int = 0
    """Data files of such tables without a commit."""
    records_derived: int = 0
    """In the topics of scripts and jobs."""
    intervals: int = 0
    """Rows of histories."""
    interval_batches: int = 0
    combined_batches: int = 0
    """Of ingests that combine values."""
    left_out: list[str] = field(default_factory=lambda: list(_ONCE_NOT_PLAYED))
    """The folders of bridge/ that are not in the digest."""
    where: str = LOCAL
    """What the jobs ran on: LOCAL or CLUSTER."""
    judged_again: list[str] = field(default_factory=list)
    """Findings that turned out to be mistakes of the judge: what they were, and why they do not count."""

    def lane(self, lane: Lane, kinds: Counter[str]) -> None:
        """Adds the rounds of one lane."""
        self.rounds.append({**lane.configuration, "kinds": dict(sorted(kinds.items()))})

    @property
    def count(self) -> int:
        """The number of rounds."""
        return sum(sum(lane["kinds"].values()) for lane in self.rounds)

    @property
    def clean(self) -> bool:
        return not any(self.found.values())

    def by(self, dimension: str) -> Counter[str]:
        """Returns the rounds by the choices of a dimension of CHOICES, or by `kind`."""
        found: Counter[str] = Counter()
        for lane in self.rounds:
            for kind, count in lane["kinds"].items():
                names = {"kind": [kind.partition(" at ")[0]], "with": lane["extras"]}.get(dimension)
                for name in [lane[dimension]] if names is None else names:
                    found[name] += count
        return found

    def json(self) -> str:
        plain: dict[str, Any] = {**vars(self), "found": dict(self.found)}
        plain["recoveries"] = {v: [round(s, 1) for s in times] for v, times in self.recoveries.items()}
        return json.dumps({**plain, "seconds": round(self.seconds), "stall": round(self.stall, 1)})


def append_play(play: Play, ledger: Path) -> None:
    """Appends a play to the ledger."""
    with ledger.open("a", encoding="utf-8") as out:
        out.write(play.json() + "\n")


def read_plays(ledger: Path) -> list[Play]:
    """Reads all plays of the ledger."""
    lines = ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []
    plays = [Play(**json.loads(line)) for line in lines]
    for play in plays:
        play.found = Counter(play.found)
    return plays


def sum_of_tree(plays: Sequence[Play], tree: str) -> Play:
    """Returns the sum of the plays of one tree."""
    return _sum(tree, (play for play in plays if play.tree == tree))


def sum_of_newest_code(plays: Sequence[Play]) -> Play:
    """Returns the sum for the document: the plays of the newest code with checked rounds. A play that was aborted
    before its first set of lanes was checked has none."""
    return sum_of_tree(plays, next(play.tree for play in reversed(plays) if play.count))


def _sum(tree: str, plays: Iterable[Play]) -> Play:
    whole = Play([], tree, [], [], [])
    for play in plays:
        whole.commits += [c for c in play.commits if c not in whole.commits]
        whole.where, whole.left_out = play.where, play.left_out
        whole.dates += [d for d in play.dates if d not in whole.dates]
        whole.machines += [m for m in play.machines if m not in whole.machines]
        whole.seeds += play.seeds
        whole.rounds += play.rounds
        whole.found.update(play.found)
        whole.users += play.users
        whole.unasked += play.unasked
        whole.broken += play.broken
        whole.judged_again += play.judged_again
        whole.stall = max(whole.stall, play.stall)
        for name in (
            "seconds",
            "records_in",
            "records_out",
            "batches",
            "orphaned_files",
            "log_scratch",
            "by_file",
            "rows_appended",
            "append_batches",
            "appended_by_consumers",
            "orphaned_appends",
            "records_derived",
            "intervals",
            "interval_batches",
            "combined_batches",
        ):
            setattr(whole, name, getattr(whole, name) + getattr(play, name))
        for verb, times in play.recoveries.items():
            whole.recoveries.setdefault(verb, []).extend(times)
    return whole
