"""Runs cases that change a table and check the topic: kinds `egress` and `encode`, and half of `roundtrip`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

from bridge.definition import Definition, FormatSpec
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.runtime.preflight import ingest_table
from tests.cases import ingesting, routing
from tests.cases.bench import Bench, Wire
from tests.cases.case import Part
from tests.cases.changelog import commit
from tests.cases.expectations import check_per_key, check_records, check_same, row_of
from tests.cases.ingesting import expect_refusal, feed_of, shape_of
from tests.cases.outcome import Mismatch, Unsupported
from tests.cases.values import comparable, from_case

_ADDS = ("+I", "+U")


def run(bench: Bench, part: Part) -> None:
    """Commits the changes to a table that is already being published, publishes, and compares the topic."""
    if part.has("row_topic"):
        routing.run(bench, part)
        return
    error = part.take("expected_error")
    if error is None and part.has("error_contains"):
        error = {"when": "write", "message_contains": part.take("error_contains")}
    if error:
        expect_refusal(lambda: _send(bench, part), error)
    else:
        _send(bench, part).check_topic(part)


def _send(bench: Bench, part: Part) -> _Sender:
    topic = bench.topic(part.take("topic_partitions") or 1)
    sender = _Sender(bench, part, bench.define(part, topic, writes=True), topic)
    for step in part.steps() or [part]:
        sender.change(step)
    return sender


def roundtrip(bench: Bench, part: Part) -> None:
    """Ingests records into a table and publishes it again; changes (if any) are converted to records first."""
    if part.has("changes"):
        topic = bench.topic(part.take("topic_partitions") or 1, "-out")
        sender = _Sender(bench, part, bench.define(part, topic, name="out", writes=True), topic)
        sender.change(part)
        check_records(part.take("records"), bench.consume(topic), as_json=False)
        sender.check_topic(part)
        ingesting.run(Bench(bench.world, f"{bench.label} back"), part)
        return
    ingesting.run(bench, part)
    topic = bench.topic(part.take("topic_partitions") or 1, "-out")
    definition = bench.define(part, topic, name="out", writes=True, sections="publish: {start: version:0}\n")
    publish(bench.world.spark, definition)
    _Sender(bench, part, definition, topic, follow=False).check_topic(part)


class _Sender:
    def __init__(
        self, bench: Bench, part: Part, definition: Definition, topic: str, *, follow: bool = True
    ) -> None:
        self.bench, self.definition, self.topic = bench, definition, topic
        self.shape = shape_of(part)
        self.key = list(definition.primary_key)
        self.seen = 0
        if follow:
            ingest_table(bench.world.spark, definition)
            self.publish()

    def publish(self) -> None:
        publish(self.bench.world.spark, self.definition)

    def change(self, step: Part) -> None:
        """Applies a step's changes; a step that expects nothing flushed is not published yet."""
        commit(self.bench.world.spark, self.definition, self.shape, step.take("changes") or [])
        flushed = step.own("expected_flushed")
        if flushed == []:
            # Changes of the table wait for the publish like the rows of a buffer wait for the checkpoint.
            check_same("flushed too early", [], self.bench.consume(self.topic)[self.seen :])
            return
        step.own("checkpoint")
        self.publish()
        since, self.seen = self.seen, len(self.bench.consume(self.topic))
        if flushed is not None:
            received = self._received(since)
            effects = [effect for of_key in received.values() for effect in of_key]
            check_same("flushed", [self._effect(row) for row in flushed], effects)
        per_key = step.own("expected_flushed_per_key")
        if per_key is not None:
            wanted = {k: [self._effect(row) for row in rows] for k, rows in per_key.items()}
            check_per_key("flushed", wanted, self._received(since))

    def check_topic(self, part: Part) -> None:
        """Checks the topic against every expectation of the case about records."""
        found = self.bench.consume(self.topic)
        as_json = str(part.take("compare") or "") == "as JSON"
        if part.has("expected_records"):
            check_records(part.take("expected_records"), found, as_json=as_json)
        count = part.take("expected_record_count")
        if count is not None and count != len(found):
            raise Mismatch(f"records on the topic: wanted {count}, there are {len(found)}")
        per_key = part.take("expected_raw_records_per_key")
        if per_key is not None:
            wanted = {k: [self._effect(self._whole(k, v)) for v in values] for k, values in per_key.items()}
            check_per_key("records", wanted, self._received())
        keys = part.take("keys_hex")
        if keys is not None:
            check_same("keys", keys, [w.key.hex() if w.key is not None else None for w in found])
        if part.has("expected_read_back"):
            self._check_read_back(part)

    def _check_read_back(self, part: Part) -> None:
        bench = Bench(self.bench.world, f"{self.bench.label} read back")
        definition = bench.define(part, self.topic, cut=1)
        ingest(bench.world.spark, definition)
        wanted = [(row[0], *row_of(row[1:], self.shape)) for row in part.take("expected_read_back")]
        check_same("read back", wanted, chain.from_iterable(feed_of(bench, definition, self.shape)))

    def _effect(self, change: Sequence[Any]) -> tuple[Any, ...] | None:
        """Returns the value of a change in an upsert topic: its row, or None for a tombstone."""
        return row_of(change[1:], self.shape) if change[0] in _ADDS else None

    def _whole(self, key: str, value: Any) -> list[Any]:
        """Returns [kind, values...] for a value that a case shortens to its only non-key column."""
        if value is None:
            return ["-D"]
        if isinstance(value, list):
            return ["+U", *value]
        if isinstance(value, dict):
            return ["+U", *[value.get(name) for name, _ in self.shape]]
        if len(self.key) != 1 or len(self.shape) != 2:
            raise Unsupported("a shortened record of more than one column")
        return ["+U", *[key if name == self.key[0] else value for name, _ in self.shape]]

    def _received(self, since: int = 0) -> dict[str, list[Any]]:
        """Reads the topic per key (values of the key joined by ','), decoded as plain JSON.

        `since` skips that many records; a topic with several partitions has no such order.
        """
        found: dict[str, list[Any]] = {}
        for wire in self.bench.consume(self.topic)[since:]:
            fields = self._fields(wire)
            key = ",".join(str(fields[name]) for name in self.key)
            row = None
            if wire.value is not None:
                row = tuple(comparable(from_case(fields.get(n), t), t) for n, t in self.shape)
            found.setdefault(key, []).append(row)
        return found

    def _fields(self, wire: Wire) -> dict[str, Any]:
        topic = self.definition.topic
        documents = [(topic.value, wire.value), (topic.key, wire.key)]
        fields: dict[str, Any] = {}
        for spec, text in documents:
            if spec is not None and text is not None:
                fields |= _document(spec, text)
        return fields


def _document(spec: FormatSpec, text: bytes) -> dict[str, Any]:
    if spec.name != "json":
        raise Unsupported(f"looking into {spec.name} records")
    document = json.loads(text)
    return {column: document.get(name) for column, name in zip(spec.columns, spec.row.names, strict=True)}
