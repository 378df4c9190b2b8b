"""Where a script keeps its state, and which pipelines it consists of; without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.definition import DeltaTarget, TopicCreation
from bridge.pipelines.scripts.state import ScriptState
from tests.sql.scripts import SOURCES, load, sink

COUNTS = f"{SOURCES}{sink('a STRING, b BIGINT', 'a')}INSERT INTO s SELECT city, COUNT(*) FROM users GROUP BY city;\n"


def state(text: str) -> ScriptState:
    return ScriptState(load(text))


def test_folders_and_names() -> None:
    found = state(COUNTS)
    base = found.script.base
    assert found.folder == f"{base}/bridge-state/t"
    users, orders = found.tables["users"], found.tables["orders"]
    ingest, publish = found.ingest(users), found.publish(found.script.inserts[0])
    assert ingest is not None and publish is not None
    assert (ingest.name, ingest.delta.path) == ("t.sources-users", f"{base}/bridge-state/t/sources/users")
    assert ingest.run.checkpoint == f"{base}/bridge-state/t/checkpoints/sources-users"
    assert (publish.name, publish.delta.path) == ("t.results-s", f"{base}/bridge-state/t/results/s")
    assert publish.topic.names == ("s",) and publish.topic.create == TopicCreation(
        config={"cleanup.policy": "compact"}
    )
    assert found.ingest(orders) is None and found.source_target(orders).path == f"{base}/lake/orders"


def test_the_folder_and_the_name_of_the_script_can_be_set() -> None:
    found = state(f"SET 'bridge.state' = 's3a://lake/state/';\nSET 'pipeline.name' = 'My counts';\n{COUNTS}")
    assert found.folder.startswith("s3a://lake/state/My_counts-")
    assert found.result_name(found.script.inserts[0]).endswith(".s")


def test_a_delta_sink_is_its_own_result() -> None:
    text = COUNTS.replace(sink("a STRING, b BIGINT", "a"), sink("a STRING, b BIGINT", "a", "delta"))
    found = state(text)
    plan = found.script.inserts[0]
    assert found.publish(plan) is None
    assert found.result_target(plan).path == f"{found.script.base}/lake/s"


def test_positions_are_kept_where_an_insert_needs_them() -> None:
    last = f"{SOURCES}{sink('a STRING', 'a')}INSERT INTO s SELECT region FROM views;\n"
    added = f"{SOURCES}{sink('a STRING', connector='kafka')}INSERT INTO s SELECT region FROM views;\n"
    for text, kept in ((last, True), (added, False)):
        found = state(text)
        definition = found.ingest(found.tables["views"])
        assert definition is not None
        assert ("__offset" in definition.topic.schema.names) is kept


def test_quarantines_are_beside_the_tables() -> None:
    delta = COUNTS.replace(sink("a STRING, b BIGINT", "a"), sink("a STRING, b BIGINT", "a", "delta"))
    for text, place in ((COUNTS, "bridge-state/t/results/s"), (delta, "lake/s")):
        found = state(f"SET 'bridge.bad-records' = 'quarantine';\n{text}")
        quarantine = found.quarantine(found.script.inserts[0])
        assert quarantine == DeltaTarget(f"{found.script.base}/{place}_quarantine")
    ingest = found.ingest(found.tables["users"])
    assert ingest is not None and ingest.quarantine is not None
    assert ingest.quarantine.path == f"{found.script.base}/bridge-state/t/sources/users_quarantine"
    assert state(COUNTS).quarantine(found.script.inserts[0]) is None


def test_several_inserts_into_one_sink() -> None:
    kafka = sink("a STRING", connector="kafka").replace(
        "'format'",
        "'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'tx', 'format'",
    )
    inserts = "INSERT INTO s SELECT region FROM views;\n" * 2
    found = state(f"{SOURCES}{kafka}{inserts}")
    publishes = [found.publish(plan) for plan in found.script.inserts]
    assert [p.topic.sink.transactional_id_prefix for p in publishes if p] == ["tx", "tx-2"]


def test_inserts_that_write_columns_of_one_table_have_one_publish() -> None:
    inserts = (
        "INSERT INTO s (a, b) SELECT region, 1 FROM views;\n"
        "INSERT INTO s (a, c) SELECT city, CAST(COUNT(*) AS INT) FROM users GROUP BY city;\n"
    )
    found = state(SOURCES + sink("a STRING, b INT, c INT", "a") + inserts)
    one, other = found.script.inserts
    assert found.result_target(one) == replace(found.result_target(other), merge_columns=("b",))
    assert found.publish(one) == found.publish(other) == found.publishes["s"]
    assert list(found.publishes) == ["s"] and found.publishes["s"].delta.merge_columns == ()
    assert found.is_sent_later(one) and not found.is_sent_later(other)
    assert [found.result_name(plan) for plan in (one, other)] == ["t.s", "t.s-2"]


@pytest.mark.parametrize(
    ("source", "feeds"),
    [("'topic' = 'views'", False), ("'topic' = 's'", True), ("'topic-pattern' = 's.*'", True)],
)
def test_whether_an_insert_reads_what_another_one_writes(source: str, feeds: bool) -> None:
    text = SOURCES.replace("'topic' = 'views'", source) + sink("a STRING, b BIGINT", "a")
    found = state(f"{text}INSERT INTO s SELECT region, COUNT(*) FROM views GROUP BY region;\n")
    assert found.feeds_itself() is feeds
