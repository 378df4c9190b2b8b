"""Runs cases that send records to a topic and check the table: kinds `ingest` and `decode`."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from delta.tables import DeltaTable

from bridge.definition import Definition
from bridge.errors import BadRecordError, BridgeError, DefinitionError, UnsupportedError
from bridge.metrics import Summary
from bridge.pipelines.ingest.run import ingest
from tests.cases import schema_changes, transactions
from tests.cases.bench import Bench
from tests.cases.case import Part
from tests.cases.changelog import Commits, Shape, read_feed
from tests.cases.expectations import check_changelog, check_per_key, check_table, row_of
from tests.cases.outcome import Mismatch, Unsupported
from tests.cases.pipeline import columns_of
from tests.cases.queries import check_as_of, check_query
from tests.cases.refusal import check_refusal
from tests.cases.values import types

_ELSEWHERE: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "elsewhere.yaml").read_text(encoding="utf-8")
)
_FEW = 40
_FOLLOWS = "schema changes in the DDL"
_BASE_IS_THERE = "ingest: {base: existing}\n"


def shape_of(part: Part) -> Shape:
    """Returns names and types of the case's columns, in its order."""
    columns = columns_of(part)
    parsed = types(columns)
    return [(name, parsed[name]) for name, _ in columns]


def run(bench: Bench, part: Part) -> None:
    """Produces, ingests and compares, step by step. Raises Mismatch at the first difference."""
    part = from_elsewhere(part)
    bench.learn_schemas(part)
    error = part.take("expected_error")
    steps = part.steps() or [part]
    topic = bench.topic(part.take("topic_partitions") or part.take("partitions") or 1)
    if part.has("produce"):
        transactions.produce(bench, topic, part.take("produce"))
    cut = _cut(part)
    bench.produce(topic, part.take("records_before_start") or [])
    start = str({**part.merged("options"), **part.data}.get("scan.startup.mode", "earliest-offset"))
    sections = "" if start == "earliest-offset" else _BASE_IS_THERE
    if error and error.get("when") == "ddl":
        part.take("records")
        expect_refusal(lambda: bench.define(part, topic, cut=cut), error)
        return
    definition = bench.define(part, topic, cut=cut, sections=sections + _ingest_section(part))
    _Ingest(bench, part, topic, definition).through(steps, error)


def from_elsewhere(part: Part) -> Part:
    """Completes a part whose records are in an upstream file: one key that is true selects the entry of elsewhere.yaml
    with them."""
    told = [key for key in part.data if key in _ELSEWHERE and part.data[key] is True]
    if not told:
        return part
    entry = _ELSEWHERE[told[0]]
    for key in (*told, *entry):
        part.own(key)
    return Part(entry, part)


