"""Jobs as the manuals have them.

The options of source and sink: what is refused says why, and what there is instead.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.cdc_jobs import is_job
from bridge.errors import UnsupportedError
from tests.cdc_jobs.jobs import DELTA, KAFKA, SINK, load, refusal

MANUAL = """source:
  type: mysql
  name: MySQL Source
  hostname: ${mysql.hostname}
  port: ${mysql.port}
  username: ${mysql.username}
  password: ${mysql.password}
  tables: ${mysql.source.table}
  server-id: 8601-8604

sink:
  type: upsert-kafka
  name: Upsert Kafka Sink
  properties.bootstrap.servers: ${upsert.kafka.bootstraps.server}
  aliyun.kafka.accessKeyId: ${upsert.kafka.aliyun.ak}
  aliyun.kafka.accessKeySecret: ${upsert.kafka.aliyun.sk}
  aliyun.kafka.instanceId: ${upsert.kafka.aliyun.instanceid}
  aliyun.kafka.endpoint: ${upsert.kafka.aliyun.endpoint}
  aliyun.kafka.regionId: ${upsert.kafka.aliyun.regionid}

route:
  - source-table: ${mysql.source.table}
    sink-table: ${upsert.kafka.topic}
"""
"""The data ingestion example of the manual of Realtime Compute, "Upsert Kafka"."""
VARIABLES = {
    "MYSQL_SOURCE_TABLE": "shop.orders",
    "UPSERT_KAFKA_BOOTSTRAPS_SERVER": "b:9092",
    "UPSERT_KAFKA_TOPIC": "orders",
}
FLINK_CDC = """source:
  type: delta
  path: lake
  tables: shop.\\.*
  primary-keys: id
sink:
  type: kafka
  name: Kafka Sink
  properties.bootstrap.servers: PLAINTEXT://localhost:62510
transform:
  - source-table: shop.orders
    projection: \\*, UPPER(name) as product_name
    filter: id > 10 AND price > 100
    description: project fields and filter
route:
  - source-table: shop.orders
    sink-table: ods_db.ods_orders
  - source-table: shop.items
    sink-table: ods_db.ods_items
pipeline:
  name: Sync tables to Kafka
  parallelism: 2
"""
"""The example of Flink CDC's "Data Pipeline", with tables of Delta for those of MySQL and Kafka for Doris."""


def test_the_manual_s_example_is_refused_for_its_source_alone(shop: Path) -> None:
    """No variable is set, and that is not what the message is about."""
    assert refusal(shop, MANUAL).startswith(
        "job.yaml:2: source.type: 'mysql': the bridge does not read databases"
    )
    with pytest.raises(UnsupportedError) as error:
        load(shop, MANUAL)
    assert error.value.what == "source type mysql"


def test_the_manual_s_example_from_delta_tables(shop: Path) -> None:
    source = "source:\n  type: delta\n  path: lake\n  tables: ${mysql.source.table}\n  primary-keys: id\n"
    job = load(shop, source + MANUAL[MANUAL.index("\nsink:") :], VARIABLES)
    (definition,) = job.publishes
    assert job.script is None
    assert definition.topic.names == ("orders",)
    assert definition.topic.bootstrap_servers == "b:9092"
    assert definition.delta.path == str(shop / "lake" / "shop" / "orders")
    (warning,) = job.warnings
    assert warning.startswith("sink: aliyun.kafka.accessKeyId, ")


def test_flink_cdc_s_example(shop: Path) -> None:
    job = load(shop, FLINK_CDC)
    assert [(t.source, t.topic, t.is_direct) for t in job.tables] == [
        ("shop.items", "ods_db.ods_items", True),
        ("shop.orders", "ods_db.ods_orders", False),
    ]
    assert job.script is not None
    assert [c.name for c in job.script.inserts[0].columns] == ["id", "name", "price", "product_name"]


@pytest.mark.parametrize(
    ("name", "text", "is_one"),
    [
        ("a.yaml", MANUAL, True),
        ("a.yml", "sink: {type: x}", True),
        ("a.yaml", "version: 1\ntopic: {ddl_file: a}\n", False),
        ("a.yaml", "version: 1\nsource: {}\n", False),
        ("a.yaml", "- a", False),
        ("a.yaml", "a: [", False),
        ("a.yaml", "source: {type: delta\nsink:\n", True),
        ("a.sql", "source: 1", False),
    ],
)
def test_what_is_a_job(tmp_path: Path, name: str, text: str, is_one: bool) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert is_job(str(file)) is is_one
    assert not is_job(str(tmp_path / "nowhere.yaml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DELTA + SINK + "routes: []\n", "job.yaml:9: routes is not a legal key; did you mean 'route'?"),
        (DELTA + SINK + "transform: {}\n", "job.yaml:9: transform: a list (- key: value) is expected"),
        (DELTA + SINK.replace("b:1", "[b]"), "job.yaml:8: sink.properties.bootstrap.servers: "),
        (DELTA + "sink: x\n", "job.yaml:6: sink is missing; it is required, with a type"),
        (
            DELTA + SINK + "pipeline: {name: '${secret_values.name}'}\n",
            "job.yaml:9: pipeline.name: ${secret:secret_values/name}: ${secret_values.name} is the environment "
            "variable NAME, which is not set",
        ),
        (
            DELTA.replace("lake", "${lake}") + SINK,
            "job.yaml:3: source.path: ${lake} is the environment variable LAKE, which is not set; set it",
        ),
    ],
)
def test_mistakes(shop: Path, text: str, message: str) -> None:
    assert message in refusal(shop, text)


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
