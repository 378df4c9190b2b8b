"""A suite as conditions on a row, for a gate: what Great Expectations would count, in a pass that is made anyway.

The conditions are Great Expectations' own, taken from it once per suite and table; it never sees a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.errors import DefinitionError
from bridge.quality.gx import quiet
from bridge.quality.run import columns_of, reason_of, run, title_of
from bridge.quality.suite import Suite

if TYPE_CHECKING:
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.expectation import Expectation

__all__ = ["Rule", "RuleCount", "Rules", "compile_rules"]

ROW_EXPECTATIONS = frozenset(
    f"expect_{name}"
    for name in (
        "column_pair_values_a_to_be_greater_than_b",
        "column_pair_values_to_be_equal",
        "column_pair_values_to_be_in_set",
        "column_value_lengths_to_be_between",
        "column_value_lengths_to_equal",
        "column_values_to_be_between",
        "column_values_to_be_in_set",
        "column_values_to_be_null",
        "column_values_to_match_regex",
        "column_values_to_match_regex_list",
        "column_values_to_not_be_in_set",
        "column_values_to_not_be_null",
        "column_values_to_not_match_regex",
        "column_values_to_not_match_regex_list",
        "multicolumn_sum_to_equal",
        "multicolumn_values_to_be_equal",
        "select_column_values_to_be_unique_within_record",
    )
)
"""Expectations on a row alone, whose condition is an expression of Spark's: no window, no Python."""

SCHEMA_EXPECTATIONS = frozenset(
    {
        "expect_column_to_exist",
        "expect_column_values_to_be_in_type_list",
        "expect_column_values_to_be_of_type",
    }
)
"""Those that the columns' types decide: the same for every batch, so they are judged once."""

_COUNTS_NULLS = frozenset({"expect_column_values_to_be_null", "expect_column_values_to_not_be_null"})
_TABLE_WIDE = "needs the whole table"
_TOLERANT = "holds for a share of rows, and a row that is put aside is judged alone"


@dataclass(frozen=True)
class Rule:
    """An expectation on rows. Both conditions are never null."""

    title: str
    type: str
    columns: tuple[str, ...]
    severity: str
    mostly: float
    evaluated: Column
    """Rows that it looks at: Great Expectations leaves out nulls, and what `row_condition` and `ignore_row_if` say."""
    unexpected: Column
    """Rows that are not as expected."""


@dataclass(frozen=True)
class RuleCount:
    """What a rule found in a batch."""

    rule: Rule
    evaluated: int
    unexpected: int
    success: bool

    @property
    def title(self) -> str:
        """The expectation in one sentence."""
        return self.rule.title


@dataclass(frozen=True)
class Rules:
    """A suite, as far as rows can be judged by it."""

    suite: str
    """Its name."""
    rules: tuple[Rule, ...]
    deferred: tuple[str, ...] = ()
    """`title: why` of the expectations that are left to a check of the table."""

    def counts_column(self, where: Column) -> Column:
        """An aggregate over the rows for which `where` is true: the array that `counts` reads."""
        counts = [F.count_if(where & c) for rule in self.rules for c in (rule.evaluated, rule.unexpected)]
        return F.array(*counts)

    def counts(self, values: Sequence[int]) -> tuple[RuleCount, ...]:
        """What each rule makes of its counts, as Great Expectations would."""
        pairs = zip(values[::2], values[1::2], strict=True)
        return tuple(
            RuleCount(rule, judged, wrong, not judged or (judged - wrong) / judged >= rule.mostly)
            for rule, (judged, wrong) in zip(self.rules, pairs, strict=True)
        )

    def violated(self, titles: Sequence[str] | None = None) -> Column:
        """True for a row that a rule (with `titles`, one of these) does not hold for."""
        found = [r.unexpected for r in self.rules if titles is None or r.title in titles]
        return reduce(lambda a, b: a | b, found, F.lit(False))

    def reason(self) -> Column:
        """The sentences that do not hold for a row, joined by `; `; null where all hold."""
        # concat_ws leaves out nulls, and unlike functions on arrays it does not keep Spark from generating code.
        return F.when(
            self.violated(), F.concat_ws("; ", *[F.when(r.unexpected, F.lit(r.title)) for r in self.rules])
        )