class _Ingest:
    def __init__(self, bench: Bench, part: Part, topic: str, definition: Definition) -> None:
        self.bench, self.part, self.topic, self.definition = bench, part, topic, definition
        self.others = [
            bench.define(Part(more, part), topic, name=f"case{n}", sections=_ingest_section(part))
            for n, more in enumerate(part.own("more_pipelines") or [])
        ]
        self.shape = self._shape()
        self.summary = Summary("", "ingest")

    def _shape(self) -> Shape:
        """The columns of the DDL, and those that the table has beside them."""
        added = [(c["name"], c["type"]) for c in self.part.take("added_columns") or []]
        return [*shape_of(self.part), *(types(added) if added else {}).items()]

    def through(self, steps: list[Part], error: dict[str, Any] | None) -> None:
        if self.part.take("records_before_start") and self.definition.topic.startup.mode == "latest-offset":
            self._ingest()
        for step in steps:
            if _FOLLOWS in str(self.part.take("connector")):
                self._follow(step)
            failing = step.own("expected_error") if step is not self.part else error
            if failing:
                expect_refusal(lambda step=step: self._feed(step), failing)
                continue
            self._feed(step)
            self._check(step)
        self._check_changelog()
        check_query(self.bench, self.definition, self.part, self.topic)
        check_as_of(self.bench, self.definition, self.part, self.shape)
        if self.part.take("expected_log") and not self.summary.bad_records:
            raise Mismatch("a skipped document must be counted; bad_records is 0")

    def _follow(self, step: Part) -> None:
        """Updates the DDL to the columns that this step expects, like a user before the step."""
        columns = schema_changes.after(step, columns_of(self.part))
        self.part.data["columns"] = [{"name": name, "type": type} for name, type in columns]
        self.shape = self._shape()
        self.definition = self.bench.define(self.part, self.topic, follows=True)

    def _feed(self, step: Part) -> None:
        one_by_one = self.part.has("expected_changelog") and _partitions(step) > 1
        records = [*(step.take("records") or []), *(step.take("records_after_start") or [])]
        for batch in [[r] for r in records] if one_by_one else [records]:
            self.bench.produce(self.topic, batch)
            if one_by_one:
                self._ingest()
        forgotten = self.part.take("before_read") or {}
        if forgotten.keys() - {"deleteRecords"}:
            raise Unsupported(f"before_read {sorted(forgotten)}")
        if forgotten:
            self.bench.delete_records(self.topic, forgotten["deleteRecords"])
        self._ingest()
        more = step.take("then_append")
        if more is not None:
            names = [name for name, _ in self.shape]
            values = [json.dumps(dict(zip(names, row, strict=True))) for row in more]
            self.bench.produce(self.topic, [{"key": None, "value": value} for value in values])
            self._ingest()

    def _ingest(self) -> None:
        done = ingest(self.bench.world.spark, self.definition)
        for definition in self.others:
            ingest(self.bench.world.spark, definition)
        bad = self.summary.bad_records + done.bad_records
        self.summary = Summary("", "ingest", bad_records=bad)

    def _check(self, step: Part) -> None:
        found = self.bench.rows(self.definition, self.shape)
        check_table(step, found, self.shape, self.definition.primary_key, self.topic)

    def _check_changelog(self) -> None:
        if not (self.part.has("expected_changelog") or self.part.has("expected_changelog_per_key")):
            return
        found = feed_of(self.bench, self.definition, self.shape)
        if self.part.has("expected_changelog"):
            check_changelog(self.part.take("expected_changelog"), found, self.shape, self.topic)
        per_key = self.part.take("expected_changelog_per_key")
        if per_key is not None:
            at = [name for name, _ in self.shape].index(self.definition.primary_key[0])
            wanted = {k: [(r[0], *row_of(r[1:], self.shape)) for r in rows] for k, rows in per_key.items()}
            grouped: dict[str, list[Any]] = {}
            for change in chain.from_iterable(found):
                grouped.setdefault(str(change[at + 1]), []).append(change)
            check_per_key("changelog", wanted, grouped)


def feed_of(bench: Bench, definition: Definition, shape: Shape) -> Commits:
    """Reads the table's change data feed after its creation; empty without commits."""
    spark = bench.world.spark
    history = DeltaTable.forPath(spark, str(definition.delta.path)).history().select("version").collect()
    return read_feed(spark, definition, shape, 1) if max(row[0] for row in history) >= 1 else []


def expect_refusal(step: Any, error: dict[str, Any]) -> None:
    """Runs `step`, which must raise at the moment and for the reason of `error`."""
    when, words = error.get("when") or "read", error.get("message_contains") or ""
    try:
        step()
    except BridgeError as raised:
        _check_moment(raised, when)
        if when == "ddl" or not isinstance(raised, BadRecordError):
            check_refusal(raised, words)
        at = error.get("at_record")
        if at is not None and f"offset {at}" not in str(raised):
            raise Mismatch(f"wanted the record at {at} to be refused, said {str(raised)[:200]!r}") from raised
        return
    raise Mismatch(f"wanted to be refused ({when}): {words[:120]!r}; it was accepted")


def _check_moment(raised: BridgeError, when: str) -> None:
    if when == "ddl" and not isinstance(raised, DefinitionError):
        raise Mismatch(f"wanted to be refused as a definition; failed later: {raised}") from raised
    if when != "ddl" and isinstance(raised, UnsupportedError):
        raise raised
    if when == "decode" and not isinstance(raised, BadRecordError):
        raise Mismatch(f"wanted a bad record; got {type(raised).__name__}: {raised}") from raised


def _ingest_section(part: Part) -> str:
    section = part.take("ingest")
    return "" if section is None else f"ingest: {json.dumps(section)}\n"


def _cut(part: Part) -> int | None:
    """Returns one record per batch where the case checks the changelog: the change data feed then has every change."""
    if {"expected_changelog", "expected_changelog_per_key", "expected_as_of"} & part.data.keys():
        records = part.take("records") or []
        if len(records) > _FEW:
            raise Unsupported(f"a changelog of {len(records)} records (each would be a batch)")
        return 1
    return None


def _partitions(step: Part) -> int:
    """Returns the number of partitions of the records; records without one may go to any."""
    if (step.take("topic_partitions") or 1) == 1:
        return 1
    partitions = [r.get("partition") for r in step.take("records") or []]
    return len(partitions) if None in partitions else len(set(partitions))
