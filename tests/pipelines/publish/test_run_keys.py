"""A publish whose PRIMARY KEY is not the one by which an ingest merges the table."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from tests.pipelines.world import Make, World

MakeBoth = Callable[..., tuple[World, World]]

COLUMNS = "id BIGINT, region STRING, name STRING, PRIMARY KEY ({}) NOT ENFORCED"


@pytest.fixture
def worlds_of(make: Make) -> MakeBoth:
    """The topic of an ingest by one key, and the topic of a publish of its table by another."""

    def made(inward: str, outward: str, **options: str) -> tuple[World, World]:
        worlds = [make(columns=COLUMNS.format(key)) for key in (inward, outward)]
        worlds[1].options = options
        return worlds[0], worlds[1]

    return made


def row(key: tuple[str, ...], id: int, region: str, name: str | None) -> tuple[str, str | None]:
    """A record of the topic with that key; without a name, a tombstone."""
    whole = {"id": id, "region": region, "name": name}
    return json.dumps({part: whole[part] for part in key}), None if name is None else json.dumps(whole)


def ingested(into: World, *records: tuple[str, str | None]) -> None:
    into.send(records)
    ingest(into.spark, into.definition("into", run={"checkpoint": "into"}))


def folded(out: World) -> dict[str, object]:
    """The last value of each record key."""
    last: dict[str, object] = {}
    for key, value in out.received():
        assert key is not None
        last[key.decode()] = None if value is None else json.loads(value)
    return {key: value for key, value in last.items() if value is not None}


def published(out: World) -> tuple[int, int]:
    done = publish(out.spark, out.definition())
    return done.records_out, done.tombstones


@pytest.mark.parametrize("guarantee", ["at-least-once", pytest.param("exactly-once", marks=pytest.mark.slow)])
def test_a_key_of_more_columns_leaves_no_ghost(worlds_of: MakeBoth, guarantee: str) -> None:
    """The row of id 1 gets another region: the key that it had goes out as a tombstone."""
    into, out = worlds_of("id", "id, region")
    if guarantee == "exactly-once":
        prefix = {"sink.transactional-id-prefix": f"{out.topic}-tx", "sink.parallelism": "2"}
        out.options = {"sink.delivery-guarantee": guarantee, **prefix}
    ingested(into, row(("id",), 1, "eu", "a"), row(("id",), 2, "eu", "b"))
    assert published(out) == (2, 0)
    ingested(into, row(("id",), 1, "us", "a"), row(("id",), 2, "eu", "b2"))
    assert published(out) == (3, 1)
    assert folded(out) == {
        '{"id":1,"region":"us"}': {"id": 1, "region": "us", "name": "a"},
        '{"id":2,"region":"eu"}': {"id": 2, "region": "eu", "name": "b2"},
    }


def test_a_key_of_fewer_columns_takes_the_row_that_is_left(worlds_of: MakeBoth) -> None:
    """One batch deletes (1, eu) and inserts (1, us): of id 1 that is one record, no tombstone beside it."""
    into, out = worlds_of("id, region", "id")
    both = ("id", "region")
    ingested(into, *(row(both, n, "eu", "a") for n in range(20)))
    assert published(out) == (20, 0)
    ingested(into, *(r for n in range(20) for r in (row(both, n, "us", "b"), row(both, n, "eu", None))))
    assert published(out) == (20, 0)
    assert folded(out) == {f'{{"id":{n}}}': {"id": n, "region": "us", "name": "b"} for n in range(20)}
