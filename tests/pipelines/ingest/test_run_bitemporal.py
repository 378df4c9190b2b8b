"""`delta.history: bitemporal`: what the table knew stays, with its system time; and what else knows of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from bridge import failpoints
from bridge.embedded.broker import Broker
from bridge.errors import DefinitionError, TableError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.quality.check import check
from bridge.pipelines.quality.suite_proposal import propose
from bridge.pipelines.resync.topic_to_table import resync
from bridge.rows import Change
from tests.docs.pages import DOCS, Page
from tests.pipelines.ingest.test_run_history import (
    COLUMNS,
    add,
    changes_of,
    delete,
    of_oracle,
    rows,
    seconds,
    stop_at,
)
from tests.pipelines.ingest.test_run_sequence import ORDERED, applied, of_page
from tests.pipelines.world import DEBEZIUM, Record, World

BITEMPORAL = f"{ORDERED}, history: bitemporal"
NAMED = f"{BITEMPORAL}, history-columns: [valid_from, valid_to, is_current, known_from, known_to]"
PAGE = DOCS / "histories.md"
IN_2100 = "TIMESTAMP '2100-01-01 00:00:00'"


@pytest.fixture
def make(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> Callable[..., World]:
    def made(**more: Any) -> World:
        given = {"columns": COLUMNS, "options": DEBEZIUM, "delta": BITEMPORAL, "cleanup": "delete", **more}
        return World.make(spark, broker, lake, unique, **{"partitions": 1, **given})

    return made


def records_of(text: str) -> list[Record]:
    return [
        add(int(words[1]), words[2], int(words[3])) if words[0] == "set" else delete(*map(int, words[1:]))
        for words in of_page(text)
    ]


def shown(found: list[Row], times: list[datetime | None]) -> list[list[str]]:
    """Id, name, start, end and both system times, each as its place among `times`, as docs/histories.md has them."""
    assert all(r[-3] == (r[-4] is None) for r in found)
    ordered = sorted(found, key=lambda r: (r[0], r[-5], r[-2]))
    return [
        [
            str(r[0]),
            r[1],
            seconds(r[-5]),
            seconds(r[-4]),
            *("-" if t is None else f"{times.index(t)}00" for t in r[-2:]),
        ]
        for r in ordered
    ]


def known_now(world: World) -> list[list[str]]:
    found = [r for r in world.table().collect() if r[-1] is None]
    return [each[:4] for each in shown(found, [None, *{r[-2] for r in found}])]


def test_the_page_is_right() -> None:
    """What was known at each time of docs/histories.md is what the oracle says of the records up to it."""
    done: list[Change] = []
    states: dict[int, list[list[str]]] = {}
    for at, records, expected in Page(PAGE).rows("At"):
        done += changes_of(records)
        states[int(at)] = of_oracle(done)
        for time, state in states.items():
            known = (r for r in of_page(expected) if int(r[4]) <= time and (r[5] == "-" or time < int(r[5])))
            assert [row[:4] for row in known] == state


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["driver", "spark"])
def test_what_was_known_stays(engine: str, make: Callable[..., World]) -> None:
    """The batches of docs/histories.md, each applied by a run of its own, and its queries."""
    world = make(sections=f"merge: {{engine: {engine}}}\n")
    query, of_now = (s.text for s in Page(PAGE).snippets if s.language == "sql" and "__system" in s.text)
    times: list[datetime | None] = [None]
    states: list[list[tuple[Any, ...]]] = []
    for at, records, expected in Page(PAGE).rows("At"):
        done = applied(world, *records_of(records))
        assert (done.engine or "").startswith(engine)
        found = world.table().collect()
        times.append(max(t for r in found for t in r[-2:] if t is not None))
        assert times[-1] is not None and at == f"{len(times) - 1}00"
        assert shown(found, times) == sorted(of_page(expected), key=lambda r: (r[0], r[2], r[4]))
        states.append(sorted(r[:5] for r in found if r[-1] is None))
    assert times[1:] == sorted(set(times[1:]), key=str)
    folder = f"{world.folder}/table"
    for time, state in zip(times[1:], states, strict=True):
        assert time is not None
        text = query.replace("/lake/customers_history", folder).replace("'2026-11-01'", f"'{time}'")
        assert sorted(world.spark.sql(text).collect()) == sorted(row[:2] for row in state)
    assert world.spark.sql(of_now.replace("/lake/customers_history", folder)).collect() == []
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["driver", "spark"])
def test_a_system_time_is_later_than_all_before(engine: str, make: Callable[..., World]) -> None:
    """As if the clock had gone back. A batch without an effect leaves all as it is."""
    world = make(sections=f"merge: {{engine: {engine}}}\n")
    applied(world, add(1, "a", 1), add(2, "x", 2))
    world.sql(f"UPDATE t SET `__system_from` = {IN_2100} WHERE id = 2")
    applied(world, add(1, "b", 3))
    known = [r for r in world.table().collect() if r["id"] == 1]
    (ended,) = {r["__system_to"] for r in known if r["__system_to"]}
    assert ended.year == 2100 and ended.microsecond in (1, 1000)
    assert {r["__system_from"] for r in known if not r["__system_to"]} == {ended}
    before = sorted(world.table().collect(), key=str)
    applied(world, add(1, "b", 3), delete(1, 0))
    assert sorted(world.table().collect(), key=str) == before
    applied(world, add(1, "c", 5))
    assert max(r["__system_from"] for r in world.table().collect()) > ended


@pytest.mark.slow
def test_files_without_statistics_are_left_to_spark(make: Callable[..., World]) -> None:
    properties = "properties: {delta.dataSkippingNumIndexedCols: '2'}"
    world = make(delta=f"{BITEMPORAL}, {properties}")
    applied(world, add(1, "a", 1))
    done = applied(world, add(1, "b", 3))
    assert done.engine is not None and "has no statistics of '__system_from', its system time" in done.engine
    assert known_now(world) == rows("1 a 1 3, 1 b 3 -")


@pytest.mark.slow
def test_a_batch_whose_answer_was_lost_comes_again(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make()
    applied(world, add(1, "a", 1))
    for number, point in enumerate(("ingest.before-merge", "ingest.after-merge")):
        world.send([add(1, "b", 10 * number + 5), delete(1, 10 * number + 7), delete(2, 3)])
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "hit", partial(stop_at, point))
            with pytest.raises(RuntimeError, match=point):
                ingest(world.spark, world.definition())
        ingest(world.spark, world.definition())
        assert verify(world.spark, world.definition()).equal
    applied(world, add(2, "late", 2))
    assert known_now(world) == rows("1 a 1 5, 1 b 5 7, 1 b 15 17, 2 late 2 3")
    assert world.table().count() == 5, "the row a alone had another end"


@pytest.mark.slow
def test_what_others_make_of_it(make: Callable[..., World]) -> None:
    """A replay adds what is known now, a check judges this, and a resync is refused."""
    columns = COLUMNS.replace("name STRING", "name STRING, n INT")
    world = make(
        columns=columns,
        sections="ingest: {bad-records: quarantine}\nquality: {suite: suite.json, on-failure: warn}\n",
    )
    applied(world, add(1, "a", 1), add(1, "bad", 3, n="x"), add(1, "c", 5))
    world.spark.sql(
        f"UPDATE delta.`{world.folder}/table_quarantine` SET value = "
        "encode(replace(decode(value, 'UTF-8'), '\"x\"', '7'), 'UTF-8')"
    ).collect()
    assert replay(world.spark, world.definition()).replayed == 1
    assert known_now(world) == rows("1 a 1 3, 1 bad 3 5, 1 c 5 -")
    assert world.table().where("`__system_to` IS NOT NULL").count() == 1
    propose(world.spark, world.definition())
    verdict = check(world.spark, world.definition()).verdict
    assert verdict.success, [(o.title, o.observed, o.reason) for o in verdict.failed]
    with pytest.raises(DefinitionError, match=r"`delta.history: bitemporal` .* RESTORE the table"):
        resync(world.spark, world.definition())
    world.delta = BITEMPORAL.replace("bitemporal", "scd2")
    with pytest.raises(
        TableError, match=r"is a history in the columns .*__system_to, and `delta.history` says"
    ):
        ingest(world.spark, world.definition())
    world.delta, world.columns = BITEMPORAL, columns.replace("value.source.timestamp", "timestamp")
    with pytest.raises(TableError, match=r"`history: bitemporal`, .* give the pipeline another table"):
        ingest(world.spark, world.definition())


@pytest.mark.slow
def test_rows_are_published_by_key_or_with_all_starts(make: Callable[..., World]) -> None:
    world = make(delta=NAMED)
    ingested, sent, out = world.definition(), world.topic, f"{world.topic}-out"
    applied(world, add(1, "a", 1), add(2, "x", 2))
    world.topic, world.options, world.delta = out, {}, "path: table"
    world.broker.create_topic(out, partitions=1)
    world.columns = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED"
    with pytest.raises(TableError, match=r"set the PRIMARY KEY to \(id, valid_from, known_from\)"):
        publish(world.spark, world.definition("all"))
    world.sections = "publish: {history: current}\n"
    current = world.definition("out", run={"checkpoint": "out-checkpoint"})
    found: list[list[tuple[int, str | None]]] = []
    batches: list[list[Record]] = [[], [add(1, "c", 5), delete(2, 6)], [add(1, "late", 3)], [delete(1, 9)]]
    for records in batches:
        world.topic, world.options = sent, DEBEZIUM
        world.send(records)
        ingest(world.spark, ingested)
        publish(world.spark, current)
        there = sum(map(len, found))
        names = [(k or b"", json.loads(v)["name"] if v else None) for k, v in world.received(out)[there:]]
        found.append([(json.loads(k)["id"], name) for k, name in names])
    assert list(map(sorted, found)) == [[(1, "a"), (2, "x")], [(1, "c"), (2, None)], [], [(1, None)]]
    assert verify(world.spark, current, direction="publish").equal
