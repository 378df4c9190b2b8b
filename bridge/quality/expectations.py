"""The bridge's expectations on a table, and their base classes: one renders a sentence, the other evaluates a fact.

Importing this module registers the classes and imports Great Expectations, which takes seconds: import it in functions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from bridge.errors import QualityError
from bridge.quality.facts import NO_FACTS, Facts, Unknown
from bridge.quality.gx import quiet
from bridge.quality.wording import age, counted

with quiet():
    from great_expectations.execution_engine.execution_engine import ExecutionEngine
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.expectation import BatchExpectation, render_suite_parameter_string
    from great_expectations.expectations.metrics.metric_provider import metric_value
    from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
    from great_expectations.render.components import LegacyRendererType, RenderedStringTemplateContent
    from great_expectations.render.renderer.renderer import renderer
    from great_expectations.render.renderer_configuration import RendererConfiguration, RendererValueType
    from great_expectations.validator.metric_configuration import MetricConfiguration


FACTS_ATTRIBUTE = "bridge_facts"
"""The attribute of an execution engine that has the Facts of its table."""

_F = TypeVar("_F")


class SentenceExpectation(BatchExpectation):
    """Renders the template of `_sentence`, in Data Docs and inline."""

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        """Returns a template with `$names`, and the values of the names."""
        raise NotImplementedError

    @classmethod
    def _prescriptive_template(
        cls, renderer_configuration: RendererConfiguration[Any]
    ) -> RendererConfiguration[Any]:
        template, params = cls._sentence(renderer_configuration.kwargs)
        for name, text in params.items():
            renderer_configuration.add_param(name=name, param_type=RendererValueType.STRING, value=text)
        renderer_configuration.template_str = template
        return renderer_configuration

    @classmethod
    @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)
    @render_suite_parameter_string
    def _prescriptive_renderer(
        cls, configuration: Any = None, result: Any = None, runtime_configuration: Any = None, **_: Any
    ) -> list[RenderedStringTemplateContent]:
        template, params = cls._sentence(configuration.kwargs)
        styling = (runtime_configuration or {}).get("styling")
        content = {"template": template, "params": params, "styling": styling}
        return [RenderedStringTemplateContent(content_block_type="string_template", string_template=content)]


class _FactMetric(TableMetricProvider):
    """Evaluates a fact by the engine's Facts."""

    metric_name = "bridge.fact"
    value_keys = ("fact", "arguments")

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls, execution_engine: SparkDFExecutionEngine, metric_value_kwargs: dict[str, Any], **_: Any
    ) -> object:
        facts: Facts = getattr(execution_engine, FACTS_ATTRIBUTE, NO_FACTS)
        return facts.get(metric_value_kwargs["fact"], json.loads(metric_value_kwargs["arguments"]))


