"""Runs cases about rows that name their topic."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient

from bridge.pipelines.publish.run import publish
from bridge.pipelines.runtime.preflight import ingest_table
from tests.cases.bench import Bench
from tests.cases.case import Part
from tests.cases.changelog import commit
from tests.cases.expectations import check_same
from tests.cases.ingesting import expect_refusal, shape_of


def run(bench: Bench, part: Part) -> None:
    """Publishes a row that names `row_topic`; it must arrive in `expected_topic`, or be rejected.

    Topics have the names of the case, which its messages quote, and are shared by its vectors.
    """
    names, pattern = part.take("topics") or [], part.take("topic_pattern")
    row_topic, expected = part.take("row_topic"), part.take("expected_topic")
    there = sorted({*names, *filter(None, (expected,))} or {"topic"})
    for name in there:
        _make(bench, name)
    options = {"topic-pattern": pattern} if pattern else {"topic": ";".join(names)}
    definition = bench.define(
        Part({"options": options}, part), "", writes=True, sections="publish: {start: version:0}\n"
    )
    before = {name: len(bench.consume(name)) for name in there}
    ingest_table(bench.world.spark, definition)
    commit(bench.world.spark, definition, shape_of(part), [["+I", "v", row_topic]])
    words = part.take("error_contains")
    if words is not None:
        expect_refusal(lambda: publish(bench.world.spark, definition), {"message_contains": words})
    else:
        publish(bench.world.spark, definition)
    sent = {name: len(bench.consume(name)) - before[name] for name in there}
    check_same("records by topic", {name: int(name == expected) for name in there}.items(), sent.items())


def _make(bench: Bench, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": bench.world.broker.bootstrap})
    if name not in admin.list_topics(timeout=10).topics:
        bench.world.broker.create_topic(name)