def compile_rules(
    suite: Suite,
    spark: SparkSession,
    fields: Sequence[T.StructField],
    *,
    refuse_deferred: bool,
    each_row_alone: bool,
) -> Rules:
    """The expectations of `suite` as rules for rows that have `fields`.

    What cannot be judged on some rows alone (table-wide expectations, those that need Python or, with `alone`, `mostly`
    below 1) is in `left`; with `whole` it is refused. Raises DefinitionError, naming the file and the expectation
    (counted from 1), for that, for a column that is not there, for types that are not as expected, so that no batch
    could pass, and where nothing is left to judge. Runs no job over rows.
    """
    rules, left = list[Rule](), list[str]()
    empty = spark.createDataFrame([], T.StructType(list(fields)))
    with quiet():
        from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine

        engine = SparkDFExecutionEngine(spark=spark, persist=False)
        engine.load_batch_data("frame", empty)
        for number, expectation in enumerate(suite.expectations, 1):
            config = expectation.configuration
            at, title = f"{suite.file}: expectation {number} ({config.type})", title_of(expectation)
            if config.type in SCHEMA_EXPECTATIONS:
                _check_schema_expectation(at, suite, expectation, empty)
                continue
            why = _unsupported_reason(config.type, config.kwargs, each_row_alone)
            if why is None:
                try:
                    rules.append(_compile_rule(expectation, title, engine, empty.schema))
                except Exception as error:
                    raise DefinitionError(
                        f"{at}: {reason_of(error, config.kwargs, empty.columns)}"
                    ) from error
            elif refuse_deferred:
                raise DefinitionError(
                    f"{at}: a gate cannot judge it, as it {why}; leave it to `bridge check`, in the suite of "
                    "`quality.suite`"
                )
            else:
                left.append(f"{title} ({why})")
    if not rules:
        raise DefinitionError(
            f"{suite.file}: no expectation in it can be judged on the rows of a batch, so a gate would let everything "
            f"pass; legal are {', '.join(sorted(ROW_EXPECTATIONS))}"
        )
    return Rules(suite.name, tuple(rules), tuple(left))


def _unsupported_reason(type: str, kwargs: Mapping[str, Any], each_row_alone: bool) -> str | None:
    if type not in ROW_EXPECTATIONS:
        return _TABLE_WIDE
    return _TOLERANT if each_row_alone and kwargs.get("mostly", 1) < 1 else None


def _check_schema_expectation(at: str, suite: Suite, expectation: Expectation, empty: DataFrame) -> None:
    (outcome,) = run(empty, Suite(suite.name, suite.file, (expectation,))).expectations
    if not outcome.success:
        found = outcome.reason or f"it is {outcome.observed or 'not so'}"
        raise DefinitionError(f"{at}: {found}, so no batch could pass the gate")


def _compile_rule(
    expectation: Expectation, title: str, engine: SparkDFExecutionEngine, schema: T.StructType
) -> Rule:
    from great_expectations.validator.metric_configuration import MetricConfiguration
    from great_expectations.validator.metrics_calculator import MetricsCalculator

    from bridge.quality.row_condition import condition_of

    metric = str(expectation.map_metric)  # type: ignore[attr-defined]
    dependencies = expectation.get_validation_dependencies(engine, {"result_format": "BOOLEAN_ONLY"})
    count_metric = dependencies.metric_configurations[f"{metric}.unexpected_count"]
    condition_metric = MetricConfiguration(
        f"{metric}.condition", count_metric.metric_domain_kwargs, count_metric.metric_value_kwargs
    )
    calculator = MetricsCalculator(engine, show_progress_bars=False)
    metrics, _ = calculator.compute_metrics(
        [condition_metric], runtime_configuration={"catch_exceptions": False}
    )
    condition, domain, accessor = metrics[condition_metric.id]
    config = expectation.configuration
    evaluated = condition_of({**domain, **accessor}, schema, engine)
    if "column" in config.kwargs and config.type not in _COUNTS_NULLS:
        evaluated = evaluated & F.col(config.kwargs["column"]).isNotNull()
    # CASE keeps the order: the condition may fail on rows that are not looked at.
    unexpected = F.coalesce(F.when(evaluated, condition), F.lit(False))
    return Rule(
        title=title,
        type=config.type,
        columns=columns_of(config.kwargs),
        severity=config.severity.value,
        mostly=config.kwargs.get("mostly", 1),
        evaluated=evaluated,
        unexpected=unexpected,
    )
