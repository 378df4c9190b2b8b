"""A seed determines the rounds; they have every configuration and kind, and existing failpoints."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

from bridge import config
from bridge.cdc_jobs import load_job
from bridge.pipelines.ingest.consumer_support import refuse_unsupported
from bridge.sql import load_script
from tests.cdc_jobs.jobs import write_table
from tests.faults.derived import JOB, SCRIPT
from tests.faults.documents import KEY_TYPES
from tests.faults.lane import CHOICES, DELIVERIES, ENGINES, READERS, draw_lanes
from tests.faults.plan import KINDS, ON_CLUSTER, PLACES, USERS, plan

ROOT = Path(__file__).parents[2]


def test_a_seed_says_all() -> None:
    assert [*islice(plan(7, 4, 9), 5)] == [*islice(plan(7, 4, 9), 5)] != [*islice(plan(8, 4, 9), 5)]


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_few_lanes_have_every_configuration_and_two_hundred_blows_every_kind(seed: int) -> None:
    lanes = [*islice(draw_lanes(seed), 12)]
    for dimension in ("engine", "delivery", "key", "format"):
        assert {getattr(lane, dimension) for lane in lanes} == set(CHOICES[dimension])
    assert {(lane.engine, lane.delivery) for lane in lanes[:9]} == {
        (e, d) for e in ENGINES for d in DELIVERIES
    }
    assert {lane.reader for lane in islice(draw_lanes(seed), 40)} == set(READERS)
    assert {extra for lane in islice(draw_lanes(seed), 60) for extra in lane.extras} == set(CHOICES["with"])
    assert len({(x.engine, x.delivery, x.key, x.format) for x in lanes}) == 12
    blows = [blow for episode in islice(plan(seed, 4, 12), 25) for blow in episode.blows]
    assert {b.kind for b in blows} == set(KINDS)
    assert {b.verb for b in blows} == set(PLACES)
    assert {b.user for b in blows} == {*USERS, ""}
    assert all(b.place in PLACES[b.verb] for b in blows)


def test_only_a_cluster_loses_executors_and_nodes() -> None:
    for cluster in (False, True):
        blows = [blow for episode in islice(plan(3, 4, 12, cluster=cluster), 25) for blow in episode.blows]
        assert {b.kind for b in blows} == {*KINDS, *(ON_CLUSTER if cluster else {})}


def test_a_short_play_has_a_user_at_each_fault_and_hits_both_verbs() -> None:
    short = [*islice(plan(3, 6, 1, all_of_them=True), 60)]
    assert {b.user for e in short for b in e.blows} == set(USERS)
    of_one = [
        [b.verb for e in part for b in e.blows if b.kind == "kill all"] for part in (short[::2], short[1::2])
    ]
    assert [{*verbs} for verbs in of_one] == [{"publish"}, {"ingest"}]


def test_the_places_are_in_the_code() -> None:
    code = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "bridge").rglob("*.py"))
    there = set(re.findall(r'failpoints\.hit\("([^"]+)"\)', code))
    assert {place for places in PLACES.values() for place in places} <= there


def test_the_bridge_takes_the_pipeline_files(tmp_path: Path) -> None:
    kinds: set[tuple[str, str]] = set()
    for lane in islice(draw_lanes(7), 60):
        for name in lane.pipelines:
            file = tmp_path / lane.name / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(lane.text(name, "127.0.0.1:1", "http://127.0.0.1:1"))
            if name == "history.yaml":
                assert config.load(file).delta.history is not None
            if name in ("ingest.yaml", "publish.yaml"):
                assert config.load(file).topic.names == (lane.topics[name == "publish.yaml"],)
            elif name == "script.sql":
                script = load_script(file)
                assert len(script.inserts) == 2 and len(script.sources) == 1
                kinds |= {(SCRIPT, lane.key), (SCRIPT, lane.format), (SCRIPT, lane.delivery)}
            elif name == "job.yaml":
                write_table(file.parent / "table", _columns(lane.key))
                job = load_job(file, environ={})
                projected = job.script is not None
                assert len(job.publishes) == 1 - projected
                kinds |= {(JOB, lane.key), (JOB, lane.delivery), (JOB, f"{projected}")}
    for kind, dimensions in ((SCRIPT, ("key", "format", "delivery")), (JOB, ("key", "delivery"))):
        assert kinds >= {(kind, choice) for dimension in dimensions for choice in CHOICES[dimension]}
    assert {(JOB, "True"), (JOB, "False")} <= kinds


def _columns(key: str) -> dict[str, pa.Array]:
    types = {
        "BIGINT": pa.int64(),
        "STRING": pa.string(),
        "DECIMAL(38, 0)": pa.decimal128(38, 0),
        "BYTES": pa.binary(),
        "TIMESTAMP(3)": pa.timestamp("us"),
    }
    columns = {name: types[type] for name, type in KEY_TYPES[key].columns.items()}
    columns |= {"seq": pa.int64(), "writer": pa.string(), "seed": pa.int64()}
    return {name: pa.array([], type) for name, type in columns.items()}


def test_tables_without_a_key_are_read_by_consumers(tmp_path: Path) -> None:
    """Every second lane that can has one, of each engine, key and format that can."""
    drawn = [*islice(draw_lanes(7), 60)]
    fit = [x for x in drawn if x.is_appendable]
    lanes = [x for x in drawn if x.appends]
    assert lanes == fit[::2]
    for dimension in ("engine", "key"):
        assert {getattr(lane, dimension) for lane in lanes} == set(CHOICES[dimension])
    assert {lane.format for lane in lanes} == {"json", "avro-confluent"}
    for lane in lanes:
        file = tmp_path / f"{lane.name}.yaml"
        file.write_text(lane.rows_file("127.0.0.1:1", "http://127.0.0.1:1"))
        definition = config.load(file)
        assert definition.topic.names == lane.topics[:1] and definition.topic.appends
        refuse_unsupported(definition, definition.topic)


def test_every_second_lane_whose_deletions_have_a_row_orders_changes(tmp_path: Path) -> None:
    drawn = [*islice(draw_lanes(7), 60)]
    lanes = [x for x in drawn if x.by_sequence]
    assert [x for x in drawn if x.keeps_history] == lanes[::2]
    assert lanes == [x for x in drawn if not x.is_upsert][::2]
    assert {lane.engine for lane in lanes} == set(CHOICES["engine"])
    for lane in lanes:
        definitions = []
        for verb in ("ingest", "publish"):
            file = tmp_path / f"{lane.name}-{verb}.yaml"
            file.write_text(lane.file(verb, "127.0.0.1:1", "http://127.0.0.1:1"))
            definitions.append(config.load(file))
        assert [each.delta.sequence_by for each in definitions] == [("seq",), ()]
        if lane.reader == "consumer":
            refuse_unsupported(definitions[0], definitions[0].topic)
