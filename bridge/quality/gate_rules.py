"""Compiles a suite to Spark conditions on rows, which a gate counts in a pass over the batch that takes place anyway.

The conditions are those of Great Expectations, taken from it once per suite and table; it never reads a batch.
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
from bridge.quality.run import columns_of, reason_of, run, title_of, with_comparable_bounds
from bridge.quality.suite import Suite

if TYPE_CHECKING:
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.expectation import Expectation


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
"""Expectations on a single row whose condition is a Spark expression, without a window or Python."""

SCHEMA_EXPECTATIONS = frozenset(
    {
        "expect_column_to_exist",
        "expect_column_values_to_be_in_type_list",
        "expect_column_values_to_be_of_type",
    }
)
"""Expectations about columns and their types: evaluated once, since every batch has the same schema."""

_COUNTS_NULLS = frozenset({"expect_column_values_to_be_null", "expect_column_values_to_not_be_null"})
_TABLE_WIDE = "needs the whole table"
_TOLERANT = "has `mostly` below 1, and quarantine decides on each row alone"


@dataclass(frozen=True)
class Rule:
    """An expectation as conditions on a row, which are never null."""

    title: str
    type: str
    columns: tuple[str, ...]
    severity: str
    mostly: float
    evaluated: Column
    """True for rows that it applies to: Great Expectations excludes nulls, and rows by `row_condition` and
    `ignore_row_if`."""
    unexpected: Column
    """True for rows that do not meet it."""


@dataclass(frozen=True)
class RuleCount:
    """How many rows of a batch a rule evaluated, and how many of these did not meet it."""

    rule: Rule
    evaluated: int
    unexpected: int
    success: bool

    @property
    def title(self) -> str:
        """The expectation as a sentence."""
        return self.rule.title


@dataclass(frozen=True)
class Rules:
    """The rules of a suite, and the expectations that a gate cannot evaluate."""

    suite: str
    """Its name."""
    rules: tuple[Rule, ...]
    deferred: tuple[str, ...] = ()
    """`title (reason)` of each expectation that only `bridge check` can evaluate."""

    def counts_column(self, where: Column) -> Column:
        """Returns an aggregate over the rows for which `where` is true: an array, which `counts` reads."""
        counts = [F.count_if(where & c) for rule in self.rules for c in (rule.evaluated, rule.unexpected)]
        return F.array(*counts)

    def counts(self, values: Sequence[int]) -> tuple[RuleCount, ...]:
        """Returns the result of each rule, as Great Expectations would compute it from the same counts."""
        pairs = zip(values[::2], values[1::2], strict=True)
        return tuple(
            RuleCount(rule, rows, wrong, not rows or (rows - wrong) / rows >= rule.mostly)
            for rule, (rows, wrong) in zip(self.rules, pairs, strict=True)
        )

    def violated(self, titles: Sequence[str] | None = None) -> Column:
        """Returns a condition that is true for rows which fail a rule (one of `titles`, if given)."""
        conditions = [r.unexpected for r in self.rules if titles is None or r.title in titles]
        return reduce(lambda a, b: a | b, conditions, F.lit(False))

    def reason(self) -> Column:
        """Returns the titles of the rules that a row fails, joined by `; `; null where it fails none."""
        # concat_ws skips nulls and, unlike functions on arrays, does not prevent whole-stage code generation.
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
    """Compiles the expectations of `suite` to rules for rows with `fields`. Runs no job over rows.

    Expectations that need the whole table or Python and, with `each_row_alone`, those with `mostly` below 1 become
    `Rules.deferred`. Raises DefinitionError with the file and the number of the expectation (from 1) for such an
    expectation under `refuse_deferred`, for an unknown column, and for column types that do not meet the suite, so that
    no batch could pass; and, for the file, where no expectation can be compiled.
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
                    comparable = with_comparable_bounds(expectation, empty.schema)
                    rules.append(_compile_rule(comparable, title, engine, empty.schema))
                except Exception as error:
                    raise DefinitionError(
                        f"{at}: {reason_of(error, config.kwargs, empty.columns)}"
                    ) from error
            elif refuse_deferred:
                raise DefinitionError(
                    f"{at}: a gate cannot evaluate it, since it {why}; move it to the suite of `quality.suite`, for "
                    "`bridge check`"
                )
            else:
                left.append(f"{title} ({why})")
    if not rules:
        raise DefinitionError(
            f"{suite.file}: the gate can evaluate none of its expectations on the rows of a batch, so every row would "
            f"pass; add one of {', '.join(sorted(ROW_EXPECTATIONS))}"
        )
    return Rules(suite.name, tuple(rules), tuple(left))


def _unsupported_reason(type: str, kwargs: Mapping[str, Any], each_row_alone: bool) -> str | None:
    if type not in ROW_EXPECTATIONS:
        return _TABLE_WIDE
    return _TOLERANT if each_row_alone and kwargs.get("mostly", 1) < 1 else None


def _check_schema_expectation(at: str, suite: Suite, expectation: Expectation, empty: DataFrame) -> None:
    (outcome,) = run(empty, Suite(suite.name, suite.file, (expectation,))).expectations
    if not outcome.success:
        problem = outcome.reason or f"it is {outcome.observed or 'not met'}"
        raise DefinitionError(f"{at}: {problem}, so no batch could pass the gate")


def _compile_rule(
    expectation: Expectation, title: str, engine: SparkDFExecutionEngine, schema: T.StructType
) -> Rule:
    from great_expectations.validator.metric_configuration import MetricConfiguration
    from great_expectations.validator.metrics_calculator import MetricsCalculator

    from bridge.quality.one_scan import condition_of

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
    # CASE fixes the order of evaluation: the condition may raise on rows that are not evaluated.
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
