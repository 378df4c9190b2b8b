"""The scripts as data (*.yaml beside this module), and their texts for each system."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.flink_scripts.sources import NEXMARK_VIEWS, SOURCES, Printed, Source, options, placed

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
    printed: str = ""
    """The CREATE TABLE of a manual."""
    script: str = ""
    """The name of its script, where other scripts have a sink of this name."""

    def ddl(self, topic: str, bootstrap: str) -> str:
        if self.printed:
            return placed(self.printed, topic, bootstrap, {})
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

    @property
    def is_by_key(self) -> bool:
        """Whether the last record of a key is its row."""
        return bool(self.key) and self.format != "debezium-json"


@dataclass(frozen=True)
class Case:
    """One script: what it inserts, from views of its own and the sources that its text names."""

    name: str
    family: str
    inserts: tuple[Insert, ...]
    views: tuple[str, ...] = ()
    printed: tuple[Printed, ...] = ()
    is_set: bool = False
    """Whether its INSERTs are one STATEMENT SET."""
    settings: Mapping[str, str] = field(default_factory=dict)
    differs: str = ""
    """Why its result is another one than Flink's, or why Flink refuses it, where that is known."""
    refused: str = ""
    """Why it is refused, where that is known."""

    @property
    def sources(self) -> dict[str, Source | Printed]:
        """The tables that the text names, or that its views of Nexmark need."""
        named = [*self._words.intersection(SOURCES), *(["nexmark"] if self.nexmark_views else [])]
        return {name: SOURCES[name] for name in SOURCES if name in named} | {t.name: t for t in self.printed}

    @property
    def nexmark_views(self) -> list[str]:
        return [n for n in NEXMARK_VIEWS if n in self._words and self.family == "nexmark"]

    @property
    def statements(self) -> list[str]:
        """What inserts."""
        every = [insert.statement for insert in self.inserts]
        return [f"EXECUTE STATEMENT SET BEGIN {'; '.join(every)}; END"] if self.is_set else every

    @property
    def _words(self) -> set[str]:
        text = " ".join([*self.views, *(insert.query for insert in self.inserts)])
        return set(re.findall(r"\w+", text))


def load_cases() -> list[Case]:
    """All cases in the order of their files."""
    return [
        _case(name, file.stem, written)
        for file in sorted(_FOLDER.glob("*.yaml"))
        for name, written in yaml.safe_load(file.read_text()).items()
    ]


def sink_topic(prefix: str, insert: Insert) -> str:
    """The topic of a sink for one system."""
    return "-".join([prefix, *([insert.script] if insert.script else []), insert.sink])


def flink_statements(case: Case, prefix: str, bootstrap: str, sources: Mapping[str, str]) -> list[str]:
    """The statements for Flink; `sources` are the topics by their names among the data."""
    statements = [f"SCRIPT {case.name}", *(f"SET '{k}' = '{v}'" for k, v in case.settings.items())]
    for table in case.sources.values():
        more = _BOUNDED | (_EACH_EVENT if table.has_watermark else {})
        statements.append(table.ddl(sources[table.topic], bootstrap, more))
    statements += [NEXMARK_VIEWS[name] for name in case.nexmark_views]
    statements += [*case.views, *(i.ddl(sink_topic(prefix, i), bootstrap) for i in case.inserts)]
    return [*statements, *case.statements]


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
    tables = {name: table for case in cases for name, table in case.sources.items()}
    for table in tables.values():
        lines.append(table.ddl(sources[table.topic], bootstrap, _BOUNDED if is_last else {}))
    lines += [NEXMARK_VIEWS[n] for n in NEXMARK_VIEWS if any(n in case.nexmark_views for case in cases)]
    lines += [view for case in cases for view in case.views]
    sinks = [insert for case in cases for insert in case.inserts]
    lines += [insert.ddl(sink_topic(prefix, insert), bootstrap) for insert in sinks]
    return ";\n".join([*lines, *(text for case in cases for text in case.statements)]) + ";\n"


def _case(name: str, family: str, written: Mapping[str, Any]) -> Case:
    return Case(
        name,
        family,
        tuple(_inserts(name, written)),
        tuple(written.get("views", ())),
        is_set=written.get("is_set", False),
        settings=written.get("settings", {}),
        differs=written.get("differs", ""),
        refused=written.get("refused", ""),
    )


def _inserts(name: str, written: Mapping[str, Any]) -> Iterator[Insert]:
    for sink, one in (written.get("inserts") or {name: written}).items():
        query = " ".join(one["query"].split())
        more = {name: one[name] for name in ("key", "targets", "format", "connector") if name in one}
        yield Insert(sink, one["sink"], query, **more)
