"""With a guard disabled, the checker of the rounds must find its fault; with all guards enabled, nothing."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.compute as pc
import pytest
from confluent_kafka import Producer
from pyspark.sql import Column, SparkSession
from pyspark.sql import types as T

from bridge import failpoints
from bridge.columns import col
from bridge.delta.ingest_progress import read_progress
from bridge.embedded.broker import Broker
from bridge.errors import BridgeError, ConcurrentRunError
from bridge.kafka.client_settings import producer_settings
from bridge.kafka.producer import RecordProducer
from bridge.kafka.records import Records
from bridge.kafka.shard import TransactionalShard
from bridge.kafka.shard_state import Cursor, ShardSpec
from bridge.offsets import Offsets
from tests.delta.tables import ENGINES, at, content, frame, made
from tests.faults.checked_ingest import CheckedIngest
from tests.faults.checker import judge
from tests.faults.history import Acked, Commit, History, Record
from tests.faults.reading import Observer, leftovers, log_scratch, open_transactions

onoff = pytest.mark.parametrize("guarded", [True, False], ids=["on", "off"])
Patch = pytest.MonkeyPatch


@pytest.fixture
def judged(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> CheckedIngest:
    return CheckedIngest(spark, broker, lake, unique)


@onoff
@pytest.mark.parametrize("engine", ["spark", pytest.param("driver", marks=pytest.mark.slow)])
def test_delta_s_txn_in_the_commit(
    judged: CheckedIngest, monkeypatch: Patch, guarded: bool, engine: str
) -> None:
    """A second run commits the same batch just before the first one; no lease separates them."""
    ours = SimpleNamespace(lost=False, warning=None, owner="h/1", died=None, check=lambda: None)
    monkeypatch.setattr("bridge.pipelines.ingest.run.acquire_lease", lambda *_: nullcontext(ours))
    if not guarded:
        for module in ("txn_settings", "merge_driver"):
            monkeypatch.setattr(f"bridge.delta.{module}.app_id", lambda _: f"bridge/{uuid.uuid4()}")
    second: list[object] = []

    def meanwhile(name: str) -> None:
        if name == "ingest.before-merge" and not second:
            second.append(None)
            judged.write(2)
            second.append(judged.ingest(engine=engine).batches)

    monkeypatch.setattr(failpoints, "hit", meanwhile)
    judged.write(5)
    if guarded:
        with pytest.raises(ConcurrentRunError, match="has committed batch 0"):
            judged.ingest(engine=engine)
    else:  # it ends in any case, since the other run has deleted its scratch folder
        with suppress(BridgeError):
            judged.ingest(engine=engine)
    assert second == [None, 1]
    verdict = judged.check()
    assert verdict.clean == guarded and bool(verdict.counts["batches not once"]) != guarded, verdict


@onoff
def test_the_txn_of_appended_files(
    spark: SparkSession,
    broker: Broker,
    lake: Path,
    unique: Callable[[str], str],
    monkeypatch: Patch,
    guarded: bool,
) -> None:
    """As above, into a table without a key: the second run's commit comes after the first one has written its files."""
    judged = CheckedIngest(spark, broker, lake, unique, appends=True)
    ours = SimpleNamespace(lost=False, warning=None, owner="h/1", died=None, check=lambda: None)
    monkeypatch.setattr("bridge.pipelines.ingest.run.acquire_lease", lambda *_: nullcontext(ours))
    if not guarded:
        names = (f"run-{n}" for n in count())
        monkeypatch.setattr("bridge.delta.append_files.app_id", lambda _: next(names))
    second: list[object] = []

    def meanwhile(name: str) -> None:
        if name == "ingest.before-merge" and not second:
            second.append(None)
            second.append(judged.ingest().batches)

    monkeypatch.setattr(failpoints, "hit", meanwhile)
    judged.write(5)
    if guarded:
        with pytest.raises(ConcurrentRunError, match="has committed batch 0"):
            judged.ingest()
    else:
        judged.ingest()
    assert second == [None, 1]
    verdict = judged.check()
    assert verdict.records_out and verdict.clean == guarded, verdict
    found = {name for name, times in verdict.counts.items() if times}
    assert found == (set() if guarded else {"batches not once", "duplicated"}), verdict


