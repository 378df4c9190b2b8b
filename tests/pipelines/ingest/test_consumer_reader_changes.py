"""What consumers read of CDC topics is what Spark's path reads; what they leave to it, they name."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.format_rules.avro_derive import derive
from bridge.format_rules.avro_given import envelope
from bridge.kafka import admin
from bridge.offsets import Offsets
from bridge.pipelines.ingest.consumer_reader import LatestBatch
from tests.pipelines.ingest.test_consumer_reader import COLUMNS, read, rows_of, rows_of_spark
from tests.pipelines.world import DEBEZIUM, ROWS, Make, Record, World, making, readers
from tests.refusals import refusal

_KEYED = {**DEBEZIUM, "key.format": "json", "key.fields": "id"}
make = making(columns=COLUMNS, options=DEBEZIUM, cleanup="delete")


def event(op: str, before: Any = None, after: Any = None) -> str:
    return json.dumps({"before": before, "after": after, "source": {"db": "d", "lsn": 7}, "op": op})


def history(seed: int, count: int) -> list[Record]:
    """A changelog of few keys as Debezium writes it: a key that changes, tombstones, and updates without `before`."""
    draw = random.Random(seed)
    rows: dict[int, dict[str, Any]] = {}
    records: list[Record] = []

    def add(id: int, document: str | None) -> None:
        records.append((f'{{"id":{id}}}', document))

    for n in range(count):
        id = draw.randrange(count // 8)
        row = {
            "id": id,
            "name": draw.choice(["ä", None, f"n{n}"]),
            "amount": n,
            "ok": draw.choice([True, None]),
        }
        if draw.random() < 0.5:
            row["at"] = f"2026-11-25 10:00:00.{n % 1000:03}"
        old = rows.get(id)
        if old is None:
            add(id, event(draw.choice("cr"), None, row))
        elif draw.random() < 0.2:
            add(id, event("d", rows.pop(id), None))
            add(id, draw.choice([None, ""]))
            continue
        elif draw.random() < 0.1:
            moved = max(rows) + 1000
            add(id, event("d", rows.pop(id), None))
            add(id, None)
            rows[moved] = row | {"id": moved}
            add(moved, event("c", None, rows[moved]))
            continue
        else:
            add(id, event("u", draw.choice([old, {"id": id}, None]), row))
        rows[id] = row
    return records


@pytest.mark.parametrize("options", [DEBEZIUM, _KEYED], ids=["without key format", "with key format"])
def test_consumers_read_what_spark_reads(make: Make, options: dict[str, Any]) -> None:
    """Of a drawn changelog, cut into drawn ranges."""
    world = make(options=options)
    world.send(history(1, 300))
    batch = read(world)
    assert isinstance(batch, LatestBatch), batch
    _, end = ends(world)
    draw = random.Random(2)
    cut = Offsets({name: draw.randrange(offset + 1) for name, offset in end.by_partition.items()})
    for start, stop in [ends(world), (ends(world)[0], cut), (cut, end)]:
        batch = read(world, start, stop)
        assert rows_of(batch) == with_deletes(rows_of_spark(world, start, stop))
        assert isinstance(batch, LatestBatch) and batch.read.records == start.lag(stop)


def ends(world: World) -> tuple[Offsets, Offsets]:
    state = admin.describe(world.definition().topic)
    return state.earliest, state.end


def with_deletes(rows: Iterable[str]) -> list[str]:
    """Rows of Spark's path with the two kinds of `LatestBatch`."""
    plain = [row.replace("'-U')", "'-D')").replace("'+I')", "'+U')") for row in rows]
    return sorted(plain)


def as_canal(before: Any, after: Any) -> Any:
    def texts(row: Any) -> Any:
        return {k: v if v is None else str(v).lower() for k, v in row.items()}

    kind = "DELETE" if after is None else "INSERT" if before is None else "UPDATE"
    old = [texts(before)] if kind == "UPDATE" else None
    return {"data": [texts(after or before)], "old": old, "type": kind, "ts": 1}


def as_maxwell(before: Any, after: Any) -> Any:
    kind = "delete" if after is None else "insert" if before is None else "update"
    return {"data": after or before, "type": kind, **({"old": before} if kind == "update" else {})}


def as_ogg(before: Any, after: Any) -> Any:
    kind = "D" if after is None else "I" if before is None else "U"
    return {"before": before, "after": after, "op_type": kind, "current_ts": "2026-11-25 10:00:00"}


@pytest.mark.parametrize(
    ("format", "document"),
    [("canal-json", as_canal), ("maxwell-json", as_maxwell), ("ogg-json", as_ogg)],
)
def test_the_other_formats_in_json(make: Make, format: str, document: Callable[[Any, Any], Any]) -> None:
    world = make(options={**DEBEZIUM, "value.format": format})
    events = [(key, json.loads(value) if value else None) for key, value in history(5, 120)]
    world.send((key, e and json.dumps(document(e["before"], e["after"]))) for key, e in events)
    batch = read(world)
    assert rows_of(batch) == with_deletes(rows_of_spark(world, *ends(world))) != []


