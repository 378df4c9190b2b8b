"""The records of changes: CDC formats, net changes, updates that change nothing, a table with added columns."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.errors import DefinitionError, TableError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.publish.run import publish
from tests.pipelines.world import Make, World

CDC = {"connector": "kafka", "key.format": "json", "key.fields": "id"}


@pytest.fixture
def make(make: Make) -> Make:
    def made(sections: str = "", **more: Any) -> World:
        world = make(partitions=1, cleanup="delete", **more)
        world.sections = sections
        world.create_table(", 'delta.columnMapping.mode'='name'")
        return world

    return made


def history(world: World) -> None:
    """A history with one change of each kind; keys 1 to 4."""
    world.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    world.sql("UPDATE t SET name = 'a2' WHERE id = 1")
    world.sql("UPDATE t SET name = name WHERE id = 2")
    world.sql("DELETE FROM t WHERE id = 3")
    world.sql("UPDATE t SET id = 4 WHERE id = 2")


def row(id: int, name: str, amount: int) -> dict[str, Any]:
    return {"id": id, "name": name, "amount": amount}


A, A2, B, C, B4 = row(1, "a", 1), row(1, "a2", 1), row(2, "b", 2), row(3, "c", 3), row(4, "b", 2)


def values(world: World) -> list[Any]:
    """The topic's documents in their order."""
    return [None if value is None else json.loads(value) for _, value in world.received()]


def changes_by_key(documents: list[Any]) -> dict[int, list[tuple[str, Any, Any]]]:
    """(op, before, after) of each key, in order."""
    changes: dict[int, list[tuple[str, Any, Any]]] = {}
    for document in documents:
        sides = document["before"], document["after"]
        changes.setdefault((sides[1] or sides[0])["id"], []).append((document["op"], *sides))
    return changes


def test_debezium_messages_with_the_row_before_and_after(make: Make) -> None:
    world = make("publish: {start: 'version:1'}\n", options={**CDC, "value.format": "debezium-json"})
    history(world)
    done = publish(world.spark, world.definition())
    assert changes_by_key(values(world)) == {
        1: [("c", None, A), ("u", A, A2)],
        2: [("c", None, B), ("d", B, None)],
        3: [("c", None, C), ("d", C, None)],
        4: [("c", None, B4)],
    }
    assert (done.records_out, done.tombstones) == (7, 0)
    assert verify(world.spark, world.definition(), direction="publish").equal


@pytest.mark.slow
def test_debezium_messages_as_flink_writes_them(make: Make) -> None:
    world = make(
        "publish: {start: 'version:2', update-messages: pair}\n",
        options={**CDC, "value.format": "debezium-json", "sink.delivery-guarantee": "exactly-once"}
        | {"sink.transactional-id-prefix": "pairs"},
    )
    history(world)
    publish(world.spark, world.definition())
    assert changes_by_key(values(world))[1] == [("d", A, None), ("c", None, A2)]


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("canal-json", [("UPDATE", [A2], [A])]),
        ("maxwell-json", [("update", A2, A)]),
        ("ogg-json", [("U", A2, A)]),
    ],
)
@pytest.mark.slow
def test_other_formats_tell_an_update_whole(make: Make, format: str, expected: list[Any]) -> None:
    world = make("publish: {start: 'version:2'}\n", options={**CDC, "value.format": format})
    world.sql("INSERT INTO t VALUES (1, 'a', 1)")
    world.sql("UPDATE t SET name = 'a2' WHERE id = 1")
    publish(world.spark, world.definition())
    names = {"canal-json": ("type", "data", "old"), "maxwell-json": ("type", "data", "old")}
    shown = names.get(format, ("op_type", "after", "before"))
    updates = [tuple(d[n] for n in shown) for d in values(world)]
    assert [(op, _whole(after), _whole(before)) for op, after, before in updates] == [
        (op, _whole(after), _whole(before)) for op, after, before in expected
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"value.format": "avro-confluent", "key.format": "avro-confluent"},
        {**CDC, "value.format": "debezium-avro-confluent", "key.format": "avro-confluent"},
    ],
)
def test_formats_with_a_registry_are_published_and_read_back(
    make: Make, registry: SchemaRegistryServer, options: dict[str, str]
) -> None:
    urls = {f"{part}.{options[f'{part}.format']}.url": registry.url for part in ("key", "value")}
    world = make("publish: {start: 'version:1'}\n", options={**options, **urls})
    history(world)
    publish(world.spark, world.definition())
    assert verify(world.spark, world.definition(), direction="publish").equal


