"""Runs the kind `validate`: a definition that must be rejected, or resolved in a given way, without a topic."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from bridge import config, ddl
from bridge.definition import Topic
from bridge.errors import BridgeError, DefinitionError, UnsupportedError
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.runtime.preflight import ingest_table
from bridge.schema import quote
from tests.cases import pipeline
from tests.cases.bench import Bench
from tests.cases.case import Part
from tests.cases.changelog import commit
from tests.cases.expectations import check_same
from tests.cases.ingesting import shape_of
from tests.cases.outcome import Mismatch, Unsupported
from tests.cases.refusal import check_refusal
from tests.cases.values import split
from tests.delta.tables import create_fed

_PROSE: Mapping[str, Any] = yaml.safe_load((Path(__file__).parent / "prose.yaml").read_text(encoding="utf-8"))
_TOPIC = "validated"


def run(bench: Bench, part: Part) -> None:
    """Loads the definition; raises Mismatch when it is accepted or rejected differently than the case expects."""
    part.take("records")
    if part.has("target_table"):
        _table_that_does_not_fit(bench, part)
        return
    part, also = _in_our_words(part)
    if part.has("publishes"):
        _refused_when_published(bench, part)
        return
    error = part.take("expected_error") or {}
    words = part.take("error_contains", error.get("message_contains"))
    if error.get("when", "ddl") != "ddl":
        raise Unsupported(f"a definition refused at {error['when']!r}")
    try:
        topic = _resolve(bench, part)
    except UnsupportedError as raised:
        if words is None or words not in str(raised):
            raise
        return
    except DefinitionError as raised:
        if words is None:
            raise Mismatch(f"refused: {raised}") from raised
        check_refusal(raised, words, also=also)
        return
    if words is not None:
        raise Mismatch(f"accepted, but should be refused: {words[:120]!r}")
    _check(topic, part)


def _resolve(bench: Bench, part: Part) -> Topic:
    """Resolves the topic of the case's pipeline file, like `bridge validate`.

    Definitions that only cannot be run yet are resolved as well, because the rules apply already.
    """
    options = pipeline.options_of(part, _TOPIC, bench.world.broker.bootstrap)
    statement = pipeline.create_table(part, options, writes=True)
    try:
        topic = pipeline.write(bench.folder, bench.name, statement).topic
    except UnsupportedError:
        topic = config.resolve_topic(ddl.parse(statement))
        if part.has("expected_error") or part.has("error_contains"):
            config.refuse_unpublishable(topic)
            raise
    if part.take("role") == "sink":
        config.refuse_unpublishable(topic)
    return topic


def _check(topic: Topic, part: Part) -> None:
    for side, spec in (("key", topic.key), ("value", topic.value)):
        wanted = part.take(f"expected_{side}_projection")
        if wanted is not None and (spec is None or list(spec.columns) != wanted):
            raise Mismatch(f"{side} projection: wanted {wanted}, got {spec and list(spec.columns)}")
    interval = part.take("partition.discovery.interval.ms")
    if interval is not None and int(interval) != topic.discovery_interval_ms:
        raise Mismatch(f"discovery interval: wanted {interval} ms, got {topic.discovery_interval_ms} ms")
    if part.take("ok") is False:
        raise Unsupported("ok: false")


def _in_our_words(part: Part) -> tuple[Part, tuple[str, ...]]:
    """Converts a definition that upstream describes in prose (`ddl`), and returns the names for its rejection."""
    prose = part.take("ddl")
    if prose is None:
        return part, ()
    entry = _PROSE.get(prose)
    if entry is None:
        raise Unsupported(f"a definition in prose: {prose!r}")
    if "unsupported" in entry:
        raise Unsupported(entry["unsupported"])
    own = {k: v for k, v in entry.items() if k != "names"}
    said = {k: part.take(k) for k in ("expected_error", "ok") if part.has(k)}
    if part.has("error_contains"):
        # Upstream's message is about its own DDL; the message here must have the names below.
        part.take("error_contains")
        said["error_contains"] = ""
    return Part({**said, **own}, part.parent), tuple(entry.get("names", ()))


def _refused_when_published(bench: Bench, part: Part) -> None:
    """Checks a table whose changes cannot be sent: it is rejected when they are read, before anything is sent."""
    part.take("error_contains")
    topic = bench.topic()
    definition = bench.define(part, topic, sections="publish: {start: version:0}\n")
    ingest_table(bench.world.spark, definition)
    commit(bench.world.spark, definition, shape_of(part), part.take("publishes"))
    try:
        publish(bench.world.spark, definition)
    except BridgeError as raised:
        check_refusal(raised, "", also=("insert-only", "update and delete"))
        check_same("sent before it was refused", [], bench.consume(topic))
        return
    raise Mismatch("updates were published as if they were inserts")


def _table_that_does_not_fit(bench: Bench, part: Part) -> None:
    """Checks a definition whose Delta table exists with other columns."""
    declared = split(part.take("source_columns"))
    source = [(name, type.removesuffix(" NOT NULL"), type) for name, type in declared]
    body = Part(
        {
            "connector": "upsert-kafka",
            "columns": [{"name": name, "type": type} for name, type, _ in source],
            "primary_key": [name for name, short, type in source if short != type],
        }
    )
    for key in ("connector", "format"):
        part.take(key)
    definition = bench.define(body, bench.topic())
    path = str(definition.delta.path).replace("`", "``")
    columns = ", ".join(f"{quote(name)} {type}" for name, type in split(part.take("target_table")))
    create_fed(bench.world.spark, path, columns)
    try:
        ingest(bench.world.spark, definition)
    except BridgeError as raised:
        part.take("error_contains")
        check_refusal(raised, "", also=(source[0][0],))
        return
    raise Mismatch("the table was taken though its columns are others")
