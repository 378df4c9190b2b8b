"""The gate (`quality.gate`): rows of a batch judged by a suite before they are written or sent.

fail and warn count, in a pass that is made anyway, over the rows that would be written: the last of each key.
quarantine judges every change alone, as it is decoded: a row that is not as expected is a bad record like one that
cannot be read, so the table is the fold of the rows that pass, whatever the batches, and verify, resync and replay
agree.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import BAD, KIND, POSITION, col, members, retracts
from bridge.decode import DROPPED, SKIP, UNAVAILABLE
from bridge.definition import Definition, Gate, GateAction
from bridge.errors import DefinitionError, QualityError, TableError
from bridge.pipelines.runtime.check_results import store_gate_results
from bridge.quality.gate_rules import RuleCount, Rules, compile_rules
from bridge.quality.suite import parse

__all__ = [
    "Counts",
    "check_ready",
    "counts_aggregate",
    "divert_unexpected",
    "enforce",
    "evaluate",
    "is_diverted",
    "read_counts",
    "refuse_quarantine",
    "unexpected_rows",
]

Counts = tuple[RuleCount, ...]
"""What each expectation of the gate found; empty where nothing was counted."""

_REASON = "quality: "
_EXAMPLES = 5


def check_ready(spark: SparkSession, definition: Definition, fields: Sequence[T.StructField]) -> str | None:
    """Compile the gate for rows of `fields`; a warning about what it leaves to `bridge check`, or None.

    Raises DefinitionError for a suite that does not load, or that a gate cannot judge; see quality.gate.compiled.
    """
    rules = _rules(spark, definition, fields)
    if rules is None or not rules.deferred:
        return None
    deferred = "; ".join(rules.deferred)
    return f"the gate leaves {len(rules.deferred)} of its suite's expectations to `bridge check`: {deferred}"


def refuse_quarantine(definition: Definition) -> None:
    """Raise DefinitionError for a publish under `gate: quarantine`."""
    if definition.quarantines_rows:
        raise DefinitionError(
            f"{definition.name!r}: quality.gate: quarantine is for an ingest. A publish that held a changed row back "
            "would leave the topic behind the table on that key, and nothing would tell its readers; set fail or warn, "
            "or put rows aside in the ingest that writes the table"
        )


def counts_aggregate(definition: Definition, frame: DataFrame, where: Column) -> Column:
    """An aggregate for a pass over `frame`, which `counts` reads: null where the gate counts nothing."""
    rules = None if definition.quarantines_rows else _rules(frame.sparkSession, definition, _fields(frame))
    return F.lit(None).cast("array<bigint>") if rules is None else rules.counts_column(where & ~retracts())


def read_counts(definition: Definition, frame: DataFrame, found: Sequence[int] | None) -> Counts:
    """What the value of `counting` means."""
    rules = None if found is None else _rules(frame.sparkSession, definition, _fields(frame))
    return () if rules is None or found is None else rules.counts(found)


def evaluate(definition: Definition, frame: DataFrame) -> Counts:
    """`counts` over all adds of `frame`, in a pass of its own; none is made where the gate counts nothing."""
    if definition.gate is None or definition.quarantines_rows:
        return ()
    row = frame.agg(counts_aggregate(definition, frame, F.lit(True))).first()
    return () if row is None else read_counts(definition, frame, row[0])


def unexpected_rows(found: Counts) -> int:
    """Rows that are not as expected, added up over the expectations that are not met."""
    return sum(count.unexpected for count in found if not count.success)


def enforce(
    definition: Definition, found: Counts, rows: DataFrame, nothing: str, way_out: str
) -> tuple[str, ...]:
    """Keep what was `found` in the results where an expectation is not met, and under `gate: fail` raise QualityError:
    it names up to five keys (of a table without one, the places of the records); `nothing` says what was not done,
    `way_out` what to do.

    Under `gate: warn` gives a warning for each that is not met, always in the same words, so that a run tells it once;
    and one when the results cannot be kept, for which no batch has to wait.
    """
    failed = [count for count in found if not count.success]
    gate = definition.gate
    if gate is None or not failed:
        return ()
    notes = [f"{definition.name!r}: not all rows pass the gate: {c.title}" for c in failed]
    rules = _rules(rows.sparkSession, definition, _fields(rows))
    assert rules is not None
    try:
        store_gate_results(rows.sparkSession, definition, rules.suite, found)
        unkept = ""
    except TableError as error:
        notes.append(str(error))
        unkept = f" ({error})"
    if gate.action is not GateAction.FAIL:
        return tuple(notes)
    told = "; ".join(f"{c.title} ({c.unexpected:,} of {c.evaluated:,} rows are not so)" for c in failed)
    examples = _examples(definition, rows, rules.violated([count.title for count in failed]))
    raise QualityError(
        f"{definition.name!r}: the gate stops it: {told}{examples}. {nothing}; {way_out}, or set `quality: {{gate: "
        f"warn}}` ({gate.suite}){unkept}"
    )


def is_diverted() -> Column:
    """True for changes that the gate puts aside, whatever else is bad."""
    return F.coalesce(col(BAD).startswith(_REASON), F.lit(False))


def divert_unexpected(changes: DataFrame, definition: Definition) -> DataFrame:
    """Decoded `changes`; under `gate: quarantine` those that set a row which is not as expected are bad, and `__bad`
    says what it should be. A change that leaves columns out (see keep.filled) is judged when they are filled in."""
    rules = (
        _rules(changes.sparkSession, definition, _fields(changes)) if definition.quarantines_rows else None
    )
    if rules is None:
        return changes
    judged = col(BAD).isNull() & ~col(KIND).isin(SKIP, DROPPED) & ~retracts()
    if UNAVAILABLE in changes.columns:
        judged = judged & ~F.coalesce(F.size(UNAVAILABLE) > 0, F.lit(False))
    why = F.coalesce(col(BAD), F.when(judged, F.concat(F.lit(_REASON), rules.reason())))
    return changes.withColumns({KIND: F.when(why.isNull(), col(KIND)), BAD: why})


def _rules(spark: SparkSession, definition: Definition, fields: Sequence[T.StructField]) -> Rules | None:
    if definition.gate is None:
        return None
    shape = T.StructType([T.StructField(f.name, f.dataType) for f in fields])
    return _compiled(definition.gate, shape.json(), _Session(spark))


class _Session:
    """A session by its application: its clones (foreachBatch has one for each query) share what is compiled."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self._id = spark, spark.sparkContext.applicationId

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Session) and other._id == self._id

    def __hash__(self) -> int:
        return hash(self._id)