def _whole(side: Any) -> Any:
    """Canal writes text, and Canal and Maxwell may tell of the row before only what differs."""
    if isinstance(side, list):
        return [_whole(one) for one in side]
    return {"name": side["name"]} if side else side


@pytest.mark.slow
def test_a_cdc_topic_without_a_key_says_what_that_means(make: Make) -> None:
    options = {"connector": "kafka", "key.format": None, "value.format": "debezium-json"}
    world = make("publish: {start: 'version:1'}\n", options=options)
    history(world)
    done = publish(world.spark, world.definition())
    assert (
        done.warning is not None
        and "set 'key.format' and 'key.fields', or 'sink.partitioner' = 'fixed'" in done.warning
    )
    assert changes_by_key(values(world))[1] == [("c", None, A), ("u", A, A2)]


@pytest.mark.slow
def test_rows_without_a_key_in_a_cdc_format(make: Make) -> None:
    """Nothing pairs -U with +U: the old row goes, the new one comes."""
    options = {"connector": "kafka", "key.format": None, "value.format": "debezium-json"}
    world = make(
        "publish: {start: 'version:2'}\n",
        options=options,
        columns="id BIGINT, name STRING, amount DECIMAL(10, 2)",
    )
    history(world)
    publish(world.spark, world.definition())
    assert changes_by_key(values(world))[1] == [("d", A, None), ("c", None, A2)]


def test_net_changes_tell_what_became_of_a_key(make: Make) -> None:
    world = make("publish: {start: 'version:2', net-changes: true}\n")
    history(world)
    world.sql("INSERT INTO t VALUES (9, 'x', 9)")
    world.sql("DELETE FROM t WHERE id = 9")
    done = publish(world.spark, world.definition())
    received = {json.loads(key or b"")["id"]: value and json.loads(value) for key, value in world.received()}
    assert received == {1: A2, 2: None, 3: None, 4: B4}
    assert done.records_out == 4


@pytest.mark.slow
def test_added_columns_are_left_out_or_carried(make: Make) -> None:
    world = make()
    world.sql("INSERT INTO t VALUES (1, 'a', 1)")
    publish(world.spark, world.definition())
    world.sql("ALTER TABLE t ADD COLUMNS (extra STRUCT<x: INT>)")
    world.sql("INSERT INTO t VALUES (2, 'b', 2, struct(7))")
    publish(world.spark, world.definition())
    world.sections = "publish: {added-columns: carry}\n"
    world.sql("INSERT INTO t VALUES (3, 'c', 3, struct(8))")
    publish(world.spark, world.definition())
    assert values(world) == [A, B, {**C, "extra": {"x": 8}}]


@pytest.mark.slow
def test_a_table_that_grows_while_it_is_published(make: Make) -> None:
    world = make("publish: {added-columns: carry}\n")
    world.sql("INSERT INTO t VALUES (1, 'a', 1)")

    def grow(_: object) -> None:
        if len(values(world)) == 1:
            world.sql("ALTER TABLE t ADD COLUMNS (extra INT)")
            world.sql("INSERT INTO t VALUES (2, 'b', 2, 5)")

    publish(world.spark, world.definition(), listener=grow)
    assert values(world) == [A, {**B, "extra": 5}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("DROP COLUMN name", "missing: `name` string"),
        ("RENAME COLUMN name TO title", "missing: `name` string"),
    ],
)
def test_other_changes_of_the_table_stop_before_anything_is_sent(make: Make, change: str, words: str) -> None:
    world = make()
    world.sql("INSERT INTO t VALUES (1, 'a', 1)")
    publish(world.spark, world.definition())
    world.sql(f"ALTER TABLE t {change}")
    with pytest.raises(TableError, match=words):
        publish(world.spark, world.definition())
    assert len(world.received()) == 1


@pytest.mark.parametrize(
    ("section", "options", "words"),
    [
        (
            "update-messages: pair",
            {},
            r"pair requires a CDC format \(.*\); 'json' encodes an update as one record",
        ),
        ("added-columns: carry", {"value.format": "csv"}, "carry cannot be combined with format 'csv'"),
    ],
)
def test_settings_that_would_mean_nothing_are_refused(
    make: Make, section: str, options: dict[str, str], words: str
) -> None:
    world = make(f"publish: {{{section}}}\n", options=options)
    with pytest.raises(DefinitionError, match=words):
        world.definition()


def test_net_changes_need_a_key(make: Make) -> None:
    world = make("publish: {net-changes: true}\n", columns="id BIGINT, name STRING, amount DECIMAL(10, 2)")
    keyless = replace(world, options={"connector": "kafka", "key.format": None})
    with pytest.raises(DefinitionError, match=r"publish\.net-changes: true requires a PRIMARY KEY"):
        keyless.definition()