class FactExpectation(SentenceExpectation):
    """Evaluates the fact `fact_name`, with the expectation's fields `fact_arguments` as its arguments. Where the fact
    is `Unknown` the expectation fails with the reason."""

    fact_name: ClassVar[str]
    fact_arguments: ClassVar[tuple[str, ...]] = ()

    def get_validation_dependencies(
        self,
        execution_engine: ExecutionEngine[Any] | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> Any:
        """Adds the fact to Great Expectations' own dependencies."""
        dependencies = super().get_validation_dependencies(execution_engine, runtime_configuration)
        arguments = {name: getattr(self, name) for name in self.fact_arguments}
        given = {name: value for name, value in arguments.items() if value is not None}
        value = {"fact": self.fact_name, "arguments": json.dumps(given, sort_keys=True)}
        batch = self.configuration.kwargs.get("batch_id")
        domain = {"batch_id": batch} if batch else {}
        dependencies.set_metric_configuration(
            _FactMetric.metric_name, MetricConfiguration(_FactMetric.metric_name, domain, value)
        )
        return dependencies

    def fact(self, metrics: Mapping[str, Any], type: type[_F]) -> _F:
        """Returns the fact, whose type is `type`. Raises QualityError with the reason when it is `Unknown`."""
        fact = metrics[_FactMetric.metric_name]
        if isinstance(fact, Unknown):
            raise QualityError(fact.reason)
        assert isinstance(fact, type)
        return fact


with quiet():
    from great_expectations.compatibility import pydantic
    from great_expectations.execution_engine.execution_engine import ExecutionEngine

    from bridge.quality.one_scan import DuplicateKeys, Newest


class ExpectKeyToBeUnique(SentenceExpectation):
    """Expects that no two rows of the table have the same values in `column_list`; null equals null.

    Exact, for compound keys as well. The result counts the rows that share their key with another row
    (`unexpected_count`) and has up to five such keys, in descending order of their rows.
    """

    column_list: Sequence[str]

    metric_dependencies = (DuplicateKeys.metric_name, "table.row_count")
    success_keys: ClassVar[tuple[str, ...]] = ("column_list",)
    args_keys = ("column_list",)

    @pydantic.validator("column_list")
    def _at_least_one(cls, names: Sequence[str]) -> Sequence[str]:
        if isinstance(names, str) or not names:
            raise ValueError('column_list must be a list of at least one column name, e.g. ["order_id"]')
        return names

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        names = kwargs["column_list"]
        if len(names) == 1:
            return "$key is unique: each key occurs once.", {"key": names[0]}
        return "$key are unique together: each key occurs once.", {"key": ", ".join(names)}

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: ExecutionEngine[Any] | None = None,
    ) -> dict[str, Any]:
        duplicates, rows = metrics[DuplicateKeys.metric_name], metrics["table.row_count"]
        observed = "each key once"
        if duplicates["keys"]:
            occurs = "occurs" if duplicates["keys"] == 1 else "occur"
            observed = (
                f"{counted(duplicates['keys'], 'key')} {occurs} more than once ({duplicates['rows']:,} rows)"
            )
        return {
            "success": duplicates["keys"] == 0,
            "result": {
                "observed_value": observed,
                "element_count": rows,
                "unexpected_count": duplicates["rows"],
                "unexpected_percent": 100 * duplicates["rows"] / rows if rows else 0.0,
                "partial_unexpected_index_list": duplicates["examples"],
            },
        }


class ExpectTableToBeFresh(SentenceExpectation):
    """Expects that the newest value of `column` is at most `max_age_seconds` old when the check runs.

    Fails for an empty table and for a column with nulls only. Fails also when the newest value is more than
    `max_ahead_seconds` in the future, because such a value would hide that no new rows arrive. A TIMESTAMP without zone
    is interpreted in the session's time zone, which the bridge sets to UTC.
    """

    column: str
    max_age_seconds: float
    max_ahead_seconds: float = 300

    metric_dependencies = (Newest.metric_name,)
    success_keys: ClassVar[tuple[str, ...]] = ("column", "max_age_seconds", "max_ahead_seconds")
    args_keys = ("column", "max_age_seconds", "max_ahead_seconds")

    @pydantic.validator("max_age_seconds", "max_ahead_seconds")
    def _not_negative(cls, seconds: float) -> float:
        if not seconds >= 0:
            raise ValueError("must be 0 seconds or more")
        return seconds

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        params = {"column": kwargs["column"], "age": age(kwargs["max_age_seconds"])}
        return "The newest $column is at most $age old.", params

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: ExecutionEngine[Any] | None = None,
    ) -> dict[str, Any]:
        micros = metrics[Newest.metric_name]
        if micros is None:
            return {"success": False, "result": {"observed_value": f"no value in {self.column}"}}
        old = time.time() - micros / 1_000_000
        fresh = -self.max_ahead_seconds <= old <= self.max_age_seconds
        observed = f"{age(old)} old" if old >= 0 else f"{age(-old)} in the future"
        return {"success": fresh, "result": {"observed_value": observed}}
