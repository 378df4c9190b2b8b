"""The section `pipeline`, and keys of `transform` that are not honoured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cdc_jobs.jobs import DELTA, SINK, load, refusal


def with_pipeline(lines: str) -> str:
    return DELTA + SINK + "pipeline:\n" + "".join(f"  {line}\n" for line in lines.split("\n"))


def test_name_state_and_parallelism(shop: Path) -> None:
    job = load(
        shop,
        with_pipeline(
            "name: Shop to Kafka\nparallelism: 3\nbridge.state: ../state\nbridge.step-timeout: 1 h"
        ),
    )
    assert job.name == "Shop to Kafka"
    assert job.folder == f"{shop.parent}/state/Shop_to_Kafka-27f671"
    assert {d.name for d in job.publishes} == {
        "Shop_to_Kafka-27f671.shop.items",
        "Shop_to_Kafka-27f671.shop.orders",
    }
    assert {d.topic.sink.parallelism for d in job.publishes} == {3}
    assert {d.run.step_timeout_seconds for d in job.publishes} == {3600.0}
    assert {d.run.checkpoint for d in job.publishes} == {
        f"{job.folder}/checkpoints/shop.items",
        f"{job.folder}/checkpoints/shop.orders",
    }


def test_without_a_name_it_is_that_of_the_file(shop: Path) -> None:
    job = load(shop, DELTA + SINK)
    assert (job.name, job.folder) == ("job", f"{shop}/bridge-state/job")


@pytest.mark.parametrize("behaviour", ["evolve", "TRY_EVOLVE", "LENIENT"])
def test_added_columns_are_sent(shop: Path, behaviour: str) -> None:
    job = load(shop, with_pipeline(f"schema.change.behavior: {behaviour}"))
    assert all(definition.publish.carry for definition in job.publishes)


def test_what_has_no_effect(shop: Path) -> None:
    text = "schema.operator.uid: a\nflink-conf: {taskmanager.numberOfTaskSlots: 2}\nlocal-time-zone: UTC"
    assert load(shop, with_pipeline(text)).warnings == (
        "pipeline: flink-conf without effect: Spark runs the job; pass its settings with --conf",
        "pipeline: schema.operator.uid without effect: Flink's state is not used",
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "schema.change.behavior: ignore",
            "pipeline.schema.change.behavior: IGNORE is refused: each run reads the",
        ),
        (
            "schema.change.behavior: exception",
            "EXCEPTION is refused: a change of the schema between two runs is not",
        ),
        ("schema.change.behavior: x", "'x': legal values are LENIENT, EVOLVE, TRY_EVOLVE"),
        (
            "execution.runtime-mode: BATCH",
            "'BATCH': the legal value is STREAMING. Without --every, `bridge run` ends",
        ),
        (
            "local-time-zone: Asia/Shanghai",
            "'Asia/Shanghai': the legal value is UTC, in which the bridge computes",
        ),
        (
            "route-mode: FIRST_MATCH",
            "'FIRST_MATCH': the legal value is ALL_MATCH: a table goes to the sink tables of",
        ),
        (
            "user-defined-function: [{name: f, classpath: c}]",
            "pipeline.user-defined-function is refused: functions of",
        ),
        (
            "model: [{model-name: CHAT}]",
            "pipeline.model is refused: a model may answer the same row differently",
        ),
        ("parallelism: 0", "pipeline.parallelism: '0': a number of at least 1 is expected"),
        ("parallelism: many", "pipeline.parallelism: 'many': a whole number is expected"),
        ("paralelism: 2", "job.yaml:10: pipeline.paralelism is not a legal key; did you mean 'parallelism'?"),
        ("name: ''", "pipeline.name: '': it is empty; set a value"),
        ("bridge.state: lake/shop/orders", "shop/orders/job/checkpoints/shop.orders is inside delta"),
    ],
)
def test_what_is_refused(shop: Path, lines: str, message: str) -> None:
    assert message in refusal(shop, with_pipeline(lines))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("partition-keys: id", "transform.0.partition-keys is refused: a topic has no partitions by column"),
        (
            "table-options: comment=x",
            "transform.0.table-options is refused: a topic is created with the broker's",
        ),
        (
            "converter-after-transform: SOFT_DELETE",
            "job.yaml:11: transform.0.converter-after-transform is refused: a delete stays a delete",
        ),
    ],
)
def test_keys_of_transform(shop: Path, key: str, message: str) -> None:
    text = DELTA + SINK + f"transform:\n  - source-table: shop.orders\n    {key}\n"
    assert message in refusal(shop, text)


def test_what_becomes_of_bad_records(shop: Path) -> None:
    transform = "transform:\n  - source-table: shop.orders\n    projection: id, 10 / id AS q\n    filter: 10 / id > 1\n"
    job = load(shop, with_pipeline("bridge.bad-records: skip") + transform)
    assert job.script is not None
    (plan,) = job.script.inserts
    assert [(failing.columns, failing.stop) for failing in plan.failing] == [
        ((("source_shop.orders", "id"),), False)
    ] * len(plan.failing)
    assert "division by zero in 10 / id" in plan.failing[0].spark_sql
