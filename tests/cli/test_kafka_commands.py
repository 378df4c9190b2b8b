"""`bridge topics`: what it describes and creates of pipeline files, scripts and jobs.

`bridge txn`: output of list and abort.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from bridge.cli.app import main
from bridge.cli.kafka_commands import topics_of
from bridge.embedded.broker import Broker
from tests.cdc_jobs.jobs import KAFKA, SINK, written
from tests.config.files import pipeline_text
from tests.pipelines.world import Make

_SCRIPT = """\
CREATE TABLE views (region STRING) WITH ('connector' = 'kafka', 'topic' = '{name}-views', 'format' = 'json',
  'properties.bootstrap.servers' = '{servers}', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE regions (region STRING, pv BIGINT, PRIMARY KEY (region) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = '{name}-regions', 'properties.bootstrap.servers' = '{servers}', 'key.format' = 'json',
  'value.format' = 'json');
INSERT INTO regions SELECT region, COUNT(*) FROM views GROUP BY region;
"""


def _pipeline(topic: str, servers: str) -> str:
    options = {"topic": topic, "properties.bootstrap.servers": servers}
    return pipeline_text("id BIGINT, PRIMARY KEY (id) NOT ENFORCED", options)


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["topics", *arguments, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_a_pipeline_s_topic(
    broker: Broker, tmp_path: Path, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is missing, created compacted, described with its offsets, and not changed when it is there."""
    name, file = unique("orders"), tmp_path / "orders.yaml"
    file.write_text(_pipeline(name, broker.bootstrap))
    assert main(["topics", str(file)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{name} missing; --create creates it" in shown
    [created] = _json(
        capsys,
        str(file),
        "--create",
        "--partitions",
        "3",
        "--replication-factor",
        "1",
        "--config",
        "retention.ms=5000",
    )
    assert created["created"] and created["exists"] and created["replication_factor"] == 1
    assert created["settings"] == {"cleanup.policy": "compact", "retention.ms": "5000"}
    assert created["partitions"] == [{"partition": p, "earliest": 0, "latest": 0} for p in range(3)]
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(name, b"{}", b"{}", partition=1)
    producer.flush()
    [there] = _json(capsys, str(file), "--create", "--partitions", "5")
    assert not there["created"] and [p["latest"] for p in there["partitions"]] == [0, 1, 0]
    assert main(["topics", "--describe", str(file)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "3 partitions, 1 replicas; cleanup.policy=compact, retention.ms=5000" in shown
    assert "offsets of partitions 0: 0 to 0, 1: 0 to 1, 2: 0 to 0" in shown


def test_the_topics_of_a_script(
    broker: Broker, tmp_path: Path, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    name, file = unique("script"), tmp_path / "views.sql"
    file.write_text(_SCRIPT.format(name=name, servers=broker.bootstrap))
    made = {topic["topic"]: topic for topic in _json(capsys, str(file), "--create")}
    assert [made[f"{name}-{table}"]["settings"]["cleanup.policy"] for table in ("regions", "views")] == [
        "compact",
        "delete",
    ]
    assert [made[f"{name}-{table}"]["connector"] for table in ("regions", "views")] == [
        "upsert-kafka",
        "kafka",
    ]


def test_the_topics_of_a_job(tmp_path: Path) -> None:
    """Those that it writes, and those that it reads."""
    route = "route:\n  - {source-table: shop.orders, sink-table: o}\n"
    names = [topic.names for topic in topics_of(str(written(tmp_path, KAFKA + SINK + route)))]
    assert ("o",) in names and len(names) > 1 and len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--create", "--describe"], "--create and --describe exclude each other"),
        (["--partitions", "3"], "--partitions, --replication-factor and --config are for --create; add it"),
        (["--create", "--config", "compact"], "--config compact: write a setting as KEY=VALUE"),
    ],
)
def test_refused_options(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(_pipeline("t", "127.0.0.1:1"))
    assert main(["topics", str(file), *options]) == 2
    assert message in capsys.readouterr().err


def test_a_file_without_topics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "none.sql"
    file.write_text("CREATE TABLE shown (a INT) WITH ('connector' = 'print');\n")
    assert main(["topics", str(file)]) == 2
    assert f"{file} names no topic" in capsys.readouterr().err


def test_open_transactions_are_listed_and_aborted(
    make: Make, broker: Broker, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix = f"p{uuid4().hex[:8]}"  # short, so that a line's end parts no word
    options = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": prefix}
    world = make(options=options)
    world.definition()
    file = str(lake / "orders.yaml")
    assert main(["txn", "list", file]) == 0
    assert "none" in capsys.readouterr().out
    producers = []
    for id in (f"{prefix}-3", f"{prefix}-a"):
        producers.append(
            Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": id, "log_level": 0})
        )
        producers[-1].init_transactions(20)
        producers[-1].begin_transaction()
        producers[-1].produce(world.topic, b"v", b"k", partition=1)
        assert producers[-1].flush(20) == 0
    assert main(["txn", "list", file, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(t["id"], t["state"], t["partitions"]) for t in found] == [
        (f"{prefix}-3", "Ongoing", [f"{world.topic}-1"]),
        (f"{prefix}-a", "Ongoing", [f"{world.topic}-1"]),
    ]
    assert main(["txn", "abort", file]) == 0
    told = " ".join(capsys.readouterr().out.split())
    ended, left = told.partition(f"{prefix}-3 ")[2].split(f"{prefix}-a ")
    assert ended.startswith("aborted: Ongoing for ") and "(timeout 1 min 0 s), producer " in ended
    assert left.startswith(
        "not aborted, since the bridge creates no such id; --all aborts it, too: Ongoing for "
    )
    assert main(["txn", "abort", file, "--all", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [t["id"] for t in result["ended"]] == [f"{prefix}-a"] and result["left"] == []
    assert main(["txn", "abort", file]) == 0
    assert "no open transaction" in capsys.readouterr().out


def test_a_pipeline_without_transactions_is_refused(
    make: Make, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make().definition()
    for verb in ("list", "abort"):
        assert main(["txn", verb, str(lake / "orders.yaml")]) == 2
        assert "this pipeline does not publish exactly-once" in capsys.readouterr().err