def test_debezium_s_events_in_avro(make: Make, registry: SchemaRegistryServer) -> None:
    format = "debezium-avro-confluent"
    world = make(options={**ROWS, "value.format": format, f"value.{format}.url": registry.url})
    row = world.definition().topic.value.row
    schema = derive(envelope(row, row), legacy_timestamps=True, nullable=True)
    client = SchemaRegistryClient({"url": registry.url})
    id = int(client.register_schema(f"{world.topic}-value", Schema(json.dumps(schema), "AVRO")))
    parsed = fastavro.parse_schema(schema)

    def image(row: Any) -> Any:
        if row is None:
            return None
        at = datetime.fromisoformat(row["at"]).replace(tzinfo=timezone.utc) if "at" in row else None
        amount = None if row.get("amount") is None else Decimal(row["amount"]).quantize(Decimal("0.01"))
        return {"name": None, "ok": None, **row, "amount": amount, "at": at}

    records: list[Record] = []
    for key, value in history(6, 120):
        out = io.BytesIO()
        if value:
            given = json.loads(value)
            sides = {side: image(given[side]) for side in ("before", "after")}
            fastavro.schemaless_writer(out, parsed, {**sides, "op": given["op"]})
        records.append((key, b"\0" + id.to_bytes(4, "big") + out.getvalue() if value else None))
    world.send(records)
    batch = read(world)
    assert rows_of(batch) == with_deletes(rows_of_spark(world, *ends(world))) != []


def test_a_key_that_changes_within_a_partition(make: Make) -> None:
    world = make(partitions=1)
    one, two, three = ({"id": n, "name": str(n)} for n in (1, 2, 3))
    world.send([("k", event("u", one, two)), ("k", event("c", None, three)), ("k", event("u", three, one))])
    batch = read(world)
    assert rows_of(batch) == [
        "(1, '1', None, None, None, '+U')",
        "(2, '2', None, None, None, '+U')",
        "(3, None, None, None, None, '-D')",
    ]
    assert rows_of(batch) == with_deletes(rows_of_spark(world, *ends(world)))


def test_a_key_in_two_partitions_is_left_to_spark(make: Make) -> None:
    """Also where a partition has only the key that an update left."""
    world = make()
    world.send([("a", event("u", {"id": 1}, {"id": 2}))], partition=0)
    world.send([("a", event("c", None, {"id": 1}))], partition=1)
    assert refusal(lambda: read(world)) == "a key is in two partitions, or written in two ways"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (event("t"), "field 'op' of a change is missing or unknown"),
        (event("d", None, {"id": 1}), "a delete has no before image"),
        (event("u", None, {"id": 1, "name": "__debezium_unavailable_value"}), "field 'name' of a change has"),
        (event("c", None, {"name": "a"}), "a change has no column of the PRIMARY KEY"),
        ("no json", "a document is not one object"),
    ],
)
def test_what_is_left_to_spark(make: Make, document: str, reason: str) -> None:
    world = make(partitions=1)
    world.send([("k", event("c", None, {"id": 1})), ("k", document), ("k", event("c", None, {"id": 1}))])
    assert (refusal(lambda: read(world)) or "").startswith(reason)


def test_bad_keys_of_records_are_left_to_spark(make: Make) -> None:
    world = make(options=_KEYED, partitions=1)
    world.send([(None, event("c", None, {"id": 1}))])
    assert len(rows_of(read(world))) == 1
    world.send([("no json", event("c", None, {"id": 1}))])
    assert refusal(lambda: read(world))


def test_event_times_are_those_of_superseded_changes_too(make: Make) -> None:
    columns = "id BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at, PRIMARY KEY (id) NOT ENFORCED"
    world = make(columns=columns, partitions=1)
    for at in ("1970-01-01 00:00:09", "1970-01-01 00:00:01"):
        world.send([("k", event("c", None, {"id": 1, "at": at}))])
    batch = read(world)
    assert isinstance(batch, LatestBatch) and batch.newest_event_ms == {(world.topic, 0): 9000}


def test_a_batch_ends_where_its_changes_are_large(make: Make) -> None:
    world = make(partitions=1, sections="merge: {max-batch: 20 kb}")
    world.send([("k", event("c", None, {"id": n, "name": "x" * 1000})) for n in range(100)])
    cut = read(world)
    assert isinstance(cut, LatestBatch)
    (cut_at,) = cut.end.by_partition.values()
    assert cut_at == len(rows_of(cut)) == cut.read.records and 10 < cut_at < 60
    world.send([("k", event("c", None, {"id": 1, "name": "x" * 1000})) for n in range(300)])
    start, end = ends(world)
    half = Offsets({name: 100 for name in start.by_partition})
    assert len(rows_of(read(world, half, end))) == 1


def test_a_run_reads_each_batch_by_who_can(make: Make) -> None:
    """The table is the same as by Spark's source alone, whatever was left to it in between."""
    world = make(partitions=1, sections="ingest: {reader: consumer}\n")
    world.send(history(3, 100))
    toasted = {"id": 0, "name": "__debezium_unavailable_value", "amount": 5}
    world.send(
        [('{"id":0}', event("c", None, {"id": 0, "name": "kept"})), ('{"id":0}', event("u", None, toasted))]
    )
    world.send(history(4, 100))
    reports = world.batches({"max-offsets-per-batch": 60})
    by = readers(reports)
    assert by.count("spark") == 1 and by.count("consumer") >= 3
    other = replace(world, folder=world.folder / "other", sections="ingest: {reader: spark}\n")
    other.folder.mkdir()
    other.batches()
    assert world.rows() == other.rows() != []
