"""Defines a lane: a writer, its topic, the table and the output topic, in one configuration. No code of the bridge."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from tests.faults.derived import JOB, SCRIPT, Output, job_file, outputs, script_file
from tests.faults.documents import KEY_TYPES
from tests.faults.sums import RULES

_COPIES, _MARKS = "driver (copies)", "driver (marks)"
_IN_DRIVER = (_COPIES, _MARKS)
ENGINES = (*_IN_DRIVER, "spark")
DELIVERIES = ("at-least-once", "exactly-once by key", "exactly-once by file")
FORMATS = ("json", "avro-confluent", "debezium-json")
READERS = ("consumer", "spark")
_READ_BY_CONSUMERS = ("json", "debezium-json")
"""Of those that consumers can read; Spark's source reads the others, as it must be tested, too."""
_SMALL = "small batches"
"""Tasks stop reading at a few records, where the batch ends."""
_EXTRAS = ("partitions added", "maintenance", "quarantine", "deletion vectors", _SMALL)
APPENDS = "table without a key"
"""A further ingest appends the topic's rows to one. Every second lane has it of those whose topic consumers append:
their records are rows or nothing, and none is undecodable."""
SEQUENCE = "sequence-by"
"""The ingest orders changes by a column, and the writer sends some of them late. Every second lane has it of those
whose deletions have a row."""
HISTORY = "history: scd2"
"""A further ingest keeps the history of each key. Every second lane of those with a sequence has it."""
AGGREGATES = "aggregate"
"""A further ingest combines the values of each key. Every second lane has it of those whose changes are plain rows in
one order, and that append none."""
TRUNCATES = "truncate"
"""The writer deletes all rows of its topic of one partition now and then. Every second lane has it of those whose
records can say so, whose changes have no sequence and whose engine is Spark. NOT PLAYED beside the driver: where a run
by consumers has Spark merge a batch, the VACUUM of another pipeline of the process may commit with its progress
(found by SEED=3 at 6583b988, not mended)."""
CHOICES: dict[str, tuple[str, ...]] = {
    "engine": ENGINES,
    "reader": READERS,
    "delivery": DELIVERIES,
    "key": tuple(KEY_TYPES),
    "format": FORMATS,
    "with": (*_EXTRAS, APPENDS, SEQUENCE, HISTORY, AGGREGATES, TRUNCATES, SCRIPT, JOB),
}
"""The choices of which docs/reliability.md must have rounds."""

_DDL = """\
    CREATE TABLE t ({columns}, seq BIGINT, writer STRING, seed BIGINT,
      PRIMARY KEY ({key}) NOT ENFORCED) WITH ({options})
"""
_CHANGED = "changed TIMESTAMP_LTZ(3) METADATA FROM 'value.source.timestamp' VIRTUAL"
"""The number of a change as milliseconds, of a deletion too."""
_MORE = "low BIGINT", "high BIGINT", "tags ARRAY<BIGINT>"
_ROWS_DDL = """\
    CREATE TABLE t ({columns}, seq BIGINT, writer STRING, seed BIGINT,
      p INT METADATA FROM 'partition' VIRTUAL, o BIGINT METADATA FROM 'offset' VIRTUAL) WITH ({options})
"""


