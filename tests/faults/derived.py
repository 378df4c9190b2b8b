"""What a lane computes, too: a script in Flink SQL over its topic, and a job of Flink CDC over its table.

Models and checks their topics, without code of the bridge. Each topic must hold what its query gives at some of the
states that its source went through, in their order, and in the end what it gives at the last one: an INSERT may skip
states, as a run reads what is there. With exactly-once a key's record differs from the one before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.faults.checker import Verdict
from tests.faults.documents import KEY_TYPES
from tests.faults.history import Row

SCRIPT, JOB = "script in SQL", "job of Flink CDC"
Rows = Mapping[int, Row]
Result = Mapping[Hashable, Hashable]


class Sent(NamedTuple):
    """A record of an output topic: the key, and the value or None for a tombstone."""

    key: Hashable
    value: Hashable | None
    place: tuple[int, int]


@dataclass(frozen=True)
class Output:
    """A topic, and what it must hold where the source has these rows."""

    topic: str
    of: Callable[[Rows], Result]
    grouped: bool = False
    """The key is the column `writer`, and the value `n` and `total`; else both are those of the source."""


def _odd_ones(rows: Rows) -> Result:
    return {key: (seq, writer.upper(), seed) for key, (seq, writer, seed) in rows.items() if seq % 3}


def _by_writer(rows: Rows) -> Result:
    count, total = Counter[str](), Counter[str]()
    for seq, writer, _ in rows.values():
        count[writer] += 1
        total[writer] += seq
    return {writer: (count[writer], total[writer]) for writer in count}


def _as_it_is(rows: Rows) -> Result:
    return {key: row for key, row in rows.items()}


def outputs(lane: str, kind: str, *, projected: bool = False) -> tuple[Output, ...]:
    """The topics of a lane's script or job."""
    if kind == SCRIPT:
        return Output(f"{lane}-odd", _odd_ones), Output(f"{lane}-groups", _by_writer, grouped=True)
    return (Output(f"{lane}-job", _odd_ones if projected else _as_it_is),)


def script_file(lane: str, key: str, source: Mapping[str, str], sink: Mapping[str, str]) -> str:
    """The script, with the options of its source, and those that both sinks have."""
    types = KEY_TYPES[key].columns
    columns, names = ", ".join(f"`{n}` {t}" for n, t in types.items()), ", ".join(f"`{n}`" for n in types)
    row = "seq BIGINT, writer STRING, seed BIGINT"

    def table(name: str, columns: str, key: str, options: Mapping[str, str]) -> str:
        given = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
        return f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}) NOT ENFORCED) WITH ({given});"

    def to(topic: str) -> dict[str, str]:
        more = {"topic": topic}
        if sink.get("sink.delivery-guarantee") == "exactly-once":
            more["sink.transactional-id-prefix"] = f"{topic}-tx"
        return {**sink, **more}

    odd, groups = (output.topic for output in outputs(lane, SCRIPT))
    return "\n".join(
        (
            table("source", f"{columns}, {row}", names, source),
            table("odd", f"{columns}, {row}", names, to(odd)),
            table("by_writer", "writer STRING, n BIGINT, total BIGINT", "writer", to(groups)),
            f"INSERT INTO odd SELECT {names}, seq, UPPER(writer), seed FROM source WHERE MOD(seq, 3) <> 0;",
            "INSERT INTO by_writer SELECT writer, COUNT(*), SUM(seq) FROM source GROUP BY writer;",
            "",
        )
    )


def job_file(lane: str, key: str, bootstrap: str, *, exactly_once: bool, projected: bool) -> str:
    """The job, from the table in the folder `table` beside it."""
    names = list(KEY_TYPES[key].columns)
    (output,) = outputs(lane, JOB)
    transform = [
        "transform:",
        "  - source-table: table",
        f"    projection: {', '.join(names)}, seq, UPPER(writer) AS writer, seed",
        "    filter: MOD(seq, 3) <> 0",
    ]
    return "\n".join(
        (
            f"source: {{type: delta, path: ., tables: table, primary-keys: 'table:{','.join(names)}'}}",
            "sink:",
            "  type: upsert-kafka",
            f"  properties.bootstrap.servers: {bootstrap}",
            *(["  sink.delivery-guarantee: exactly-once"] if exactly_once else []),
            f"route: [{{source-table: table, sink-table: {output.topic}}}]",
            *(transform if projected else []),
            f"pipeline: {{name: {lane}-cdc, bridge.state: job-state}}",
            "",
        )
    )


def final(output: Output, rows: Rows, sent: Iterable[Sent]) -> bool:
    """Whether the fold of the topic is what the query gives for the last state."""
    return _fold(sent) == output.of(rows)


def judge_output(
    output: Output, states: Sequence[Rows], sent: Sequence[Sent], verdict: Verdict, *, exactly_once: bool
) -> None:
    """Adds what is wrong with a drained topic whose source went through these states."""
    verdict.records_out += len(sent)
    wanted: dict[Hashable, list[Hashable | None]] = {}
    before: Result = {}
    for rows in states:
        now = output.of(rows)
        for key in before.keys() | now.keys():
            if before.get(key) != now.get(key):
                wanted.setdefault(key, []).append(now.get(key))
        before = now
    had: dict[Hashable, list[Sent]] = {}
    for record in sent:
        had.setdefault(record.key, []).append(record)
    for key, records in had.items():
        _judge_key(output.topic, key, wanted.get(key, []), records, verdict, exactly_once=exactly_once)
    folded = _fold(sent)
    for key in sorted(folded.keys() | before.keys(), key=str):
        expected, actual = before.get(key), folded.get(key)
        if expected != actual:
            fault = "ghosts" if expected is None else "lost" if actual is None else "stale"
            verdict.add(fault, f"{output.topic}: key {key}: expected {expected}, got {actual}")


def _judge_key(
    topic: str,
    key: Hashable,
    wanted: Sequence[Any],
    records: Sequence[Sent],
    verdict: Verdict,
    *,
    exactly_once: bool,
) -> None:
    """The records are some of the wanted values in their order; at-least-once may go back to one that it has sent."""
    at, last = 0, object()
    if len({record.place[0] for record in records}) > 1:
        verdict.add("reordered", f"{topic}: key {key} is in two partitions")
    for record in records:
        if record.value not in wanted:
            verdict.add(
                "topic differs from table", f"{topic}: key {key} {record.value} at {record.place} never was"
            )
        elif exactly_once and record.value == last:
            verdict.add("duplicated", f"{topic}: key {key} {record.value} at {record.place} once more")
        elif record.value in wanted[at:]:
            at = wanted.index(record.value, at)
        elif exactly_once:
            verdict.add("reordered", f"{topic}: key {key} {record.value} at {record.place} comes late")
        last = record.value


def _fold(sent: Iterable[Sent]) -> dict[Hashable, Hashable]:
    rows = {record.key: record.value for record in sent}
    return {key: value for key, value in rows.items() if value is not None}
