"""Two topics in one table (`delta.merge-columns`): each pipeline writes its columns, a publish sends the wide rows."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from bridge.errors import DefinitionError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest import run_state
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.status import status
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync.topic_to_table import resync
from tests.pipelines.world import Make, World, tombstone

Topics = tuple[World, World]
CUSTOMERS = "id BIGINT, name STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED"
PAYMENTS = "id BIGINT, paid INT, PRIMARY KEY (id) NOT ENFORCED"
WIDE = "id BIGINT, name STRING, city STRING, paid INT, PRIMARY KEY (id) NOT ENFORCED"


@pytest.fixture
def topics(make: Make) -> Topics:
    own = partial(make, delta="path: table, merge-columns: all", partitions=2)
    return own(columns=CUSTOMERS), own(columns=PAYMENTS)


def record(id: int, **values: Any) -> tuple[str, str]:
    return f'{{"id":{id}}}', json.dumps({"id": id, **values})


def both(topics: Topics, **run: object) -> tuple[Any, Any]:
    customers, payments = topics
    return (
        customers.definition("customers", run),
        payments.definition("payments", {"checkpoint": "checkpoint-payments", **run}),
    )


def documents(received: Iterable[tuple[bytes | None, bytes | None]]) -> list[tuple[Any, Any]]:
    parsed = [(json.loads(k or b"")["id"], v and json.loads(v)) for k, v in received]
    return sorted(parsed, key=lambda pair: pair[0])


def test_two_topics_become_the_rows_of_one_table_and_are_published_once(
    topics: Topics, unique: Callable[[str], str]
) -> None:
    customers, payments = topics
    spark, (ingest_customers, ingest_payments) = customers.spark, both(topics)
    customers.send([record(1, name="a", city=None), record(2, name="b", city="x"), record(3, name=None)])
    payments.send([record(2, paid=20), record(4, paid=40), record(5, paid=None)])
    first = ingest(spark, ingest_customers)
    assert (first.inserted, first.unchanged) == (2, 1)
    ingest(spark, ingest_payments)
    assert customers.rows() == [(1, "a", None, None), (2, "b", "x", 20), (4, None, None, 40)]

    wide = customers.broker
    customers.topic, topic = unique("wide"), customers.topic
    wide.create_topic(customers.topic, partitions=1)
    outgoing = replace(customers, columns=WIDE, delta="path: table").definition(
        "wide", {"checkpoint": "checkpoint-wide"}
    )
    publish(spark, outgoing)
    sent = customers.received()
    assert documents(sent) == [
        (1, {"id": 1, "name": "a", "city": None, "paid": None}),
        (2, {"id": 2, "name": "b", "city": "x", "paid": 20}),
        (4, {"id": 4, "name": None, "city": None, "paid": 40}),
    ]
    out, customers.topic = customers.topic, topic

    # Of one topic only; of both, in either order; and a change without effect.
    customers.send([tombstone(1), tombstone(2), record(4, name="d")])
    payments.send([tombstone(4), record(6, paid=60)])
    ingest(spark, ingest_customers)
    ingest(spark, ingest_payments)
    payments.send([tombstone(2), tombstone(9), record(6, paid=60)])
    last = ingest(spark, ingest_payments)
    assert (last.deleted, last.updated, last.unchanged) == (1, 0, 2)
    assert customers.rows() == [(4, "d", None, None), (6, None, None, 60)]
    publish(spark, outgoing)
    news = customers.received(out)[len(sent) :]
    # Each of the three batches is a version of the table; key 2 lost its name, then its row, and 4 changed twice.
    expected: list[tuple[int, Any]] = [
        (1, None),
        (2, {"id": 2, "name": None, "city": None, "paid": 20}),
        (2, None),
        (4, {"id": 4, "name": "d", "city": None, "paid": 40}),
        (4, {"id": 4, "name": "d", "city": None, "paid": None}),
        (6, {"id": 6, "name": None, "city": None, "paid": 60}),
    ]
    assert documents(news) == expected
    assert verify(spark, ingest_customers).equal
    found = status(spark, ingest_payments)
    assert found.pending_records == 0 and found.ingest_batch == 2
    with pytest.raises(DefinitionError, match=r"`delta.merge-columns` is of an ingest.*without this key"):
        publish(spark, ingest_customers)


@pytest.mark.slow
def test_a_publish_of_some_columns_sends_no_change_of_the_others(
    topics: Topics, unique: Callable[[str], str]
) -> None:
    customers, payments = topics
    spark, (ingest_customers, ingest_payments) = customers.spark, both(topics)
    customers.send([record(1, name="a")])
    ingest(spark, ingest_customers)
    out = replace(customers, topic=unique("names"), delta="path: table")
    out.broker.create_topic(out.topic, partitions=1)
    publish(spark, out.definition("names", {"checkpoint": "checkpoint-names"}))
    payments.send([record(1, paid=1), record(2, paid=2)])
    ingest(spark, ingest_payments)
    customers.send([record(1, name="b")])
    ingest(spark, ingest_customers)
    publish(spark, out.definition("names", {"checkpoint": "checkpoint-names"}))
    assert [v and json.loads(v)["name"] for k, v in out.received() if b"1" in (k or b"")] == ["a", "b"]


@pytest.mark.slow
def test_a_resync_repairs_the_columns_of_its_pipeline_only(topics: Topics) -> None:
    customers, payments = topics
    spark, (ingest_customers, ingest_payments) = customers.spark, both(topics)
    customers.send([record(n, name=f"n{n}") for n in range(4)])
    payments.send([record(n, paid=n) for n in range(2, 6)])
    ingest(spark, ingest_customers)
    ingest(spark, ingest_payments)
    right = customers.rows()
    table = f"delta.`{customers.folder}/table`"
    spark.sql(f"UPDATE {table} SET name = 'wrong', paid = 99 WHERE id IN (2, 3)")
    spark.sql(f"DELETE FROM {table} WHERE id = 0")
    spark.sql(f"INSERT INTO {table} VALUES (7, 'ghost', NULL, NULL), (8, 'ghost', NULL, 8)")
    found = verify(spark, ingest_customers).comparison
    assert (found.different, found.missing_in_table, found.missing_in_topic) == (2, 1, 2)
    planned = resync(spark, ingest_customers, dry_run=True)
    done = resync(spark, ingest_customers)
    assert (planned.inserted, planned.updated, planned.deleted) == (1, 2, 2)
    assert (done.inserted, done.updated, done.deleted) == (1, 2, 2)
    assert verify(spark, ingest_customers).equal
    assert customers.rows() == [
        (0, "n0", None, None),
        (1, "n1", None, None),
        (2, "n2", None, 99),
        (3, "n3", None, 99),
        (4, None, None, 4),
        (5, None, None, 5),
        (8, None, None, 8),
    ]
    resync(spark, ingest_payments)
    assert customers.rows() == right
    # The ingests go on from there.
    payments.send([tombstone(5)])
    ingest(spark, ingest_customers)
    ingest(spark, ingest_payments)
    assert customers.rows() == right[:-1]


def test_two_pipelines_at_the_same_time(topics: Topics) -> None:
    """The keys are the same ones, so that their commits conflict, and an insert of one is an update of the other."""
    customers = topics[0]
    dice = random.Random(7)
    oracle: list[dict[int, Any]] = [{}, {}]
    for batch in range(3):
        for number, world in enumerate(topics):
            for id in dice.sample(range(12), 6):
                if dice.random() < 0.3:
                    oracle[number].pop(id, None)
                    world.send([tombstone(id)])
                else:
                    name = f"{batch}-{id}"
                    oracle[number][id] = name if number == 0 else batch
                    world.send([record(id, name=name) if number == 0 else record(id, paid=batch)])
    definitions = both(topics, **{"max-offsets-per-batch": 8})
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            ingest(customers.spark.newSession(), definitions[number])
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    assert not failures, failures
    ids = {*oracle[0], *oracle[1]}
    # Either may make the table, so that the columns of either may come first in it.
    rows = customers.table().select("id", "name", "city", "paid").collect()
    assert sorted(map(tuple, rows)) == sorted((id, oracle[0].get(id), None, oracle[1].get(id)) for id in ids)


def test_a_pipeline_without_records_keeps_its_progress_in_the_log(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    customers, _ = topics
    spark, (ingest_customers, _) = customers.spark, both(topics)
    customers.send([record(1, name="a")])
    ingest(spark, ingest_customers)
    before = customers.history()
    ingest(spark, ingest_customers)
    assert len(customers.history()) == len(before)
    monkeypatch.setattr(run_state, "PROGRESS_MS", 0)
    done = ingest(spark, ingest_customers)
    assert done.batches == 0
    newest, old = (json.loads(commit["userMetadata"])["bridge"] for commit in customers.history()[:2])
    assert (newest["offsets"], newest["batch"]) == (old["offsets"], old["batch"] + 1)
    assert customers.rows() == [(1, "a", None)]
    customers.send([record(2, name="b")])
    monkeypatch.undo()
    assert ingest(spark, ingest_customers).inserted == 1