@dataclass(frozen=True)
class Lane:
    name: str
    engine: str
    delivery: str
    key: str
    format: str
    extras: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ", ".join((self.engine, self.delivery, self.key, self.format, self.reader, *self.extras))

    @property
    def configuration(self) -> dict[str, object]:
        """All fields but the name, and the reader."""
        return {k: v for k, v in asdict(self).items() if k != "name"} | {"reader": self.reader}

    @property
    def reader(self) -> str:
        """What reads the topic: consumers wherever they can (docs/adr/029)."""
        read = self.format in _READ_BY_CONSUMERS and self.engine in _IN_DRIVER
        return "consumer" if read and "BINARY" not in self.key else "spark"

    @property
    def topics(self) -> tuple[str, str]:
        return f"{self.name}-in", f"{self.name}-out"

    @property
    def pipelines(self) -> dict[str, str]:
        """The verbs of its pipelines by their files' names. What reads the topic runs in the process of the ingests,
        what reads the table in that of the publishes."""
        more = {"rows.yaml": APPENDS, "history.yaml": HISTORY, "sums.yaml": AGGREGATES}
        more |= {"script.sql": SCRIPT, "job.yaml": JOB}
        verbs = {"ingest.yaml": "ingest", "publish.yaml": "publish"}
        for file, extra in more.items():
            if extra in self.extras:
                verbs[file] = "publish" if extra == JOB else "ingest"
        return verbs

    @property
    def appends(self) -> bool:
        return APPENDS in self.extras

    @property
    def by_sequence(self) -> bool:
        return SEQUENCE in self.extras

    @property
    def keeps_history(self) -> bool:
        return HISTORY in self.extras

    @property
    def aggregates(self) -> bool:
        return AGGREGATES in self.extras

    @property
    def truncates(self) -> bool:
        return TRUNCATES in self.extras

    @property
    def is_in_order(self) -> bool:
        """Whether all changes of a key are in one partition."""
        return "partitions added" not in self.extras

    @property
    def is_appendable(self) -> bool:
        """Whether consumers append the topic's rows to a table without a key (docs/adr/044)."""
        decoded = self.format == "avro-confluent" or (self.format == "json" and "BINARY" not in self.key)
        return decoded and "quarantine" not in self.extras

    def pipeline(self, file: str) -> str:
        """Returns the name of a pipeline among those of its verb."""
        name = file.partition(".")[0]
        return self.name if name in ("ingest", "publish") else f"{self.name}-{name}"

    def text(self, file: str, bootstrap: str, registry: str) -> str:
        """Returns the text of one of the files of `pipelines`."""
        match file:
            case "rows.yaml":
                return self.rows_file(bootstrap, registry)
            case "history.yaml":
                topic = self._topic("ingest", bootstrap, registry, _CHANGED)
                return self._further_file("history", topic, "sequence-by: changed, history: scd2")
            case "sums.yaml":
                topic = self._topic("ingest", bootstrap, registry, *_MORE)
                rules = ", ".join(f"{column}: {rule}" for column, rule in RULES.items())
                return self._further_file("sums", topic, f"aggregate: {{{rules}}}")
            case "script.sql":
                return self._script(bootstrap, registry)
            case "job.yaml":
                once, projected = self.exactly_once, self._is_projected
                return job_file(self.name, self.key, bootstrap, exactly_once=once, projected=projected)
        return self.file(file.partition(".")[0], bootstrap, registry)

    @property
    def derived(self) -> dict[str, tuple[Output, ...]]:
        """The outputs of its script and its job."""
        projected = self._is_projected
        found = [kind for kind in (SCRIPT, JOB) if kind in self.extras]
        return {kind: outputs(self.name, kind, projected=projected) for kind in found}

    @property
    def _is_projected(self) -> bool:
        """Whether its job has a projection and a filter."""
        return int(self.name.lstrip("abcdefghijklmnopqrstuvwxyz")) % 2 == 0

    def _script(self, bootstrap: str, registry: str) -> str:
        sink = {
            "connector": "upsert-kafka",
            "properties.bootstrap.servers": bootstrap,
            "key.format": "json",
            "value.format": "json",
        }
        if self.exactly_once:
            sink["sink.delivery-guarantee"] = "exactly-once"
        return script_file(self.name, self.key, self._options("ingest", bootstrap, registry), sink)

    @property
    def exactly_once(self) -> bool:
        return self.delivery != "at-least-once"

    @property
    def is_upsert(self) -> bool:
        return self.format != "debezium-json"

    def file(self, verb: str, bootstrap: str, registry: str) -> str:
        """Returns the pipeline file of a pipeline of the table with a key. Paths are relative to its folder."""
        # Twelve pipelines share two cores, which steady batches with shorter triggers would fill: a recovery then takes
        # minutes. They also yield versions that are large enough to be sent by file.
        trigger = "60 s" if verb == "ingest" else "30 s"
        # Several transactions a version in both cases: one that is sent by file has some 750 rows.
        rows = 120 if self.delivery == "exactly-once by file" else 30
        order = "sequence-by: seq, " if self.by_sequence else "truncate: apply, " if self.truncates else ""
        order = order if verb == "ingest" else ""
        lines = [
            "version: 1",
            f"name: {self.name}-{verb}",
            self._topic(verb, bootstrap, registry),
            f"delta: {{path: table, {order}properties: {{delta.enableDeletionVectors: '{self._vectors}'}}}}",
            f"run: {{checkpoint: {verb}s, trigger: {trigger}}}",
            *(
                self._ingest()
                if verb == "ingest"
                else [f"publish: {{start: 'version:0', transaction-rows: {rows}}}"]
            ),
        ]
        return "\n".join(lines) + "\n"

    def _topic(self, verb: str, bootstrap: str, registry: str, *more: str) -> str:
        columns = KEY_TYPES[self.key].columns
        options = self._options(verb, bootstrap, registry)
        ddl = _DDL.format(
            columns=", ".join([*(f"{name} {type}" for name, type in columns.items()), *more]),
            key=", ".join(columns),
            options=", ".join(f"'{k}' = '{v}'" for k, v in options.items()),
        )
        return f"topic:\n  ddl: |\n{ddl.rstrip()}"

    def _further_file(self, name: str, topic: str, semantics: str) -> str:
        vectors = f"delta.enableDeletionVectors: '{self._vectors}'"
        lines = [
            "version: 1",
            f"name: {self.name}-{name}",
            topic,
            f"delta: {{path: {name}, {semantics}, properties: {{{vectors}}}}}",
            f"run: {{checkpoint: {name}-ingests, trigger: 60 s}}",
            *self._ingest("auto", ", bad-records: skip"),
        ]
        return "\n".join(lines) + "\n"

    def rows_file(self, bootstrap: str, registry: str) -> str:
        """Returns the pipeline file of the ingest into the table without a key, `rows`."""
        options = {
            "connector": "kafka",
            "topic": self.topics[0],
            "properties.bootstrap.servers": bootstrap,
            "value.format": self.format,
            "scan.startup.mode": "earliest-offset",
        }
        if self.format == "avro-confluent":
            options["value.avro-confluent.url"] = registry
        ddl = _ROWS_DDL.format(
            columns=", ".join(f"{name} {type}" for name, type in KEY_TYPES[self.key].columns.items()),
            options=", ".join(f"'{k}' = '{v}'" for k, v in options.items()),
        )
        lines = [
            "version: 1",
            f"name: {self.name}-rows",
            f"topic:\n  ddl: |\n{ddl.rstrip()}",
            f"delta: {{path: rows, properties: {{delta.enableDeletionVectors: '{self._vectors}'}}}}",
            "run: {checkpoint: rows-ingests, trigger: 60 s}",
            "ingest: {reader: auto}",
            *self._maintenance(),
        ]
        return "\n".join(lines) + "\n"

    @property
    def _vectors(self) -> str:
        return "true" if "deletion vectors" in self.extras else "false"

    def _options(self, verb: str, bootstrap: str, registry: str) -> dict[str, str]:
        key_format = "json" if self.format == "debezium-json" else self.format
        options = {
            "connector": "upsert-kafka" if self.is_upsert else "kafka",
            "topic": self.topics[verb == "publish"],
            "properties.bootstrap.servers": bootstrap,
            "key.format": key_format,
            "value.format": self.format,
        }
        if not self.is_upsert:
            options["key.fields"] = ";".join(KEY_TYPES[self.key].columns)
        if not self.is_upsert and verb == "ingest":
            options["scan.startup.mode"] = "earliest-offset"
        if self.format == "avro-confluent":
            options |= {f"{side}.avro-confluent.url": registry for side in ("key", "value")}
        if verb == "publish" and self.exactly_once:
            options |= {
                "sink.delivery-guarantee": "exactly-once",
                "sink.transactional-id-prefix": f"{self.name}-tx",
            }
            if self.delivery == "exactly-once by key":
                options["sink.parallelism"] = "2"
        return options

    def _ingest(
        self, reader: str = "", bad_records: str = ", bad-records: quarantine, quarantine: {path: quarantine}"
    ) -> Iterator[str]:
        small = ", max-batch: 4 kb" if _SMALL in self.extras else ""
        engine = self.engine.partition(" ")[0]
        reader = reader or ("spark" if self.truncates else self.reader)
        yield f"merge: {{engine: {engine}{small}}}"
        yield f"ingest: {{reader: {reader}{bad_records if 'quarantine' in self.extras else ''}}}"
        yield from self._maintenance()

    def _maintenance(self) -> Iterator[str]:
        if "maintenance" in self.extras:
            yield "maintenance: {every: 45 s}"


