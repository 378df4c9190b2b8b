"""Tables and outputs of the documentation are what the code does."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from bridge import config
from bridge.cli.page_commands import SCHEMA
from bridge.console import batch_line
from bridge.errors import DefinitionError
from bridge.metrics import BatchReport
from bridge.options import FORMATS, Support
from bridge.options.properties import PREFIX, SETTINGS, Treatment
from bridge.pages.pipeline_line import Line
from bridge.pages.top_frame import details, overview
from bridge.pipelines.operations.status import Status
from tests.docs import files
from tests.docs.commands import COMMANDS
from tests.docs.pages import BY_HAND, DOCS, EVERY, ROOT, Page

README = EVERY[0]
WORKS = README.rows("Connector")
REFUSED = Page(DOCS / "migrate.md").rows("Refused")


def statement(columns: str, options: dict[str, str]) -> str:
    given = {"topic": "t", "properties.bootstrap.servers": "localhost:9092", **options}
    within = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    return f"CREATE TABLE t ({columns}) WITH ({within})"


def combination(connector: str, keyed: bool, value_format: str) -> str:
    columns = "v STRING" if value_format == "raw" and connector == "kafka" else "id STRING, v STRING"
    options = {"connector": connector, "value.format": value_format}
    if keyed:
        columns += ", PRIMARY KEY (id) NOT ENFORCED"
    if connector == "upsert-kafka":
        options |= {"key.format": "raw", "value.fields-include": "EXCEPT_KEY"}
    if value_format.endswith("-confluent"):
        options[f"value.{value_format}.url"] = "http://localhost:8081"
    return statement(columns, options)


@pytest.mark.parametrize("row", WORKS, ids=lambda row: f"{row[0]} {row[1]} key")
def test_what_works_with_what(row: list[str], tmp_path: Path) -> None:
    connector, key, formats = row[0].strip("`"), row[1], re.findall(r"`([a-z-]+)`", row[2])
    cdc = [name for name, found in FORMATS.items() if not found.insert_only]
    for name in formats or cdc:
        definition = files.create_table(combination(connector, key != "no", name), tmp_path)
        assert definition.topic.appends == (key == "no"), name


def test_every_format_that_is_honoured_has_its_place() -> None:
    shown = {name for row in WORKS for name in re.findall(r"`([a-z-]+)`", row[2])}
    assert shown == {name for name, found in FORMATS.items() if found.support is Support.HONOURED}
    assert {name for name in FORMATS if name not in shown} == {"protobuf"}


def test_insert_only_formats_of_kafka_take_no_primary_key(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="doesn't support defining PRIMARY KEY"):
        files.create_table(combination("kafka", True, "json"), tmp_path)


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[0])
def test_what_is_refused(row: list[str], tmp_path: Path) -> None:
    """Options in the first cell are put into WITH, everything else is a column."""
    spans = re.findall(r"`([^`]+)`", row[0])
    options = {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
    given = dict(found for span in spans for found in re.findall(r"^'([^']+)' = '([^']+)'$", span))
    columns = [span for span in spans if "'" not in span and not FORMATS.get(span) and span != "upsert-kafka"]
    head = ["order_id BIGINT", *columns, "PRIMARY KEY (order_id) NOT ENFORCED"]
    files.create_table(statement("order_id BIGINT, PRIMARY KEY (order_id) NOT ENFORCED", options), tmp_path)
    assert given or columns
    if "sink.transaction-naming-strategy" in given:
        options |= {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": "t"}
    with pytest.raises(DefinitionError):
        files.create_table(statement(", ".join(head), options | given), tmp_path)


def test_client_settings_without_effect_are_warned_of(tmp_path: Path) -> None:
    idle = [name for name, setting in SETTINGS.items() if setting.treatment is Treatment.IGNORED]
    assert len(idle) > 5
    for name in idle:
        given = next(text for text in ("1000", "true", "classic", "http://x/y") if _takes(name, text))
        keyed = {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
        made = statement("id BIGINT, PRIMARY KEY (id) NOT ENFORCED", keyed | {f"{PREFIX}{name}": given})
        assert any(name in warning for warning in files.create_table(made, tmp_path).warnings), name


def _takes(name: str, text: str) -> bool:
    try:
        SETTINGS[name].parse(text)
    except DefinitionError:
        return False
    return True


def test_unknown_keys_are_errors(tmp_path: Path) -> None:
    keyed = {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
    for key in ("sink.paralelism", "properties.no.such.setting", "value.json.no-such-option"):
        with pytest.raises(DefinitionError, match=key):
            files.create_table(
                statement("id BIGINT, PRIMARY KEY (id) NOT ENFORCED", keyed | {key: "1"}), tmp_path
            )
    with pytest.raises(DefinitionError, match="partitons"):
        files.load(README, {"topic": {"create": {"partitons": 3}}}, tmp_path)


def leaves(schema: dict[str, Any], node: dict[str, Any], name: str = "") -> dict[str, Any]:
    """Dotted keys of the JSON Schema and their defaults; "required" for those without one."""
    options = [node, *node.get("anyOf", ())]
    reference = next((option["$ref"] for option in options if "$ref" in option), None)
    if reference is None:
        return {name: node.get("default", "required")}
    section = schema["$defs"][reference.rpartition("/")[2]]
    found: dict[str, Any] = {}
    for key, inner in section["properties"].items():
        found |= leaves(schema, inner, f"{name}.{key}")
    return found


def test_every_key_of_a_pipeline_file_is_listed_with_its_default() -> None:
    schema = config.json_schema()
    wanted: dict[str, Any] = {}
    for key, node in schema["properties"].items():
        wanted |= leaves(schema, node, key)
    shown = {
        key: row[1].strip("`")
        for row in Page(DOCS / "pipeline-file.md").rows("Key")
        for key in re.findall(r"`([a-z_.-]+)`", row[0])
    }
    assert set(wanted) <= set(shown)
    assert all(any(key.startswith(f"{extra}.") for key in wanted) for extra in set(shown) - set(wanted))
    for key, default in wanted.items():
        if isinstance(default, bool | int | str) and default != "required":
            assert shown[key] == str(default).lower(), key


def test_the_output_of_validate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("LAKE", raising=False)
    monkeypatch.delenv("KAFKA", raising=False)
    COMMANDS["validate"].main(["conf/orders.yaml"], standalone_mode=False)
    found = [line.rstrip() for line in capsys.readouterr().out.replace(f"{ROOT}/", "").splitlines()]
    shown = Page(DOCS / "index.md").block_after("output: validate conf/orders.yaml")
    assert shown.splitlines() == found


REPORTS = {
    "ingest": BatchReport(
        "orders",
        "ingest",
        batch=3,
        version=5,
        records_in=40_000,
        inserted=6_120,
        updated=11_804,
        deleted=212,
        unchanged=902,
        event_time_lag_seconds=1.3,
        engine="driver",
        seconds=2.1,
    ),
    "publish": BatchReport(
        "orders_publish",
        "publish",
        batch=7,
        version=12,
        records_out=18_136,
        tombstones=212,
        pending_records=3,
        seconds=0.8,
    ),
}


@pytest.mark.parametrize("verb", REPORTS)
def test_the_line_of_a_batch(verb: str) -> None:
    shown = Page(DOCS / f"{verb}.md").block_after(f"output: {verb} batch")
    assert shown == batch_line(REPORTS[verb]) + "\n"


def test_the_fields_of_a_status() -> None:
    rows = Page(DOCS / "operate.md").rows("Field")
    shown = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert shown == {field.name for field in fields(Status)} - {"pipeline", "table"}


WATCHED = [
    Line(
        "conf/customers.yaml",
        "customers",
        "ingest",
        "stopped",
        records_per_second=0,
        lag=0,
        freshness_seconds=0.9,
        last_commit_seconds=3 * 3600 + 120,
        error="KafkaError: no answer from kafka-1:9092 within 20 s",
    ),
    Line(
        "conf/orders.yaml",
        "orders",
        "ingest",
        "running",
        records_per_second=18_240,
        lag=70_000,
        lag_by_partition={"orders-0": 50_000, "orders-1": 20_000, "orders-2": 0},
        freshness_seconds=1.2,
        last_commit="2026-01-31T11:04:11+00:00",
        last_commit_seconds=2.4,
        version=1207,
        engine="driver",
        reader="consumer",
    ),
    Line(
        "conf/orders_publish.yaml",
        "orders_publish",
        "publish",
        "running",
        records_per_second=9_310,
        lag=2,
        last_commit_seconds=3.1,
    ),
    Line("conf/returns.yaml", "returns", None, "never ran"),
]


def test_the_page_of_top() -> None:
    drawn = [text.plain for text in (*overview(WATCHED, 90), *details(WATCHED[1], 90))]
    assert Page(DOCS / "watch.md").block_after("output: top").splitlines() == drawn


def test_the_fields_of_top() -> None:
    rows = Page(DOCS / "watch.md").rows("Shown")
    shown = {name for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    assert shown == {field.name for field in fields(Line)}
    assert f"`{SCHEMA}`" in Page(DOCS / "watch.md").prose


def test_the_fields_of_a_report() -> None:
    shown = re.search(
        r"^Among the fields of a report are (.*?)\.$", Page(DOCS / "operate.md").prose, re.M | re.S
    )
    assert shown
    named = set(re.findall(r"`(\w+)`", shown[1]))
    assert len(named) > 10
    assert named <= {field.name for field in fields(BatchReport)}


def test_environment_variables_are_read_somewhere() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "bridge").rglob("*.py"))
    named = {name for page in BY_HAND for name in re.findall(r"`((?:BRIDGE|SPARK)_[A-Z_]+)", page.prose)}
    assert {"BRIDGE_HOME", "SPARK_MASTER"} <= named
    assert [name for name in sorted(named) if f'"{name}"' not in code] == []


def test_exit_codes_are_the_same_everywhere() -> None:
    assert Page(DOCS / "operate.md").rows("Exit code") == README.rows("Exit code")
