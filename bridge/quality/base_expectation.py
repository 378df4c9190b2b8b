"""Provides the base classes of the bridge's expectations: one renders a sentence, the other evaluates a fact."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from bridge.errors import QualityError
from bridge.quality.facts import NO_FACTS, Facts, Unknown
from bridge.quality.gx import quiet

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


class FactMetric(TableMetricProvider):
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
            FactMetric.metric_name, MetricConfiguration(FactMetric.metric_name, domain, value)
        )
        return dependencies

    def fact(self, metrics: Mapping[str, Any], type: type[_F]) -> _F:
        """Returns the fact, whose type is `type`. Raises QualityError with the reason when it is `Unknown`."""
        fact = metrics[FactMetric.metric_name]
        if isinstance(fact, Unknown):
            raise QualityError(fact.reason)
        assert isinstance(fact, type)
        return fact