@lru_cache(maxsize=16)
def _compiled(gate: Gate, shape: str, session: _Session) -> Rules:
    suite, alone = parse(gate.text, gate.suite), gate.action is GateAction.QUARANTINE
    fields = T.StructType.fromJson(json.loads(shape)).fields
    return compile_rules(
        suite, session.spark, fields, refuse_deferred=gate.is_dedicated, each_row_alone=alone
    )


def _fields(frame: DataFrame) -> list[T.StructField]:
    return [f for f in frame.schema.fields if not f.name.startswith("__")]


def _examples(definition: Definition, rows: DataFrame, failed: Column) -> str:
    if definition.primary_key:
        name = F.to_json(F.struct(*[col(n) for n in definition.primary_key]), {"ignoreNullFields": "false"})
    else:
        at = [col(POSITION).getField(part) for part in _position_fields(rows)]
        name = F.concat_ws("/", *at)
    wrong = rows.where(~retracts() & failed).select(name.alias("name"))
    found = [row[0] for row in wrong.distinct().sort("name").limit(_EXAMPLES).collect()]
    return f"; for example {', '.join(found)}"


def _position_fields(rows: DataFrame) -> list[str]:
    """What of `__position` tells where a row without a key comes from: its record, or the table's version."""
    there = members(rows, POSITION)
    return [part for part in ("topic", "partition", "offset", "version") if part in there]
