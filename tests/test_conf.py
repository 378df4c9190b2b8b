"""Every shipped file is used: pipelines load, suites fit their tables, Spark's settings are well formed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bridge import config
from bridge.definition import Definition
from bridge.quality.suite import load
from bridge.sql import load_script

ROOT = Path(__file__).parents[1]
PIPELINES = sorted((ROOT / "conf").glob("*.yaml"))
SUITES = sorted((ROOT / "expectations").glob("*.json"))


@pytest.fixture(params=PIPELINES, ids=lambda p: p.name)
def definition(request: pytest.FixtureRequest) -> Definition:
    return config.load(request.param, environ={})


def test_nothing_else_is_in_the_folders() -> None:
    names = {
        "orders.yaml",
        "orders_publish.yaml",
        "pageviews.sql",
        "spark.conf",
        "databricks",
        "observability",
    }
    assert {p.name for p in (ROOT / "conf").iterdir()} == names
    assert {p.suffix for p in (ROOT / "expectations").iterdir()} == {".json"}


def test_the_script_loads_without_warnings() -> None:
    script = load_script(ROOT / "conf" / "pageviews.sql", environ={})
    assert script.warnings == () and [plan.name for plan in script.inserts] == ["pageviews_per_region"]
    topics = [table.topic for table in script.tables]
    assert {topic.bootstrap_servers for topic in topics if topic} == {"localhost:9092"}


def test_a_pipeline_loads_without_warnings(definition: Definition) -> None:
    assert definition.warnings == ()
    assert definition.primary_key == ("order_id",)
    assert definition.topic.bootstrap_servers == "localhost:9092"


def test_the_data_of_a_pipeline_is_in_the_lake_beside_conf(definition: Definition) -> None:
    assert definition.delta.path == str(ROOT / "lake" / "orders")
    assert Path(definition.run.checkpoint).is_relative_to(ROOT / "lake" / "_checkpoints")


def test_broker_and_lake_can_be_elsewhere(tmp_path: Path) -> None:
    environ = {"KAFKA": "kafka.example:9094", "LAKE": str(tmp_path)}
    for file in PIPELINES:
        definition = config.load(file, environ=environ)
        assert definition.topic.bootstrap_servers == "kafka.example:9094"
        assert definition.delta.path == str(tmp_path / "orders")
        assert Path(definition.run.checkpoint).is_relative_to(tmp_path)


def test_names_and_checkpoints_are_unique() -> None:
    definitions = [config.load(file, environ={}) for file in PIPELINES]
    assert len({d.name for d in definitions}) == len(definitions)
    assert len({d.run.checkpoint for d in definitions}) == len(definitions)


def test_the_published_columns_are_the_ingested_ones() -> None:
    incoming, outgoing = (
        config.load(ROOT / "conf" / f"{name}.yaml", environ={}) for name in ("orders", "orders_publish")
    )
    assert outgoing.topic.schema.columns == incoming.topic.schema.columns
    assert outgoing.topic.names != incoming.topic.names


def test_every_suite_is_used_and_loaded_completely() -> None:
    used = {d.quality.suite for d in (config.load(f, environ={}) for f in PIPELINES) if d.quality}
    assert used == set(map(str, SUITES))
    for file in SUITES:
        assert len(load(file)) == len(json.loads(file.read_text())["expectations"])


def test_a_suite_asks_only_for_columns_of_its_table() -> None:
    for definition in (config.load(f, environ={}) for f in PIPELINES):
        if definition.quality is None:
            continue
        for expectation in json.loads(Path(definition.quality.suite).read_text())["expectations"]:
            arguments = expectation["kwargs"]
            columns = arguments.get("column_list") or [arguments["column"]]
            assert set(columns) <= set(definition.topic.schema.names)


def test_the_settings_of_spark_are_well_formed() -> None:
    """One `key value` per line; tests/test_jobs.py starts Spark with them."""
    lines = (ROOT / "conf" / "spark.conf").read_text().splitlines()
    settings = [line for line in lines if line and not line.startswith("#")]
    assert settings
    assert all(re.fullmatch(r"spark\.[\w.]+ +\S.*", line) for line in settings)