def _legal(engine: str, delivery: str, format: str) -> bool:
    # A shard is a file only where the topic is an upsert topic (docs/adr/017).
    return delivery != "exactly-once by file" or format != "debezium-json"


class _Deck:
    """A shuffled deck of cards: each is drawn once before any is drawn again."""

    def __init__(self, draw: random.Random, cards: Iterable[Any]) -> None:
        self._draw, self._cards, self._left = draw, list(cards), list[Any]()

    def next(self, fits: Callable[[Any], bool] = lambda _: True) -> Any:
        found = next((n for n, card in enumerate(self._left) if fits(card)), None)
        if found is None:
            fresh = list(self._cards)
            self._draw.shuffle(fresh)
            self._left += fresh
            return self.next(fits)
        return self._left.pop(found)


def draw_lanes(seed: int, prefix: str = "f", *, plain: bool = False) -> Iterator[Lane]:
    """Yields lanes endlessly, the same for the same seed. Every pair of engine and delivery, every key type and every
    format occurs before one of them repeats, so that a few lanes cover all."""
    draw = random.Random(seed)
    ways, keys, formats = (
        _Deck(draw, cards) for cards in (list(product(ENGINES, DELIVERIES)), KEY_TYPES, FORMATS)
    )
    seen: dict[tuple[str, ...], set[str]] = {}
    number = appendable = ordered = summed = others = jobs = scripts = 0
    while True:
        number += 1
        engine, delivery = ways.next()
        format = formats.next(lambda f, e=engine, d=delivery: _legal(e, d, f))  # type: ignore[misc]
        extras = [x for x in _EXTRAS if draw.random() < 0.4]
        if engine == _COPIES and "deletion vectors" in extras:
            extras.remove("deletion vectors")
        if engine not in _IN_DRIVER and _SMALL in extras:
            extras.remove(_SMALL)
        if engine == _MARKS and "deletion vectors" not in extras:
            extras.append("deletion vectors")
        had = seen.setdefault((engine, delivery, format), set())
        if len(had) == len(KEY_TYPES):
            had.clear()
        had.add(key := keys.next(lambda k, h=had: k not in h))  # type: ignore[misc]
        lane = Lane(f"{prefix}{number}", engine, delivery, key, format, tuple(extras))
        appendable += lane.is_appendable
        if lane.is_appendable and appendable % 2:  # so that a set of lanes has about one such table more
            extras.append(APPENDS)
        elif not lane.is_upsert and (ordered := ordered + 1) % 2:
            extras += [SEQUENCE, HISTORY] if ordered % 4 == 1 else [SEQUENCE]
        elif engine == "spark" and not lane.is_upsert and ordered % 4 == 2:
            extras = [x for x in extras if x != "partitions added"] + [TRUNCATES]
        elif lane.is_upsert and lane.is_in_order and (summed := summed + 1) % 2:
            extras.append(AGGREGATES)
        elif not plain:  # two of three, as each costs as much as an ingest and a publish together
            others += 1
            if others % 3:  # a script stops at a record that nobody can decode
                extras.append(JOB if scripts > jobs or "quarantine" in extras else SCRIPT)
            jobs, scripts = jobs + (JOB in extras), scripts + (SCRIPT in extras)
        yield replace(lane, extras=tuple(extras))
