"""The options of source and sink: what is refused says why, and what there is instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cdc_jobs.jobs import DELTA, KAFKA, SINK, load, refusal

ALIYUN = "".join(
    f"  aliyun.kafka.{key}: ${{secret_values.kafka-{key}}}\n"
    for key in ("accessKeyId", "accessKeySecret", "instanceId", "endpoint", "regionId")
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            DELTA.replace("type: delta", "type: mysql") + SINK,
            "job.yaml:2: source.type: 'mysql': the bridge does not read databases itself; let Debezium write the "
            "database's changes to Kafka in debezium-json (one topic per table), and read these with `type: kafka`, "
            "`value.format: debezium-json` and the columns in `ddl`. A Delta table is read with `type: delta`",
        ),
        (DELTA.replace("type: delta", "type: dleta") + SINK, "source.type: 'dleta': did you mean 'delta'?"),
        (
            DELTA.replace("type: delta", "type: values") + SINK,
            "source.type: 'values': the bridge has no such source; let Debezium",
        ),
        (
            DELTA.replace("  type: delta\n", "") + SINK,
            "source.type is missing; it is required; legal values are delta, kafka",
        ),
        (DELTA, "sink is missing; it is required, with a type: upsert-kafka, kafka"),
        (
            DELTA + SINK.replace("upsert-kafka", "doris"),
            "job.yaml:7: sink.type: 'doris': the bridge has no such sink; legal values are upsert-kafka, kafka. A "
            "Delta table is written by an ingest",
        ),
        (
            DELTA + SINK + "  sink.delivery.guarantee: none\n",
            "job.yaml:9: sink.sink.delivery.guarantee is not an option of sink 'upsert-kafka'; did you mean "
            "'sink.delivery-guarantee'?",
        ),
        (
            DELTA + SINK + "  hosts: b\n",
            "job.yaml:9: sink.hosts is not an option of sink 'upsert-kafka'; its options are type, name, ",
        ),
        (DELTA + SINK + "  topic: t\n", "sink.topic is not an option of sink 'upsert-kafka'"),
        (
            DELTA + "sink: {type: kafka}\n",
            "sink.properties.bootstrap.servers is missing; sink 'kafka' requires it",
        ),
        (DELTA.replace("  path: lake\n", "") + SINK, "source.path is missing; source 'delta' requires it"),
        (DELTA.replace("lake", '""') + SINK, "job.yaml:3: source.path has no value that is text; set one"),
        (
            DELTA + SINK + "  sink.add-tableId-to-header-enabled: maybe\n",
            "sink.sink.add-tableId-to-header-enabled: 'sink.add-tableId-to-header-enabled': Unrecognized option for "
            "boolean: maybe",
        ),
        (
            DELTA + SINK + "  exclude.schema.changes: drop\n",
            "sink.exclude.schema.changes is refused: see pipeline: {schema.change.behavior: ...}",
        ),
        (
            DELTA + SINK.replace("upsert-", "") + "  sink.debezium-json.include-schema.enabled: true\n",
            "sink.sink.debezium-json.include-schema.enabled is refused: as in Flink's debezium-json; leave it out",
        ),
        (
            KAFKA + "  schema.inference.strategy: static\n" + SINK,
            "source.schema.inference.strategy is refused: columns are never guessed from documents; declare them",
        ),
        (
            KAFKA.replace("topic: orders", "topic-pattern: orders.*") + SINK,
            "source.topic-pattern is refused: a table has one topic; list the topics in `topic`",
        ),
    ],
)
def test_refusals(shop: Path, text: str, message: str) -> None:
    assert message in refusal(shop, text)


def test_access_to_apsara_mq_has_no_effect(shop: Path) -> None:
    """Its references are not looked up, so nothing has to be set."""
    job = load(shop, DELTA + SINK + ALIYUN)
    (warning,) = job.warnings
    assert warning.startswith(
        "sink: aliyun.kafka.accessKeyId, aliyun.kafka.accessKeySecret, aliyun.kafka.endpoint, aliyun.kafka.instanceId, "
        "aliyun.kafka.regionId without effect: a missing topic is created by Kafka's own client, with properties.*"
    )


def test_false_is_no_refused_option(shop: Path) -> None:
    sink = SINK.replace("upsert-", "") + "  sink.debezium-json.include-schema.enabled: false\n"
    assert load(shop, DELTA + sink).sink_type == "kafka"
