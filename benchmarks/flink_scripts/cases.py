"""The scripts as data (*.yaml beside this module), and their texts for each system."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.flink_scripts.sources import NEXMARK_VIEWS, SOURCES, options

__all__ = ["Case", "Insert", "bridge_script", "flink_statements", "load_cases", "sink_topic"]

_FOLDER = Path(__file__).parent
_BOUNDED = {"scan.bounded.mode": "latest-offset"}
_EACH_EVENT = {"scan.watermark.emit.strategy": "on-event"}
"""Flink sends watermarks each 200 ms by default, which a small topic does not last."""


@dataclass(frozen=True)
class Insert:
    """One sink and its query. Without a `key` the sink takes rows only; `format` is that of its values."""

    sink: str
    columns: str
    query: str
    key: str = ""
    targets: str = ""
    format: str = "json"
    connector: str = ""
    """One that is no topic, for a query that is refused for it."""

    def ddl(self, topic: str, bootstrap: str) -> str:
        key = f", PRIMARY KEY ({self.key}) NOT ENFORCED" if self.key else ""
        if self.connector:
            return f"CREATE TABLE {self.sink} ({self.columns}) WITH ('connector' = '{self.connector}')"
        connector = "upsert-kafka" if self.key and self.format == "json" else "kafka"
        given = {"connector": connector, "topic": topic, "properties.bootstrap.servers": bootstrap}
        if connector == "kafka":
            given["format"] = self.format
        else:
            given |= {"key.format": "json", "value.format": "json"}
        return f"CREATE TABLE {self.sink} ({self.columns}{key}) WITH ({options(given)})"

    @property
    def statement(self) -> str:
        return f"INSERT INTO {self.sink} {self.targets} {self.query}"


@dataclass(frozen=True)
class Case:
    """One script: what it inserts, from views of its own and the sources that its text names."""

    name: str
    family: str
    inserts: tuple[Insert, ...]
    views: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    differs: str = ""
    """Why its result is another one than Flink's, where that is known."""
    refused: str = ""
    """Why it is refused, where that is known."""

    @property
    def tables(self) -> list[str]:
        """The sources and the views of Nexmark that the text names."""
        text = " ".join([*self.views, *(insert.query for insert in self.inserts)])
        words = set(re.findall(r"\w+", text))
        named = [name for name in NEXMARK_VIEWS if name in words and self.family == "nexmark"]
        return [*(n for n in SOURCES if n in words or (n == "nexmark" and named)), *named]


def load_cases(names: Iterable[str] = ()) -> list[Case]:
    """All cases, or those of these families, in the order of their files."""
    wanted = set(names)
    files = sorted(_FOLDER.glob("*.yaml"))
    return [
        _case(name, file.stem, written)
        for file in files
        if not wanted or file.stem in wanted
        for name, written in yaml.safe_load(file.read_text()).items()
    ]


def sink_topic(prefix: str, sink: str) -> str:
    """The topic of a sink for one system."""
    return f"{prefix}-{sink}"


def flink_statements(case: Case, prefix: str, bootstrap: str, sources: Mapping[str, str]) -> list[str]:
    """The statements for Flink; `sources` are the topics of the tables by their names."""
    statements = [f"SCRIPT {case.name}", *(f"SET '{k}' = '{v}'" for k, v in case.settings.items())]
    for name in case.tables:
        if name in SOURCES:
            more = _BOUNDED | (_EACH_EVENT if SOURCES[name].has_watermark else {})
            statements.append(SOURCES[name].ddl(sources[name], bootstrap, more))
        else:
            statements.append(NEXMARK_VIEWS[name])
    statements += [*case.views, *(i.ddl(sink_topic(prefix, i.sink), bootstrap) for i in case.inserts)]
    return [*statements, *(insert.statement for insert in case.inserts)]


def bridge_script(
    cases: Sequence[Case],
    prefix: str,
    bootstrap: str,
    sources: Mapping[str, str],
    *,
    is_last: bool,
    state: str = "state",
) -> str:
    """One script of the bridge for all of these cases; the last run reads the topics to their ends and closes all
    windows, as Flink does."""
    settings: dict[str, str] = {"bridge.state": state}
    for case in cases:
        settings |= case.settings
    lines = [f"SET '{key}' = '{value}'" for key, value in settings.items()]
    for name in dict.fromkeys(name for case in cases for name in case.tables):
        if name in SOURCES:
            lines.append(SOURCES[name].ddl(sources[name], bootstrap, _BOUNDED if is_last else {}))
    lines += [NEXMARK_VIEWS[n] for n in NEXMARK_VIEWS if any(n in case.tables for case in cases)]
    lines += [view for case in cases for view in case.views]
    inserts = [insert for case in cases for insert in case.inserts]
    lines += [insert.ddl(sink_topic(prefix, insert.sink), bootstrap) for insert in inserts]
    return ";\n".join([*lines, *(insert.statement for insert in inserts)]) + ";\n"


def _case(name: str, family: str, written: Mapping[str, Any]) -> Case:
    return Case(
        name,
        family,
        tuple(_inserts(name, written)),
        tuple(written.get("views", ())),
        written.get("settings", {}),
        written.get("differs", ""),
        written.get("refused", ""),
    )


def _inserts(name: str, written: Mapping[str, Any]) -> Iterator[Insert]:
    for sink, one in (written.get("inserts") or {name: written}).items():
        query = " ".join(one["query"].split())
        more = {name: one[name] for name in ("key", "targets", "format", "connector") if name in one}
        yield Insert(sink, one["sink"], query, **more)