@pytest.mark.parametrize("guarded", [pytest.param(True, marks=pytest.mark.slow), False], ids=["on", "off"])
def test_offsets_in_the_commit(judged: CheckedIngest, monkeypatch: Patch, guarded: bool) -> None:
    """A run that starts at other offsets, like those of an old checkpoint."""
    judged.write(4)
    judged.ingest()
    if not guarded:

        def stale(*given: Any) -> Any:
            progress, version = read_progress(*given) or pytest.fail("no progress")
            half = {place: offset // 2 for place, offset in progress.offsets.by_partition.items()}
            return replace(progress, offsets=Offsets(half)), version

        monkeypatch.setattr("bridge.pipelines.ingest.run_state.read_progress", stale)
    judged.write(1)
    judged.ingest(max_offsets=15)
    verdict = judged.check()
    assert verdict.clean == guarded and bool(verdict.counts["batches not once"]) != guarded, verdict


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_committed_records_alone(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str], isolation: str
) -> None:
    options = {"properties.isolation.level": isolation}
    judged = CheckedIngest(spark, broker, lake, unique, options=options)
    judged.write(40)
    judged.ingest()
    verdict = judged.check()
    assert verdict.clean == (isolation == "read_committed"), verdict
    assert bool(verdict.counts["aborted read"]) == (isolation == "read_uncommitted")


@onoff
@pytest.mark.parametrize("engine", ENGINES)
def test_null_safe_keys(
    spark: SparkSession, lake: Path, monkeypatch: Patch, guarded: bool, engine: str
) -> None:
    """With `=` instead of `<=>` a key with a null part never matches, and is duplicated."""

    def plain(key: list[str], left: str, right: str) -> Column:
        return col(key[0], left) == col(key[0], right)

    if not guarded:
        monkeypatch.setattr("bridge.delta.merge_spark.same_key", plain)
        monkeypatch.setattr("pyarrow.compute.index_in", partial(pc.index_in, skip_nulls=True))
    fields = (T.StructField("id", T.LongType()), T.StructField("v", T.StringType()))
    table = made(spark, lake / "t", fields=fields)
    for batch, value in enumerate(("a", "b")):
        changes = frame(table, [("+U", None, value), ("+U", 1, value)])
        ENGINES[engine].merge(table, changes, key=["id"], progress=at(batch))
    rows = [(-1 if id is None else id, (ord(v), v, 7)) for id, v in content(table)]
    wanted = [
        Record(0, n, key, (ord(v), v, 7))
        for n, (key, v) in enumerate([(-1, "a"), (1, "a"), (-1, "b"), (1, "b")])
    ]
    commits = [Commit(1, 0, 0, {0: 2}), Commit(2, 1, 1, {0: 4})]
    verdict = judge(History(topic_in=wanted, commits=commits, table=rows), drained=False)
    assert verdict.clean == guarded and verdict.counts["duplicated"] == (0 if guarded else 1), verdict


def told(broker: Broker, topic: str, expected: Mapping[int, list[int]], tmp_path: Path) -> History:
    """A history with this output topic, whose commits changed each key as expected."""
    seen = Observer(broker.bootstrap, ["", topic], tmp_path, tmp_path / "none")
    out = list(seen.records(topic))
    rounds = max(map(len, expected.values()))
    wanted = [Record(0, 0, -1, None)][:0]
    commits = []
    for n in range(rounds):
        for key, seqs in expected.items():
            if n < len(seqs):
                wanted.append(Record(0, len(wanted), key, (seqs[n], "plain", 7)))
        commits.append(Commit(n + 1, n, n, {0: len(wanted)}))
    last = {key: (seqs[-1], "plain", 7) for key, seqs in expected.items()}
    return History(topic_in=wanted, commits=commits, table=list(last.items()), topic_out=out)


def records(topic: str, seq: int, keys: range) -> Records:
    values = [json.dumps({"id": k, "seq": seq, "writer": "plain", "seed": 7}).encode() for k in keys]
    return Records([topic] * len(keys), [json.dumps({"id": k}).encode() for k in keys], list(values))


