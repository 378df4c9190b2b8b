"""What `validate --json` prints, and the JSON Schema for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from bridge import config
from bridge.config.model import PipelineFile
from bridge.options import declared
from tests.config.files import WHOLE, loaded


@pytest.fixture
def shown(tmp_path: Path) -> dict[str, Any]:
    """A definition with a secret, a metadata column and a computed one."""
    columns = "note STRING, ts TIMESTAMP(3) METADATA FROM 'timestamp', twice AS id * 2"
    options = (
        "'properties.sasl.jaas.config' = '${env:JAAS}', 'value.fields-include' = 'EXCEPT_KEY', 'topic' ="
    )
    text = WHOLE.replace("note STRING", columns).replace("'topic' =", options)
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required username=u password=hunter2;"
    return config.resolved(loaded(tmp_path, text + "quality: {suite: s.json}\n", {"JAAS": jaas}))


def test_it_is_json_without_secrets(shown: dict[str, Any]) -> None:
    text = json.dumps(shown)
    assert "hunter2" not in text
    assert shown["topic"]["options"]["properties.sasl.jaas.config"] == "******"
    jaas = {"key": "properties.sasl.jaas.config", "value": "******", "origin": "given", "fate": "translated"}
    assert jaas in shown["topic"]["effective"]


def test_columns_and_documents(shown: dict[str, Any]) -> None:
    topic = shown["topic"]
    assert [(c["name"], c["kind"], c.get("in")) for c in topic["columns"]] == [
        ("id", "physical", ["key"]),
        ("note", "physical", ["value"]),
        ("ts", "metadata", None),
        ("twice", "computed", None),
    ]
    assert topic["key"]["fields"] == [{"field": "id", "column": "id", "type": "BIGINT"}]
    assert [f["field"] for f in topic["value"]["fields"]] == ["note"]


def test_every_declared_option_has_a_value_an_origin_and_a_fate(shown: dict[str, Any]) -> None:
    effective = {e["key"]: e for e in shown["topic"]["effective"]}
    named = {key for key in declared("upsert-kafka") if not key.endswith(".*")}
    assert named <= set(effective)
    assert effective["value.fields-include"]["origin"] == "given"
    assert effective["scan.bounded.mode"] == {
        "key": "scan.bounded.mode",
        "value": "unbounded",
        "origin": "default",
        "fate": "honoured",
    }
    assert effective["value.json.timestamp-format.standard"]["value"] == "SQL"
    assert effective["sink.transactional-id-prefix"]["fate"] == "honoured"


def test_the_other_sections(shown: dict[str, Any], tmp_path: Path) -> None:
    assert shown["name"] == "orders"
    defaults: dict[str, Any] = {
        "table": None,
        "properties": {},
        "merge_schema": False,
        "cluster_by": [],
        "merge_columns": [],
        "sequence_by": [],
        "delete_memory_seconds": 604_800.0,
        "apply_as_delete": None,
        "ignore_nulls": [],
        "sequence_metadata": {},
        "history": None,
        "soft_delete": None,
        "truncate": "refuse",
        "apply_as_truncate": None,
        "first_row": False,
        "ignore_delete": False,
        "update_columns": None,
        "ignores_all_nulls": False,
        "append_history": None,
        "aggregate": {},
        "owner": "",
    }
    assert shown["delta"] == {"path": str(tmp_path / "lake/orders"), **defaults}
    assert shown["merge"] == {
        "engine": "auto",
        "max_batch_bytes": 256 * 1024**2,
        "max_touched_bytes": 1024**3,
    }
    assert shown["ingest"] == {"bad-records": "fail", "base": "empty", "reader": "auto"}
    assert shown["publish"] == {
        "start": {"mode": "snapshot", "value": None},
        "snapshot_chunk_rows": 4_000_000,
        "net_changes": False,
        "pair": False,
        "current_rows": False,
        "carry": False,
        "encoder": "auto",
        "transaction_rows": 200_000,
    }
    assert shown["quality"] == {
        "suite": str(tmp_path / "s.json"),
        "results": {"path": str(tmp_path / "lake/orders_quality"), **defaults},
        "on_failure": "fail",
        "report": None,
        "gate": None,
    }


def test_the_json_schema_has_every_key() -> None:
    schema = config.json_schema()
    json.dumps(schema)
    assert set(schema["properties"]) == {f.alias for f in PipelineFile.model_fields.values()}
    assert schema["required"] == ["version", "name", "topic", "delta", "run"]
    for field in PipelineFile.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            section = schema["$defs"][field.annotation.__name__]
            assert section["additionalProperties"] is False
            assert {f.alias for f in field.annotation.model_fields.values()} <= set(section["properties"])


def test_the_json_schema_allows_references_where_values_are_checked() -> None:
    schema = config.json_schema()
    bad = schema["$defs"]["IngestSection"]["properties"]["bad-records"]
    assert bad["anyOf"] == [
        {"type": "string", "enum": ["fail", "quarantine", "skip"]},
        {"type": "string", "pattern": r"\$\{(env|file):"},
    ]
    assert {"required": ["ddl-file"]} in schema["$defs"]["TopicSection"]["oneOf"]


def test_urls_that_may_hold_a_password_are_not_shown(tmp_path: Path) -> None:
    urls = "alert: 'https://h/hunter2', lineage: 'https://u:hunter2@h'"
    definition = loaded(tmp_path, WHOLE.replace("run: {", f"run: {{{urls}, "))
    run = json.loads(json.dumps(config.resolved(definition)))["run"]
    assert (run["alert"], run["lineage"]) == ("******", "******")
    assert "hunter2" not in repr(definition)
