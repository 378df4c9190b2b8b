"""Every scenario file, three times: by the oracle, by the Spark steps without a broker, and end to end."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from bridge.columns import POSITION
from bridge.compact import net, upserts
from bridge.definition import Definition, Encoder, Engine, MergeSettings
from bridge.delta import change_feed
from bridge.delta.engine_choice import Engines
from bridge.embedded.broker import Broker
from bridge.encode import encode
from bridge.ingest_progress import IngestProgress
from bridge.offsets import Offsets
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.batch import apply_batch
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.runtime.preflight import ingest_table
from tests.cases.bench import Bench, World, rows_of
from tests.cases.changelog import commit
from tests.cases.expectations import check_same
from tests.cases.values import payload
from tests.scenarios.scenario import Model, Record, Row, Scenario, Step, load

FILES = sorted(Path(__file__).parent.glob("*.yaml"))
RECORDS = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)
Sent = tuple[Hashable, Row | None]
Raw = tuple[bytes | None, bytes | None]


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return load(request.param)


def per_key(sent: Iterable[Sent]) -> dict[Hashable, list[Row | None]]:
    """Order counts inside a key only."""
    grouped: dict[Hashable, list[Row | None]] = {}
    for key, row in sent:
        grouped.setdefault(key, []).append(row)
    return grouped


def written(model: Model, records: Iterable[Record]) -> list[Sent]:
    """Records as (key, row or None)."""
    changes = [model.decoded(record) for record in records]
    return [(change.key, model.values(change.row)) for change in changes]


def out_of(scenario: Scenario, at: int) -> list[Record]:
    return list(scenario.steps[at].out) if at + 1 >= scenario.publish["after"] else []


def test_the_oracle_agrees_with_the_file(scenario: Scenario, tmp_path: Path) -> None:
    model = Model(scenario, scenario.define(tmp_path, "in", "in"))
    for at, step in enumerate(scenario.steps):
        sent = model.apply(step)
        check_same("table", [model.row(row) for row in step.table], model.rows())
        if at + 1 == scenario.publish["after"]:
            whole = scenario.publish["start"] == "snapshot"
            sent = [(key, model.values(row)) for key, row in model.table.items()] if whole else []
        elif at + 1 < scenario.publish["after"]:
            sent = []
        assert per_key(sent) == per_key(written(model, step.out))


@pytest.mark.parametrize("engine", [Engine.AUTO, pytest.param(Engine.SPARK, marks=pytest.mark.slow)])
def test_the_spark_steps_agree_with_the_file(
    scenario: Scenario, engine: Engine, spark: SparkSession, lake: Path
) -> None:
    definition = scenario.define(lake, "in", "in")
    model = Model(scenario, definition)
    table = ingest_table(spark, definition)
    engines = Engines(MergeSettings(engine))
    offset, batch, done = 0, 0, change_feed.latest_version(table)
    for at, step in enumerate(scenario.steps):
        commit(spark, definition, model.shape, step.changes)
        size = scenario.cut or max(1, len(step.records))
        for start in range(0, len(step.records), size):
            records = step.records[start : start + size]
            end = Offsets({("in", 0): offset + len(records)})
            progress = IngestProgress(definition.name, "run", batch, end)
            apply_batch(definition, table, hand_made(spark, records, offset), progress, engines=engines)
            offset, batch = offset + len(records), batch + 1
        found = rows_of(spark.read.format("delta").load(str(definition.delta.path)), model.shape)
        check_same("table", [model.row(row) for row in step.table], found)
        latest = change_feed.latest_version(table)
        if at + 1 == scenario.publish["after"]:
            snapshot = scenario.publish["start"] == "snapshot"
            changes = (
                change_feed.snapshot(table, latest)
                if snapshot
                else change_feed.snapshot(table, latest).limit(0)
            )
        elif at + 1 > scenario.publish["after"] and latest > done:
            changes = change_feed.changes(table, done + 1, latest)
        else:
            done = latest
            assert not out_of(scenario, at)
            continue
        done = latest
        sides = net(changes, definition.primary_key, across_versions=False)
        made = encode(upserts(sides), definition.topic).orderBy(f"{POSITION}.version").select("key", "value")
        assert by_key((row["key"], row["value"]) for row in made.collect()) == by_key(wire(step.out))


@pytest.mark.parametrize("encoder", [Encoder.AUTO, pytest.param(Encoder.SPARK, marks=pytest.mark.slow)])
def test_a_broker_in_between_changes_nothing(
    scenario: Scenario,
    encoder: Encoder,
    spark: SparkSession,
    broker: Broker,
    tmp_path: Path,
    unique: Callable[[str], str],
) -> None:
    bench = Bench(World(spark, broker, tmp_path), unique(scenario.name))
    came, went = bench.topic(scenario.partitions, "-in"), bench.topic(scenario.partitions, "-out")
    into = scenario.define(bench.folder, came, "in", broker.bootstrap)
    out = scenario.define(bench.folder, went, "out", broker.bootstrap)
    out = replace(out, publish=replace(out.publish, encoder=encoder))
    model = Model(scenario, into)
    ingest_table(spark, into)
    sent: list[Raw] = []
    if scenario.publish["after"] == 0:
        publish(spark, out)
    for at, step in enumerate(scenario.steps):
        take(bench, step, came, into, model)
        found = bench.rows(into, model.shape)
        check_same("table", [model.row(row) for row in step.table], found)
        if at + 1 >= scenario.publish["after"]:
            publish(spark, out)
        sent += wire(out_of(scenario, at))
        assert by_key((w.key, w.value) for w in bench.consume(went)) == by_key(sent)
    if scenario.publish["start"] == "snapshot":
        assert verify(spark, out).comparison.equal


def take(bench: Bench, step: Step, topic: str, definition: Definition, model: Model) -> None:
    """Let a step happen: records through the topic, changes in the table."""
    if step.changes:
        commit(bench.world.spark, definition, model.shape, step.changes)
    else:
        bench.produce(topic, [{"key": key, "value": value} for key, value in step.records])
        ingest(bench.world.spark, definition)


def hand_made(spark: SparkSession, records: Iterable[Record], offset: int) -> DataFrame:
    """Records as Spark's Kafka source gives them, of partition 0."""
    now = datetime(2024, 1, 1, tzinfo=timezone.utc)
    rows = [(key, value, "in", 0, offset + n, now, 0, None) for n, (key, value) in enumerate(wire(records))]
    return spark.createDataFrame(rows, RECORDS)


def wire(records: Iterable[Record]) -> list[Raw]:
    """Documents as bytes."""
    return [(payload(key), payload(value)) for key, value in records]


def by_key(records: Iterable[Raw]) -> dict[bytes | None, list[bytes | None]]:
    """Values per key, bytes for bytes (Spark's bytearrays included)."""
    grouped: dict[bytes | None, list[bytes | None]] = {}
    for record in records:
        key, value = (None if part is None else bytes(part) for part in record)
        grouped.setdefault(key, []).append(value)
    return grouped