@onoff
def test_progress_in_the_slot_s_transaction(
    broker: Broker, unique: Callable[[str], str], tmp_path: Path, monkeypatch: Patch, guarded: bool
) -> None:
    """A task is retried after its first attempt died with some transactions committed."""
    topic, prefix, keys = unique("shard"), unique("tx"), range(6)
    broker.create_topic(topic, 2)
    servers = {"bootstrap.servers": broker.bootstrap}
    producer = producer_settings(servers, checked=True)
    share = ShardSpec(prefix, "run", (topic,), 1, first=1, producer=producer, consumer=servers, max_rows=6)
    if not guarded:
        monkeypatch.setattr(ShardSpec, "cursor_from", lambda *_: Cursor())

    def attempt(dies: bool) -> None:
        with TransactionalShard(share, 0, RecordProducer) as shard:
            for version in (1, 2, 3):
                if shard.cursor < Cursor(version, 0, 6):
                    shard.add(records(topic, version, keys), Cursor(version, 0, 6))
                if dies and version == 2:
                    raise RuntimeError("dies")

    with pytest.raises(RuntimeError, match="dies"):
        attempt(dies=True)
    attempt(dies=False)
    verdict = judge(told(broker, topic, {k: [1, 2, 3] for k in keys}, tmp_path), drained=True)
    assert verdict.clean == guarded and bool(verdict.counts["duplicated"]) != guarded, verdict


@onoff
def test_java_s_partitioner(
    broker: Broker, unique: Callable[[str], str], tmp_path: Path, monkeypatch: Patch, guarded: bool
) -> None:
    """A topic that another client has written first: with librdkafka's default partitioner keys move."""
    topic, keys = unique("keys"), range(40)
    broker.create_topic(topic, 4)
    java = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"})
    first = records(topic, 1, keys)
    for key, value in zip(first.keys, first.values, strict=True):
        java.produce(topic, value, key)
    assert java.flush(30) == 0
    settings = producer_settings({"bootstrap.servers": broker.bootstrap}, checked=True)
    if not guarded:
        del settings["partitioner"]
    with RecordProducer(settings) as writer:
        writer.send(records(topic, 2, keys))
    verdict = judge(told(broker, topic, {k: [1, 2] for k in keys}, tmp_path), drained=True)
    assert verdict.clean == guarded and bool(verdict.counts["reordered"]) != guarded, verdict


def test_a_ledger_that_lies_is_found_too(judged: CheckedIngest) -> None:
    """A record that was acknowledged and is missing counts as lost."""
    judged.write(3)
    judged.ingest()
    with judged.ledger.open("a") as out:
        out.write(json.dumps(Acked(1, 10**6, 0, 10**6, "plain")) + "\n")
    assert judged.check().counts["lost"] == 1


def test_what_is_left_over_is_found(broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> None:
    topic = unique("open")
    broker.create_topic(topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x")
    producer.flush(30)
    assert f"{topic}-0" in open_transactions(broker.bootstrap)
    producer.abort_transaction(30)
    assert f"{topic}-0" not in open_transactions(broker.bootstrap)

    log, checkpoint = tmp_path / "table" / "_delta_log", tmp_path / "checkpoint"
    good = ["00000000000000000010.json", "00000000000000000010.checkpoint.parquet", "_last_checkpoint"]
    for folder in (log / "_staged_commits", checkpoint / "ingest" / "a-run", checkpoint / "publish"):
        folder.mkdir(parents=True)
    for file in [*(log / name for name in [*good, ".10.json.tmp"]), checkpoint / "publish" / ".7.json.1.tmp"]:
        file.touch()
    left = [Path(path).name for path in leftovers([checkpoint], tmp_path / "table")]
    assert sorted(left) == [".10.json.tmp", ".7.json.1.tmp", "a-run"]
    torn = [
        "..00000000000000000140.crc.39f5f118-9b6c-4abf-a343-e011b3842ce9.tmp.crc",
        ".._last_checkpoint.79fd7720-c514-4ccc-9144-cd163016ad55.tmp.crc",
    ]
    for name in torn:
        (log / name).touch()
    assert log_scratch(tmp_path / "table") == torn
    assert len(leftovers([checkpoint], tmp_path / "table")) == 3
