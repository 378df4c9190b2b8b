"""The doctor finds what will fail before a run meets it, and says what to do; a sound pipeline has nothing but fine.

What the settings of a topic mean for a publish, by the replicas that it has; most are broken in test_doctor.py.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import TableError
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.doctor import Finding, Replicas, examine, sending
from bridge.pipelines.operations.surroundings import Outcome
from bridge.pipelines.publish.run import publish
from tests.delta.tables import create_fed
from tests.kafka.topics import topic_of
from tests.pipelines.world import Make, World, making, upsert

make = making(partitions=1)


def troubles(world: World, *, sends: bool = False, name: str = "orders") -> list[Finding]:
    findings = examine(world.spark, world.definition(name), sends=sends)
    return [finding for finding in findings if finding.outcome is not Outcome.FINE]


def told(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(finding.what, finding.outcome.value, finding.text) for finding in findings]


def test_a_sound_pipeline_before_and_after_its_runs(make: Make) -> None:
    world, copy = make(), make()
    assert troubles(world) == []
    world.send([upsert(1, "a"), upsert(2, "b")])
    ingest(world.spark, world.definition())
    publish(world.spark, copy.definition("copy"))
    world.send([upsert(1, "c")])
    findings = examine(world.spark, world.definition(), sends=False)
    assert {f.outcome for f in findings} == {Outcome.FINE}
    assert {"batch 0; 1 records are pending", "they take the requests of Kafka 4.3"} <= {
        f.text for f in findings
    }
    published = examine(world.spark, copy.definition("copy"), sends=True)
    assert {f.outcome for f in published} == {Outcome.FINE}
    assert {f.what for f in findings} == {
        "brokers", "topics", "settings of topics", "rights", "places", "table", "writers of the table", "progress",
        "retention", "executors", "disk", "clocks", "other runs", "memory",
    }  # fmt: skip


def test_brokers_that_do_not_answer(make: Make) -> None:
    world = make(options={"properties.bootstrap.servers": "127.0.0.1:1"})
    found = troubles(world)
    assert [f.what for f in found][:2] == ["brokers", "topics"]
    assert found[0].outcome is Outcome.FAILS and "127.0.0.1:1" in found[0].text


def test_a_topic_that_is_not_there(make: Make) -> None:
    world = make(options={"topic": "nowhere"})
    text = "'nowhere' does not exist; `bridge topics FILE --create` creates it"
    assert told(troubles(world)) == [("topics", "fails", text)]


@pytest.mark.parametrize(
    ("policy", "options", "text"),
    [
        (
            "delete",
            {},
            "is not compacted (cleanup.policy=delete): Kafka deletes records by age, and with them rows",
        ),
        (
            "compact,delete",
            {},
            "is also deleted by age (cleanup.policy=compact,delete): Kafka deletes records",
        ),
        (
            "compact",
            {"connector": "kafka", "format": "json", "key.format": None, "value.format": None},
            "is compacted (cleanup.policy=compact): Kafka removes all records of a key but the last one",
        ),
    ],
)
def test_a_policy_that_contradicts_the_connector(
    make: Make, policy: str, options: Mapping[str, str | None], text: str
) -> None:
    columns = "id BIGINT, name STRING" if options else "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED"
    (found,) = troubles(make(cleanup=policy, options=options, columns=columns))
    assert (found.what, found.outcome) == ("settings of topics", Outcome.WARNING) and text in found.text


@pytest.mark.slow
def test_a_policy_that_contradicts_the_changes(make: Make) -> None:
    """Where records before the last one of a key count."""
    for delta in ("path: table, first-row: true", "path: table, history: append"):
        world = make(delta=delta)
        (found,) = troubles(world)
        assert (found.what, found.outcome) == ("settings of topics", Outcome.WARNING)
        assert "is compacted (cleanup.policy=compact)" in found.text and "needs the others" in found.text
        assert not troubles(make(delta=delta, cleanup="delete"))


def test_settings_under_which_nothing_can_be_sent(
    spark: SparkSession, broker: Broker, make: Make, unique: Callable[[str], str]
) -> None:
    world = make()
    world.send([upsert(1, "a")])
    ingest(spark, world.definition())
    copy = make(options={"topic": unique("strict"), "properties.max.request.size": "2000000"})
    broker.create_topic(
        str(copy.options["topic"]),
        partitions=1,
        config={"cleanup.policy": "compact", "min.insync.replicas": "2", "max.message.bytes": "1000000"},
    )
    replicas, size = troubles(copy, sends=True, name="copy")
    assert (
        replicas.outcome is Outcome.FAILS
        and "has 1 replicas and min.insync.replicas=2: no record" in replicas.text
    )
    copy.options = {**copy.options, "properties.acks": "1", "properties.max.request.size": None}
    assert troubles(copy, sends=True, name="copy") == []
    assert size.outcome is Outcome.WARNING and "takes records of up to 1,000,000 bytes" in size.text


def test_a_table_that_cannot_be_published(make: Make) -> None:
    world = make()
    (missing,) = troubles(world, sends=True)
    assert (missing.what, missing.outcome) == (
        "table",
        Outcome.FAILS,
    ) and "run its ingest first" in missing.text
    world.spark.range(1).write.format("delta").save(f"{world.folder}/table")
    (columns,) = troubles(world, sends=True)
    assert (columns.what, columns.outcome) == ("table", Outcome.FAILS) and "name" in columns.text


def test_another_writer_and_a_topic_that_was_created_anew(make: Make) -> None:
    world = make()
    world.send([upsert(1, "a"), upsert(2, "b")])
    ingest(world.spark, world.definition())
    world.spark.sql(f"DELETE FROM delta.`{world.folder}/table` WHERE id = 1")
    (writer,) = troubles(world)
    assert writer.outcome is Outcome.WARNING
    assert writer.text.startswith("1 of the last ") and "the newest is version 2 (DELETE)" in writer.text
    world.recreate_topic()
    world.spark.sql(f"OPTIMIZE delta.`{world.folder}/table`")
    written = (
        world.spark.readStream.format("rate")
        .load()
        .selectExpr("value AS id", "'x' AS name", "1.0bd AS amount")
    )
    stream = written.writeStream.format("delta").trigger(once=True)
    stream.option("checkpointLocation", f"{world.folder}/stream").start(
        f"{world.folder}/table"
    ).awaitTermination()
    writer = next(f for f in troubles(world) if f.what == "writers of the table")
    assert writer.text.startswith("2 of the last ") and "(STREAMING UPDATE)" in writer.text
    gap = next(f for f in troubles(world) if f.what == "progress")
    assert gap.outcome is Outcome.FAILS and "was deleted and created anew" in gap.text


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ("'bridge.pipeline' = 'other'", "belongs to pipeline 'other', not 'orders'"),
        ("'delta.enableChangeDataFeed' = 'false'", "the change data feed is off"),
        ("'delta.appendOnly' = 'true'", "has delta.appendOnly = true, but an ingest updates"),
    ],
)
def test_a_table_that_an_ingest_refuses(make: Make, properties: str, text: str) -> None:
    world = make()
    feed = "" if "Feed" in properties else "'delta.enableChangeDataFeed' = 'true', "
    world.spark.sql(
        f"CREATE TABLE delta.`{world.folder}/table` (id BIGINT, name STRING, amount DECIMAL(10,2)) USING delta "
        f"TBLPROPERTIES ({feed}{properties})"
    )
    (found,) = troubles(world)
    assert (found.what, found.outcome) == ("table", Outcome.FAILS) and text in found.text
    with pytest.raises(TableError) as refused:
        ingest(world.spark, world.definition())
    assert str(refused.value) == found.text


def test_a_table_that_an_ingest_changes_first(make: Make) -> None:
    """Its columns are added and widened by the run, so that they are no trouble; others are."""
    world = make(delta="path: table, merge-schema: true")
    create_fed(world.spark, f"{world.folder}/table", "id INT, amount STRING")
    (found,) = troubles(world)
    assert (
        "other type: `amount` is string" in found.text and "name" not in found.text.split("change the DDL")[0]
    )
    world.spark.sql(
        f"ALTER TABLE delta.`{world.folder}/table` SET TBLPROPERTIES ('bridge.pipeline' = 'other')"
    )
    world.delta = "path: table, merge-columns: all"
    (found,) = troubles(world)
    assert "belongs to pipeline 'other' alone" in found.text


def test_a_start_that_the_topic_does_not_have(make: Make) -> None:
    plain = {"connector": "kafka", "format": "json", "key.format": None, "value.format": None}
    world = make(
        cleanup="delete",
        columns="id BIGINT, name STRING",
        options={
            **plain,
            "scan.startup.mode": "specific-offsets",
            "scan.startup.specific-offsets": "partition:0,offset:999",
        },
    )
    (found,) = troubles(world)
    assert (found.what, found.outcome) == ("progress", Outcome.FAILS) and "legal is 0 to 0" in found.text


def test_a_checkpoint_that_is_a_file(make: Make) -> None:
    world = make()
    (world.folder / "checkpoint").write_text("")
    found = troubles(world)
    assert {(f.what, f.outcome) for f in found} == {("other runs", Outcome.FAILS)}


@pytest.mark.parametrize(
    ("module", "run", "text"),
    [
        (
            "prometheus_client",
            {"metrics": "127.0.0.1:9464"},
            "run.metrics needs prometheus-client: pip install",
        ),
        ("openlineage", {"lineage": "lineage.jsonl"}, "run.lineage needs openlineage"),
    ],
)
def test_a_library_that_is_missing(
    make: Make, monkeypatch: pytest.MonkeyPatch, module: str, run: dict[str, object], text: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    found = examine(make().spark, make().definition(run=run), sends=False)
    assert [(f.what, f.outcome.value) for f in found if text in f.text] == [("monitoring", "fails")]


def test_a_feed_that_is_gone(make: Make) -> None:
    world, copy = make(), make()
    world.send([upsert(1, "a")])
    ingest(world.spark, world.definition())
    publish(world.spark, copy.definition("copy"))
    shutil.rmtree(world.folder / "table")
    world.create_table()
    for number in range(4):
        world.spark.sql(f"INSERT INTO delta.`{world.folder}/table` VALUES ({number}, 'x', 1)")
    (found,) = [f for f in troubles(copy, sends=True, name="copy") if f.outcome is Outcome.FAILS]
    assert found.what == "progress"


def test_a_disk_that_is_full(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make()
    usage = shutil.disk_usage("/")
    for free, outcome in ((0.04, Outcome.WARNING), (0.001, Outcome.FAILS)):
        left = usage._replace(free=int(usage.total * free))
        monkeypatch.setattr(shutil, "disk_usage", lambda _, left=left: left)
        assert {(f.what, f.outcome) for f in troubles(world)} == {("disk", outcome)}


BROKEN = {
    "brokers that do not answer": "test_doctor.py::test_brokers_that_do_not_answer",
    "brokers older than those tested": "../../embedded/test_broker_versions.py::test_an_ingest_and_a_publish",
    "a topic that is missing": "test_doctor.py::test_a_topic_that_is_not_there",
    "an upsert topic that is not compacted": "test_doctor.py::test_a_policy_that_contradicts_the_connector",
    "an append-only topic that is compacted": "test_doctor.py::test_a_policy_that_contradicts_the_connector",
    "an upsert topic that is deleted by age, too": "test_doctor.py::test_a_policy_that_contradicts_the_connector",
    "replicas that are not in sync": "test_doctor.py::test_replicas",
    "fewer replicas than min.insync.replicas": "test_doctor.py::test_settings_under_which_nothing_can_be_sent",
    "records larger than max.message.bytes": "test_doctor.py::test_settings_under_which_nothing_can_be_sent",
    "a login without rights": "../../kafka/test_client.py::test_no_right_to_the_topic",
    "no table to publish": "test_doctor.py::test_a_table_that_cannot_be_published",
    "a table with other columns": "test_doctor.py::test_a_table_that_cannot_be_published",
    "a table of another pipeline": "test_doctor.py::test_a_table_that_an_ingest_refuses",
    "a table without a change feed": "test_doctor.py::test_a_table_that_an_ingest_refuses",
    "a table that only takes rows": "test_doctor.py::test_a_table_that_an_ingest_refuses",
    "columns that another pipeline has": "test_doctor.py::test_a_table_that_an_ingest_changes_first",
    "a start that the topic does not have": "test_doctor.py::test_a_start_that_the_topic_does_not_have",
    "a checkpoint that is a file": "test_doctor.py::test_a_checkpoint_that_is_a_file",
    "a library that is missing": "test_doctor.py::test_a_library_that_is_missing",
    "another writer of the table": "test_doctor.py::test_another_writer_and_a_topic_that_was_created_anew",
    "a topic that was created anew": "test_doctor.py::test_another_writer_and_a_topic_that_was_created_anew",
    "a table that was replaced": "test_doctor.py::test_a_feed_that_is_gone",
    "a disk that is full": "test_doctor.py::test_a_disk_that_is_full",
    "a registry that does not answer": "test_surroundings.py::test_a_registry_that_does_not_answer",
    "a transaction longer than brokers allow": "test_surroundings.py::test_a_transaction_that_no_broker_allows",
    "progress that Kafka forgets": "test_surroundings.py::test_brokers_that_forget",
    "transactional ids that expire": "test_surroundings.py::test_brokers_that_forget",
    "too few brokers for transactions": "test_surroundings.py::test_brokers_that_forget",
    "a clock that is ahead": "test_surroundings.py::test_a_clock_that_is_ahead",
    "another run at work": "test_surroundings.py::test_another_run",
    "writers on S3 that lose commits": "test_surroundings.py::test_writers_on_s3_that_do_not_exclude_each_other",
    "a heap larger than the machine": "test_surroundings.py::test_memory",
    "a suite that cannot be read": "test_surroundings.py::test_a_suite_that_cannot_be_read",
}
"""What the doctor finds, and where it is broken on purpose."""


@pytest.mark.parametrize("what", BROKEN)
def test_each_set_up_is_broken_somewhere(what: str) -> None:
    file, _, name = BROKEN[what].partition("::")
    assert f"def {name}" in (Path(__file__).parent / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("replicas", "acks", "told"),
    [
        (Replicas(3, 3), "all", []),
        (
            Replicas(3, 2),
            "all",
            [("warning", "has 2 replicas in sync and min.insync.replicas=2: the publish stops")],
        ),
        (
            Replicas(3, 1),
            "all",
            [("fails", "has 1 of 3 replicas in sync and min.insync.replicas=2: no record")],
        ),
        (Replicas(1, 1), "-1", [("fails", "has 1 replicas and min.insync.replicas=2: no record")]),
        (Replicas(1, 1), "1", []),
        (Replicas(3, 1), "0", []),
    ],
)
def test_replicas(replicas: Replicas, acks: str, told: list[tuple[str, str]]) -> None:
    topic = topic_of("t", servers="none", properties={"acks": acks})
    found = list(sending(topic, "t", replicas, {"min.insync.replicas": "2"}))
    assert [outcome.value for outcome, _ in found] == [outcome for outcome, _ in told]
    assert all(text in shown for (_, text), (_, shown) in zip(told, found, strict=True))
