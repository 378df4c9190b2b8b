"""Scripts in Flink SQL: the manuals' page views beside Flink and beside a whole aggregate, and groups by their number.

Page views are counted by region, with their different users. Each result is compared with the counts of numpy.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyspark.sql import functions as F

from benchmarks import flink, paimon
from benchmarks.goals import Outcome, at_most, faster
from benchmarks.ground import Ground
from benchmarks.jobs import JobError, run
from benchmarks.results import Entry
from benchmarks.rounds import Rounds, compared, in_turn
from benchmarks.scale import SEED
from benchmarks.topics import PARTITIONS, producer
from bridge.pipelines.scripts.run import run_script
from bridge.sql import load_script

_BATCHES = 10
_ROWS_OF_A_GROUP = 2
_CHANGED_ROWS, _CHANGED_GROUPS = 1000, 100
_FLINK = "Flink, RocksDB"
_VIEWS = "user_id BIGINT, page_id BIGINT, viewtime TIMESTAMP(3), user_region STRING"
_COUNTS = "user_region STRING, pv BIGINT, uv BIGINT"
_KEY = "PRIMARY KEY (user_region) NOT ENFORCED"
_QUERY = "SELECT user_region, COUNT(*), COUNT(DISTINCT user_id) FROM pageviews GROUP BY user_region"
_ROCKSDB = {
    "state.backend.type": "rocksdb",
    "execution.checkpointing.interval": "10 s",
    "state.backend.incremental": "true",
}


Counts = dict[str, tuple[int, int]]
"""Views and different users by region."""


class Views:
    """Page views of random users and regions."""

    def __init__(self, records: int) -> None:
        draw = np.random.default_rng(SEED)
        self.users = draw.integers(0, max(1, records // 10), records)
        self.regions = draw.integers(0, max(1, records // 1000), records)

    def send(self, ground: Ground, topic: str, part: range) -> None:
        sender = producer(ground.broker)
        regions, users = self.regions[part.start : part.stop], self.users[part.start : part.stop]
        for number, (user, region) in enumerate(
            zip(users.tolist(), regions.tolist(), strict=True), part.start
        ):
            view = (
                f'{{"user_id":{user},"page_id":{number % 977},"viewtime":"2026-11-25 10:00:00",'
                f'"user_region":"r{region}"}}'
            )
            # One producer would send bursts to one partition after the other; many spread their views evenly.
            sender.produce(topic, view.encode(), partition=number % PARTITIONS)
            if not number % 1000:
                while len(sender) > 100_000:
                    sender.poll(0.01)
        if sender.flush(120):
            raise RuntimeError(f"topic {topic}: not all views arrived")

    def counts(self, records: int) -> Counts:
        """Views and different users of each region, of the first `records`."""
        regions, users = self.regions[:records], self.users[:records]
        pairs = np.unique(np.stack([regions, users]), axis=1)[0]
        return {f"r{r}": (n, u) for r, n, u in zip(*_counted(regions), _counted(pairs)[1], strict=True)}


def outcomes(ground: Ground, records: int, rounds: int) -> list[Outcome]:
    """Rows of the whole script beside Flink, of its batches beside a whole aggregate, and of a batch by the groups."""
    views = Views(records)
    return [
        _beside_flink(ground, views, records, rounds),
        _beside_aggregate(ground, views, records),
        _by_groups(ground, records),
    ]


def _beside_flink(ground: Ground, views: Views, records: int, rounds: int) -> Outcome:
    what = f"page views by region, {records:,} views, whole process"
    source = "pageviews"
    ground.broker.create_topic(source, partitions=PARTITIONS)
    views.send(ground, source, range(records))
    expected, numbers = views.counts(records), itertools.count()

    def played(system: str, command: Callable[[str, Path], list[str]]) -> Entry:
        sink, place = f"regions-{next(numbers)}", ground.place()
        ground.broker.create_topic(sink, partitions=PARTITIONS, config={"cleanup.policy": "compact"})
        try:
            given = command(sink, place)
            ran = run(given, folder=place / "run", table=place, spark=False, beside=ground.serving)
        except JobError as error:
            ground.say(str(error))
            return ground.added(Entry(what, system, records, None, str(error).splitlines()[-1]))
        wrong = _wrong(ground, sink, expected)
        return ground.added(Entry(what, system, records, ran, wrong, ground.tolerance))

    def bridge(sink: str, place: Path) -> list[str]:
        return [sys.executable, "-m", "bridge", "run", str(_script(ground, place, source, sink))]

    peer = flink.found()

    def beside(sink: str, place: Path) -> list[str]:
        assert peer is not None
        bounded = _source(ground, source) | {"scan.bounded.mode": "latest-offset"}
        statements = [
            f"CREATE TEMPORARY TABLE pageviews ({_VIEWS}) WITH ({paimon.shown(bounded)})",
            f"CREATE TEMPORARY TABLE regions ({_COUNTS}, {_KEY}) WITH ({paimon.shown(_sink(ground, sink))})",
            f"INSERT INTO regions {_QUERY}",
        ]
        return peer.command(place / "job", statements, _ROCKSDB)

    own, theirs = in_turn(
        rounds, [lambda: played("bridge", bridge), lambda: played(_FLINK, beside) if peer else None]
    )
    assert own is not None
    return compared(f"{what}, beside {_FLINK}", "records/s", lambda e: e.rate, 1.0, theirs, own)


def _beside_aggregate(ground: Ground, views: Views, records: int) -> Outcome:
    """Batches in this process, after a first one; the baseline aggregates the topic from its beginning each time."""
    batch = records // _BATCHES
    source, sink, whole = "batches", "batch-regions", "whole-regions"
    ground.broker.create_topic(source, partitions=PARTITIONS)
    for name in (sink, whole):
        ground.broker.create_topic(name, partitions=PARTITIONS, config={"cleanup.policy": "compact"})
    script = load_script(_script(ground, ground.place(), source, sink))
    what = f"page views by region, batches of {batch:,} views"
    took: dict[str, list[Entry]] = {"bridge": [], "a whole aggregate": []}
    for number in range(_BATCHES):
        views.send(ground, source, range(number * batch, (number + 1) * batch))
        expected = views.counts((number + 1) * batch)
        ways: dict[str, tuple[Callable[[], object], str]] = {
            "bridge": (partial(run_script, ground.spark, script), sink),
            "a whole aggregate": (partial(_aggregate, ground, source, whole), whole),
        }
        for system, (work, topic) in ways.items():

            def judge(_: object, topic: str = topic, expected: Counts = expected) -> str | None:
                return _wrong(ground, topic, expected)

            took[system].append(ground.timed(what, system, batch, work, judge))
    return warm(
        f"{what} / a whole aggregate each batch", 5.0, took["a whole aggregate"], took["bridge"], faster
    )


def _by_groups(ground: Ground, records: int) -> Outcome:
    """A batch of some rows of some groups, in a state of few and of many groups."""
    few, many = records // 100, records
    took: dict[int, list[Entry]] = {}
    for groups in (few, many):
        place = ground.place()
        rows = groups * _ROWS_OF_A_GROUP
        path = place / "t"
        ground.spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, g BIGINT, v BIGINT) USING delta CLUSTER BY (g) "
            "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
        )
        made = ground.spark.range(rows).selectExpr("id", f"id DIV {_ROWS_OF_A_GROUP} AS g", "id % 100 AS v")
        made.write.format("delta").mode("append").save(str(path))
        file = place / "script.sql"
        file.write_text(
            "CREATE TABLE t (id BIGINT, g BIGINT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ("
            "'connector' = 'delta', 'path' = 't');\n"
            "CREATE TABLE s (g BIGINT, n BIGINT, total BIGINT, PRIMARY KEY (g) NOT ENFORCED) WITH ("
            "'connector' = 'delta', 'path' = 's');\nINSERT INTO s SELECT g, COUNT(*), SUM(v) FROM t GROUP BY g;"
        )
        script = load_script(file)
        run_script(ground.spark, script)
        draw, what = (
            np.random.default_rng(SEED),
            f"{_CHANGED_ROWS:,} rows of {_CHANGED_GROUPS} groups of {groups:,}",
        )
        took[groups] = []
        for number in range(_BATCHES // 2):
            changed = draw.choice(groups, _CHANGED_GROUPS, replace=False)
            ids = range(rows + number * _CHANGED_ROWS, rows + (number + 1) * _CHANGED_ROWS)
            added = [(i, int(changed[i % _CHANGED_GROUPS]), i % 7) for i in ids]
            frame = ground.spark.createDataFrame(added, "id BIGINT, g BIGINT, v BIGINT")
            frame.coalesce(1).write.format("delta").mode("append").save(str(path))

            def judged(_: object, place: Path = place) -> str | None:
                read = ground.spark.read.format("delta")
                right = read.load(str(place / "t")).groupBy("g").agg(F.count("*"), F.sum("v"))
                found = read.load(str(place / "s"))
                differ = right.exceptAll(found).count() + found.exceptAll(right).count()
                return f"{differ:,} rows differ" if differ else None

            work = partial(run_script, ground.spark, script)
            took[groups].append(ground.timed(what, "bridge", _CHANGED_ROWS, work, judged))
    name = f"script: a batch that touches {_CHANGED_GROUPS} groups of {many:,} / of {few:,}"
    return warm(name, 2.0, took[few], took[many], at_most)


def warm(
    name: str,
    goal: float,
    baseline: list[Entry],
    bridge: list[Entry],
    by: Callable[[str, str, float, float, float], Outcome],
) -> Outcome:
    """Medians of the batches after the first two."""
    one, other = Rounds(tuple(baseline[2:])), Rounds(tuple(bridge[2:]))
    return compared(name, "s a batch", lambda e: e.seconds, goal, one, other, by=by)


def _aggregate(ground: Ground, source: str, sink: str) -> None:
    reader = ground.spark.read.format("kafka").option("kafka.bootstrap.servers", ground.broker.bootstrap)
    values = reader.option("subscribe", source).load().select(F.col("value").cast("string").alias("value"))
    view = F.from_json("value", _VIEWS.replace("TIMESTAMP(3)", "TIMESTAMP_NTZ")).alias("view")
    rows = values.select(view).select("view.*").groupBy("user_region")
    counts = rows.agg(F.count("*").alias("pv"), F.count_distinct("user_id").alias("uv"))
    records = counts.select(
        F.to_json(F.struct("user_region")).alias("key"), F.to_json(F.struct("*")).alias("value")
    )
    writer = records.write.format("kafka").option("kafka.bootstrap.servers", ground.broker.bootstrap)
    writer.option("topic", sink).save()


def _wrong(ground: Ground, topic: str, expected: Counts) -> str | None:
    """What is wrong with the newest record of each region."""
    reader = ground.spark.read.format("kafka").option("kafka.bootstrap.servers", ground.broker.bootstrap)
    records = reader.option("subscribe", topic).option("kafka.isolation.level", "read_committed").load()
    newest = records.groupBy(F.col("key").cast("string")).agg(
        F.max_by("value", "offset").cast("string").alias("value")
    )
    found = {}
    for row in newest.collect():
        counts = json.loads(row["value"])
        found[counts["user_region"]] = counts["pv"], counts["uv"]
    differ = sum(found.get(region) != counts for region, counts in expected.items())
    return (
        f"{differ:,} of {len(expected):,} regions differ" if differ or len(found) != len(expected) else None
    )


def _script(ground: Ground, place: Path, source: str, sink: str) -> Path:
    file = place / "pageviews.sql"
    file.write_text(
        "SET 'bridge.state' = 'state';\n"
        f"CREATE TABLE pageviews ({_VIEWS}) WITH ({paimon.shown(_source(ground, source))});\n"
        f"CREATE TABLE regions ({_COUNTS}, {_KEY}) WITH ({paimon.shown(_sink(ground, sink))});\n"
        f"INSERT INTO regions {_QUERY};\n"
    )
    return file


def _source(ground: Ground, topic: str) -> dict[str, str]:
    return {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": ground.broker.bootstrap,
        "scan.startup.mode": "earliest-offset",
        "format": "json",
    }


def _sink(ground: Ground, topic: str) -> dict[str, str]:
    return {
        "connector": "upsert-kafka",
        "topic": topic,
        "properties.bootstrap.servers": ground.broker.bootstrap,
        "key.format": "json",
        "value.format": "json",
    }


def _counted(values: npt.NDArray[np.int64]) -> tuple[list[int], list[int]]:
    found, counts = np.unique(values, return_counts=True)
    return found.tolist(), counts.tolist()
