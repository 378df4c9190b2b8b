"""`bridge txn`: output of list and abort."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from bridge.cli.app import main
from bridge.embedded.broker import Broker
from tests.pipelines.world import World


def test_open_transactions_are_listed_and_aborted(
    spark: SparkSession,
    broker: Broker,
    lake: Path,
    unique: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    prefix = f"p{uuid4().hex[:8]}"  # short, so that a line's end parts no word
    options = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": prefix}
    world = World.make(spark, broker, lake, unique, options=options)
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
    spark: SparkSession,
    broker: Broker,
    lake: Path,
    unique: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    World.make(spark, broker, lake, unique).definition()
    for verb in ("list", "abort"):
        assert main(["txn", verb, str(lake / "orders.yaml")]) == 2
        assert "this pipeline does not publish exactly-once" in capsys.readouterr().err
