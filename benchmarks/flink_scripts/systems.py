"""Runs scripts on Flink and on the bridge, and compares what their sinks got."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.flink import Flink
from benchmarks.flink_scripts.cases import Case, bridge_script, flink_statements, sink_topic
from benchmarks.flink_scripts.data import Topics
from benchmarks.flink_scripts.folds import difference, folded
from bridge.embedded.broker import Broker
from bridge.errors import BridgeError
from bridge.metrics import BatchReport
from bridge.pipelines.scripts.run import run_script
from bridge.sql import load_script

Say = Callable[[str], None]
_RUNNER = Path(__file__).parent.with_name("FlinkScripts.java")
_FLINK = {
    "parallelism.default": "1",
    "table.local-time-zone": "UTC",
    "table.exec.source.idle-timeout": "0",
    "pipeline.object-reuse": "true",
}
_SLOW_SECONDS = 10.0
_LINE = re.compile(r"SCRIPT (\S+) (?:FAILED (.*)|([0-9.]+))")


@dataclass(frozen=True)
class Outcome:
    """What one script came to."""

    case: Case
    verdict: str
    """`equal`, `different`, `refused` (by the bridge), `failed` (in the bridge), `not in Flink` (which failed)."""
    detail: str = ""
    rows: int = 0
    """The rows that Flink's sinks came to."""

    @property
    def is_expected(self) -> bool:
        return (
            self.verdict == "equal"
            or (self.verdict in ("different", "not in Flink") and bool(self.case.differs))
            or (self.verdict == "refused" and bool(self.case.refused))
        )


def refusal(case: Case) -> str:
    """Why the bridge refuses a script; empty if it accepts it."""
    topics = {table.topic: table.topic for table in case.sources.values()}
    try:
        load_script(
            "script.sql", text=bridge_script([case], "b", "broker:9092", topics, is_last=True), environ={}
        )
    except BridgeError as error:
        return " ".join(str(error).split())
    return ""


def compared(
    flink: Flink,
    spark: SparkSession,
    broker: Broker,
    folder: Path,
    cases: Sequence[Case],
    topics: Topics,
    say: Say,
) -> list[Outcome]:
    """Run all scripts on both systems over the same topics, the bridge in two runs. Folders are made in `folder`, and
    topics are named after it."""
    name = folder.name
    sources = {source: f"{name}-in-{source}" for source in topics.parts[0]}
    refused = {case.name: why for case in cases if (why := refusal(case))}
    asked = [case for case in cases if case.name not in refused]
    _create_sinks(broker, asked, f"{name}-f")
    topics.send(broker, f"{name}-in", 0)
    bridge = _Bridge(spark, broker, folder, sources, f"{name}-b", say)
    groups = [
        part for found in _groups(asked) for part in bridge.run(_Group(found, "together"), is_last=False)
    ]
    topics.send(broker, f"{name}-in", 1)
    done = [part for group in groups for part in bridge.run(group, is_last=True)]
    say("Flink runs")
    failures = _flink(flink, broker, folder / "flink", asked, sources, f"{name}-f")
    prefixes = {case.name: bridge.prefix(group) for group in done for case in group.cases}
    return [
        _refused(case, refused, bridge.failed, failures)
        or _judged(case, broker, f"{name}-f", prefixes[case.name])
        for case in cases
    ]


@dataclass(frozen=True)
class _Group:
    """Scripts that are one script of the bridge, which reads their topics once."""

    cases: Sequence[Case]
    kind: str


def _groups(cases: Sequence[Case]) -> list[list[Case]]:
    """Those of a family, unless one has settings or tables that another one may name, too."""
    by_family = groupby(cases, key=lambda case: (case.family, tuple(case.settings.items()), _own_names(case)))
    return [list(found) for _, found in by_family]


def _own_names(case: Case) -> str:
    has_printed = case.printed or any(insert.printed for insert in case.inserts)
    return case.name if has_printed else ""


