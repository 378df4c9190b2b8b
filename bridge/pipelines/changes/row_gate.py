"""The gate (`quality.gate`): judges the rows of a batch by a suite before they are written or sent.

`fail` and `warn` count over the rows that would be written (the last change of each key), in a pass that is made
anyway. `quarantine` judges each change alone, as it is decoded: a row that breaks a rule is a bad record, like one that
cannot be decoded. The table is then the fold of the rows that pass, independent of batch boundaries, and verify, resync
and replay agree with it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.backend import backend_of
from bridge.columns import BAD, KIND, POSITION, col, members, retracts
from bridge.definition import Definition, Gate, GateAction
from bridge.errors import DefinitionError, QualityError, TableError
from bridge.pipelines.changes.unfit_rows import is_judged
from bridge.pipelines.runtime.check_results import store_gate_results
from bridge.quality.gate_rules import RuleCount, Rules, compile_rules
from bridge.quality.suite import parse

Counts = tuple[RuleCount, ...]
"""The result of each expectation of the gate; empty where the gate counts nothing."""

_REASON = "quality: "
_EXAMPLES = 5


def check_ready(spark: SparkSession, definition: Definition, fields: Sequence[T.StructField]) -> str | None:
    """Compile the gate for rows of `fields`; returns a warning that lists the expectations it leaves to `bridge check`.

    Raises DefinitionError for a suite that does not load, or that a gate cannot judge (see `compile_rules`).
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
            f"{definition.name!r}: quality.gate: quarantine is for an ingest. A publish that left out a changed row "
            "would leave the topic behind the table on that key, and its readers would not notice; set fail or warn, "
            "or quarantine rows in the ingest that writes the table"
        )


def counts_aggregate(definition: Definition, frame: DataFrame, where: Column) -> Column:
    """An aggregate over `frame` whose value `read_counts` takes; null where the gate counts nothing."""
    rules = None if definition.quarantines_rows else _rules(frame.sparkSession, definition, _fields(frame))
    return F.lit(None).cast("array<bigint>") if rules is None else rules.counts_column(where & ~retracts())


def read_counts(definition: Definition, frame: DataFrame, values: Sequence[int] | None) -> Counts:
    """Turn the value of `counts_aggregate` into counts by expectation."""
    rules = None if values is None else _rules(frame.sparkSession, definition, _fields(frame))
    return () if rules is None or values is None else rules.counts(values)


def evaluate(definition: Definition, frame: DataFrame) -> Counts:
    """Count over all rows of `frame` that are not retracted, in one pass; no pass where the gate counts nothing."""
    return read_counts(definition, frame, aggregate(definition, frame))


def aggregate(definition: Definition, frame: DataFrame) -> Sequence[int] | None:
    """The value of `counts_aggregate` over all rows of `frame`, in one pass; None where the gate counts nothing."""
    if definition.gate is None or definition.quarantines_rows:
        return None
    row = frame.agg(counts_aggregate(definition, frame, F.lit(True))).first()
    return None if row is None else row[0]


def unexpected_rows(counts: Counts) -> int:
    """The number of rows that break a rule, added up over the expectations that are not met."""
    return sum(count.unexpected for count in counts if not count.success)


def enforce_before_write(
    definition: Definition, rows: DataFrame, values: Sequence[int] | None
) -> tuple[int, tuple[str, ...]]:
    """Apply `enforce` to the rows that a batch is about to write, with their value of `counts_aggregate`.

    Returns the number of unexpected rows, and the warnings.
    """
    counts = read_counts(definition, rows, values)
    way_out = "correct the rows at their source and have the keys sent again"
    warnings = enforce(definition, counts, rows, "Nothing of this batch was written", way_out)
    return unexpected_rows(counts), warnings


def enforce(
    definition: Definition, counts: Counts, rows: DataFrame, consequence: str, way_out: str
) -> tuple[str, ...]:
    """Store `counts` in the results if an expectation is not met, then warn or raise QualityError.

    Under `gate: warn`, returns one warning for each expectation that is not met, with the same text in every batch, so
    that a run reports it once; and one warning if the results cannot be stored, which stops no batch.

    Under `gate: fail`, raises QualityError. It names up to five keys (without a primary key: the coordinates of the
    records); `consequence` is the sentence about what was not done, `way_out` the one about what to do.
    """
    failed = [count for count in counts if not count.success]
    gate = definition.gate
    if gate is None or not failed:
        return ()
    warnings = [f"{definition.name!r}: not all rows pass the gate: {c.title}" for c in failed]
    rules = _rules(rows.sparkSession, definition, _fields(rows))
    assert rules is not None
    try:
        store_gate_results(rows.sparkSession, definition, rules.suite, counts)
        storage_error = ""
    except TableError as error:
        warnings.append(str(error))
        storage_error = f" ({error})"
    if gate.action is not GateAction.FAIL:
        return tuple(warnings)
    failures = "; ".join(f"{c.title} ({c.unexpected:,} of {c.evaluated:,} rows are not so)" for c in failed)
    examples = _examples(definition, rows, rules.violated([count.title for count in failed]))
    raise QualityError(
        f"{definition.name!r}: the gate stops it: {failures}{examples}. {consequence}; {way_out}, or set `quality: "
        f"{{gate: warn}}` ({gate.suite}){storage_error}"
    )


def is_diverted() -> Column:
    """True for changes that the gate quarantines."""
    return F.coalesce(col(BAD).startswith(_REASON), F.lit(False))


def divert_unexpected(changes: DataFrame, definition: Definition) -> DataFrame:
    """Mark decoded `changes` that break a rule as bad under `gate: quarantine`; `__bad` names the rule.

    A change with unavailable values is judged once they are filled (see `fill_unavailable`).
    """
    rules = (
        _rules(changes.sparkSession, definition, _fields(changes)) if definition.quarantines_rows else None
    )
    if rules is None:
        return changes
    reason = F.coalesce(col(BAD), F.when(is_judged(changes), F.concat(F.lit(_REASON), rules.reason())))
    return changes.withColumns({KIND: F.when(reason.isNull(), col(KIND)), BAD: reason})


def diverts(definition: Definition, rows: DataFrame) -> bool:
    """Whether the gate quarantines one of `rows`, which were decoded without an error. Reads them under `quarantine`
    only."""
    if not definition.quarantines_rows:
        return False
    judged = divert_unexpected(rows.withColumn(BAD, F.lit(None).cast("string")), definition)
    return not judged.where(is_diverted()).isEmpty()


def _rules(spark: SparkSession, definition: Definition, fields: Sequence[T.StructField]) -> Rules | None:
    if definition.gate is None:
        return None
    shape = T.StructType([T.StructField(f.name, f.dataType) for f in fields])
    return _compiled(definition.gate, shape.json(), _Session(spark))


class _Session:
    """A session, equal to every other session of its application: the clones that foreachBatch makes share the
    compiled rules."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self._id = spark, backend_of(spark).application

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
        name = F.concat_ws("/", *[col(POSITION).getField(part) for part in _position_fields(rows)])
    failing = rows.where(~retracts() & failed).select(name.alias("name"))
    names = [row[0] for row in failing.distinct().sort("name").limit(_EXAMPLES).collect()]
    return f"; for example {', '.join(names)}"


def _position_fields(rows: DataFrame) -> list[str]:
    """The fields of `__position` that identify a row without a key: those of its record, or the table's version."""
    present = members(rows, POSITION)
    return [part for part in ("topic", "partition", "offset", "version") if part in present]
