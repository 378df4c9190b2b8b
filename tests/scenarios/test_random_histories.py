"""Random histories over few keys, cut anywhere, sent again from anywhere: the fold is the oracle's.

BRIDGE_SEED picks the histories; the seed is part of every failure.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.definition import Engine, MergeSettings
from bridge.delta.engine_choice import Engines
from bridge.embedded.broker import Broker
from bridge.ingest_progress import IngestProgress
from bridge.offsets import Offsets
from bridge.pipelines.ingest.batch import apply_batch
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.runtime.preflight import ingest_table
from tests.cases.bench import Bench, World, rows_of
from tests.cases.expectations import check_same
from tests.scenarios.scenario import Model, Record, Scenario, Step
from tests.scenarios.test_scenarios import hand_made

COLUMNS = "a INT, b STRING, v STRING, PRIMARY KEY (b, a) NOT ENFORCED"
SEED = int(os.environ.get("BRIDGE_SEED", "20240229"))


def history(chance: random.Random, length: int) -> list[Record]:
    """Upserts and tombstones over six keys; few values, so that many updates change nothing."""
    records: list[Record] = []
    for _ in range(length):
        a, b = chance.randint(0, 2), chance.choice(['"x"', "null"])
        row = f'{{"a":{a},"b":{b},"v":"{chance.choice("pqr")}"}}'
        records.append((f'{{"b":{b},"a":{a}}}', None if chance.random() < 0.3 else row))
    return records


def cuts(chance: random.Random, records: list[Record]) -> list[list[Record]]:
    """The history in batches; a batch may begin with what the last ones ended with, as after a retry."""
    batches, at = [], 0
    while at < len(records):
        again = chance.choice([0, 0, chance.randint(0, at)])
        end = at + chance.randint(4, 12)
        batches.append(records[at - again : end])
        at = end
    return batches


@pytest.mark.parametrize("round", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", [Engine.DRIVER, Engine.SPARK])
def test_batches_fold_to_the_oracles_table(
    round: int, engine: Engine, spark: SparkSession, lake: Path
) -> None:
    chance = random.Random(SEED + round)
    scenario = Scenario("random", "", COLUMNS, steps=())
    definition = scenario.define(lake, "in", "in")
    model, table = Model(scenario, definition), ingest_table(spark, definition)
    engines, offset = Engines(MergeSettings(engine)), 0
    for number, batch in enumerate(cuts(chance, history(chance, 60 if round else 20))):
        model.apply(Step(table=(), records=batch))
        end = Offsets({("in", 0): offset + len(batch)})
        progress = IngestProgress(definition.name, "run", number, end)
        apply_batch(definition, table, hand_made(spark, batch, offset), progress, engines=engines)
        offset += len(batch)
        found = rows_of(spark.read.format("delta").load(str(definition.delta.path)), model.shape)
        check_same(f"table after batch {number}, seed {SEED + round}", model.rows(), found)


def test_a_history_folds_to_the_same_rows_on_both_ends(
    spark: SparkSession, broker: Broker, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    chance = random.Random(SEED)
    bench = Bench(World(spark, broker, tmp_path), unique("random"))
    came, went = bench.topic(3, "-in"), bench.topic(3, "-out")
    scenario = Scenario("random", "", COLUMNS, steps=(), cut=chance.randint(5, 40))
    into = scenario.define(bench.folder, came, "in", broker.bootstrap)
    out = scenario.define(bench.folder, went, "out", broker.bootstrap)
    model = Model(scenario, into)
    records = history(chance, 120)
    for number in range(3):
        batch = records[number * 40 : number * 40 + 40 + chance.randint(0, 10)]
        model.apply(Step(table=(), records=batch))
        bench.produce(came, [{"key": key, "value": value} for key, value in batch])
        ingest(spark, into)
        check_same(f"table, seed {SEED}", model.rows(), bench.rows(into, model.shape))
        publish(spark, out)
        shutil.rmtree(bench.folder / "checkpoints" / "in", ignore_errors=True)
    back = Model(scenario, out)
    wires = [(w.key or b"", w.value) for w in bench.consume(went)]
    sent = [(key.decode(), None if value is None else value.decode()) for key, value in wires]
    back.apply(Step(table=(), records=sent))
    check_same(f"fold of the out topic, seed {SEED}", model.rows(), back.rows())