def _create_sinks(broker: Broker, cases: Sequence[Case], prefix: str) -> None:
    """Topics with one partition, so that all records have an order."""
    for insert in (insert for case in cases for insert in case.inserts):
        broker.create_topic(sink_topic(prefix, insert), partitions=1)


@dataclass
class _Bridge:
    """Runs groups of scripts on the bridge; where one fails, each of its scripts is run for itself, anew."""

    spark: SparkSession
    broker: Broker
    folder: Path
    sources: Mapping[str, str]
    name: str
    say: Say
    failed: dict[str, str] = field(default_factory=dict)
    """Why scripts failed, by name."""

    def prefix(self, group: _Group) -> str:
        return f"{self.name}-{group.kind}"

    def run(self, group: _Group, *, is_last: bool) -> list[_Group]:
        """Run a group once; returns it, or the groups into which it fell."""
        names = [case.name for case in group.cases]
        self.say(f"the bridge runs {', '.join(names)}")
        place = self.folder / f"{group.kind}-{names[0]}"
        if not place.exists():
            place.mkdir()
            _create_sinks(self.broker, group.cases, self.prefix(group))
        text = bridge_script(
            group.cases, self.prefix(group), self.broker.bootstrap, self.sources, is_last=is_last
        )
        file = place / "script.sql"
        file.write_text(text)
        started = time.monotonic()
        try:
            run_script(self.spark, load_script(file), listener=self._heard, out=lambda line, _: None)
            self.say(f"in {time.monotonic() - started:.0f} s")
        except Exception as error:  # whatever it is, it is a row of the page
            why = f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"
            self.say(why)
            if len(names) == 1:
                self.failed[names[0]] = why
                return []
            alone = [_Group([case], "alone") for case in group.cases]
            return [part for one in alone for part in self.run(one, is_last=is_last)]
        return [group]

    def _heard(self, report: BatchReport) -> None:
        if report.seconds > _SLOW_SECONDS:
            self.say(f"{report.verb} {report.pipeline}: {report.seconds:.0f} s, {report.engine}")


def _flink(
    flink: Flink, broker: Broker, place: Path, cases: Sequence[Case], sources: Mapping[str, str], prefix: str
) -> dict[str, str]:
    """Run the scripts in one JVM; returns the failures by name."""
    statements = [s for case in cases for s in flink_statements(case, prefix, broker.bootstrap, sources)]
    command = flink.command(place, statements, _FLINK, runner=_RUNNER)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = {m[1]: m[2] for line in done.stdout.splitlines() if (m := _LINE.fullmatch(line))}
    missing = f"Flink ended: {done.stderr[-600:]}"
    return {case.name: found.get(case.name, missing) for case in cases if found.get(case.name, missing)}


def _refused(
    case: Case, refused: Mapping[str, str], failed: Mapping[str, str], failures: Mapping[str, str]
) -> Outcome | None:
    """What came to nothing that could be compared; None for all others."""
    if case.name in refused:
        return Outcome(case, "refused", refused[case.name])
    if case.name in failures:
        return Outcome(case, "not in Flink", failures[case.name][:300])
    return Outcome(case, "failed", failed[case.name]) if case.name in failed else None


def _judged(case: Case, broker: Broker, flink: str, bridge: str) -> Outcome:
    found = Outcome(case, "equal")
    for insert in case.inserts:
        one, other = (
            folded(
                broker.bootstrap,
                sink_topic(prefix, insert),
                by_key=insert.is_by_key,
                is_changelog=insert.format == "debezium-json",
                is_binary=insert.format == "avro",
            )
            for prefix in (flink, bridge)
        )
        found = replace(found, rows=found.rows + one.total())
        differs = difference(one, other)
        if differs:
            found = replace(
                found, verdict="different", detail=f"{found.detail} {insert.sink}: {differs}".strip()
            )
    return found
