"""The bridge's expectations on a table, and their base classes: one renders a sentence, the other evaluates a fact.

Facts are about a table's topic, its change data feed and its latest arrivals; `bridge check` provides them. An
expectation whose fact is `Unknown` fails with the reason.

Importing this module registers the classes and imports Great Expectations, which takes seconds: import it in functions.
"""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

from bridge.errors import QualityError
from bridge.quality.facts import NO_FACTS, Facts, KeySplit, Moment, Ratio, RowDifferences, Unknown
from bridge.quality.gx import quiet
from bridge.quality.wording import age, counted, percent

with quiet():
    from great_expectations.compatibility import pydantic
    from great_expectations.execution_engine.execution_engine import ExecutionEngine
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.expectation import BatchExpectation, render_suite_parameter_string
    from great_expectations.expectations.metrics.metric_provider import metric_value
    from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
    from great_expectations.render.components import LegacyRendererType, RenderedStringTemplateContent
    from great_expectations.render.renderer.renderer import renderer
    from great_expectations.render.renderer_configuration import RendererConfiguration, RendererValueType
    from great_expectations.validator.metric_configuration import MetricConfiguration

    from bridge.quality.one_scan import DuplicateKeys, Newest


FACTS_ATTRIBUTE = "bridge_facts"
"""The attribute of an execution engine that has the Facts of its table."""

_F = TypeVar("_F")
_Result = dict[str, Any]


def _not_negative(seconds: float) -> float:
    if not seconds >= 0:
        raise ValueError("must be 0 seconds or more")
    return seconds


def _one_version(number: int) -> int:
    if number < 1:
        raise ValueError("must be 1 version or more")
    return number


def _freshness(seconds: float | None, what: str, most: float, ahead: float) -> _Result:
    """The result for something that was `seconds` ago, None for never; at most `ahead` seconds in the future."""
    if seconds is None:
        return {"success": False, "result": {"observed_value": f"no {what}"}}
    observed = f"{age(seconds)} old" if seconds >= 0 else f"{age(-seconds)} in the future"
    return {"success": -ahead <= seconds <= most, "result": {"observed_value": observed}}


def counted_rows(
    observed: str, of: int, unexpected: int, examples: Sequence[Any], *, with_percent: bool = True
) -> _Result:
    """Returns the result of an expectation that some of its elements do not meet: how many of how many, and some of
    them."""
    counts: dict[str, float] = {"element_count": of, "unexpected_count": unexpected}
    if with_percent:
        counts |= {"unexpected_percent": 100 * unexpected / of if of else 0.0}
    result = {"observed_value": observed, **counts, "partial_unexpected_index_list": list(examples)}
    return {"success": not unexpected, "result": result}


class SentenceExpectation(BatchExpectation):
    """Judges by `judge`, and renders the template of `_sentence`, in Data Docs and inline."""

    @abstractmethod
    def judge(self, metrics: Mapping[str, Any]) -> _Result:
        """Returns the verdict by the values of the metrics that the expectation depends on."""

    def _validate(
        self, metrics: dict[str, Any], runtime_configuration: Any = None, execution_engine: Any = None
    ) -> _Result:
        return self.judge(metrics)

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

    def judge(self, metrics: Mapping[str, Any]) -> _Result:
        duplicates, rows = metrics[DuplicateKeys.metric_name], metrics["table.row_count"]
        observed = "each key once"
        if duplicates["keys"]:
            occurs = "occurs" if duplicates["keys"] == 1 else "occur"
            observed = (
                f"{counted(duplicates['keys'], 'key')} {occurs} more than once ({duplicates['rows']:,} rows)"
            )
        return counted_rows(observed, rows, duplicates["rows"], duplicates["examples"])


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

    _ages = pydantic.validator("max_age_seconds", "max_ahead_seconds", allow_reuse=True)(_not_negative)

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        params = {"column": kwargs["column"], "age": age(kwargs["max_age_seconds"])}
        return "The newest $column is at most $age old.", params

    def judge(self, metrics: Mapping[str, Any]) -> _Result:
        micros = metrics[Newest.metric_name]
        seconds = None if micros is None else time.time() - micros / 1_000_000
        what = f"value in {self.column}"
        return _freshness(seconds, what, self.max_age_seconds, self.max_ahead_seconds)


class _Comparison(FactExpectation):
    """Expects that two sides have the same rows."""

    sides: ClassVar[tuple[str, str]]

    def judge(self, metrics: Mapping[str, Any]) -> _Result:
        difference = self.fact(metrics, RowDifferences)
        one, other = self.sides
        observed = (
            f"{counted(difference.rows, 'row')} on both sides, checksum {difference.checksum}"
            if not difference.differing
            else f"{counted(difference.differing, 'key')} {'differs' if difference.differing == 1 else 'differ'}: "
            f"{one} {counted(difference.rows, 'row')}, checksum {difference.checksum}; "
            f"{other} {counted(difference.other_rows, 'row')}, checksum {difference.other_checksum}"
        )
        observed, most = f"{observed} ({difference.positions})", max(difference.rows, difference.other_rows)
        return counted_rows(observed, most, difference.differing, difference.examples, with_percent=False)


class ExpectTableToEqualTopic(_Comparison):
    """Expects that the table has exactly the rows of the fold of its topic, at fixed offsets and one table version.

    The same comparison as `bridge verify`. `direction` is ingest (the table follows the topic) or publish (the topic
    follows the table); by default the one that has progress.
    """

    direction: Literal["ingest", "publish"] | None = None

    fact_name = "equality"
    fact_arguments = ("direction",)
    sides = ("topic", "table")
    success_keys: ClassVar[tuple[str, ...]] = ("direction",)
    args_keys = ("direction",)

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        return "The table holds the rows that its topic says.", {}


class ExpectChangeFeedToGiveTable(_Comparison):
    """Expects that the change data feed is complete: replaying the changes after `from_version` up to `to_version` on
    the table at `from_version` yields the table at `to_version`.

    `to_version` defaults to the checked version, and `from_version` to `to_version` minus `last_versions`, at least 0.
    The replay adds and removes individual rows, so a row before an update must exist, too.
    """

    last_versions: int = 10
    from_version: int | None = None
    to_version: int | None = None

    fact_name = "feed"
    fact_arguments = ("last_versions", "from_version", "to_version")
    sides = ("replayed", "table")
    success_keys: ClassVar[tuple[str, ...]] = ("last_versions", "from_version", "to_version")
    args_keys = ("last_versions", "from_version", "to_version")

    _versions = pydantic.validator("last_versions", allow_reuse=True)(_one_version)

    @pydantic.validator("from_version", "to_version")
    def _not_negative(cls, number: int | None) -> int | None:
        if number is not None and number < 0:
            raise ValueError("must be a table version, 0 or more")
        return number

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        if kwargs.get("from_version") is not None:
            since = {"since": f"version {kwargs['from_version']}"}
        else:
            since = {"since": counted(kwargs.get("last_versions", 10), "version") + " ago"}
        return "Replaying the change feed over the table of $since gives the table.", since


class ExpectKeysToStayInTheirPartition(FactExpectation):
    """Expects that no key of the topic has records in several partitions, between which Kafka guarantees no order.

    Reads all records that the topic still has, including tombstones, up to the pipeline's progress.
    """

    fact_name = "partitions"
    success_keys: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        return "All records of a key are in one partition.", {}

    def judge(self, metrics: Mapping[str, Any]) -> _Result:
        keys = self.fact(metrics, KeySplit)
        observed = (
            f"{counted(keys.split, 'key')} in more than one partition"
            if keys.split
            else "each key in one partition"
        )
        return counted_rows(observed, keys.keys, keys.split, keys.examples)


class ExpectArrivalToBeFresh(FactExpectation):
    """Expects that something has arrived at most `max_age_seconds` before the check runs.

    `of: record` takes the Kafka timestamp (set by the producer or the broker) of the newest records that the pipeline
    has read, `of: commit` the time of the table's newest commit that changed rows or progress. Fails where there is no
    such record or commit, and for a timestamp more than `max_ahead_seconds` in the future.
    """

    max_age_seconds: float
    of: Literal["record", "commit"] = "record"
    max_ahead_seconds: float = 300

    fact_name = "arrival"
    fact_arguments = ("of",)
    success_keys: ClassVar[tuple[str, ...]] = ("max_age_seconds", "of", "max_ahead_seconds")
    args_keys = ("max_age_seconds", "of", "max_ahead_seconds")

    _ages = pydantic.validator("max_age_seconds", "max_ahead_seconds", allow_reuse=True)(_not_negative)

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        params = {"of": kwargs.get("of", "record"), "age": age(kwargs["max_age_seconds"])}
        return "The newest $of is at most $age old.", params

    def judge(self, metrics: Mapping[str, Any]) -> _Result:
        ms = self.fact(metrics, Moment).ms
        seconds = None if ms is None else time.time() - ms / 1000
        return _freshness(seconds, self.of, self.max_age_seconds, self.max_ahead_seconds)


class ExpectTombstoneRatioToBeBetween(FactExpectation):
    """Expects that the ratio of deletes is between `min_ratio` and `max_ratio`, both inclusive and from 0 to 1. An
    unusually high ratio often means that the source was emptied by mistake.

    `of: topic` counts the null values among the records that the topic still has up to the pipeline's progress;
    `of: changes` counts the deletes among the rows inserted, updated and deleted by the last `last_versions` table
    versions. Without records or changes the ratio is 0.
    """

    max_ratio: float = 1.0
    min_ratio: float = 0.0
    of: Literal["topic", "changes"] = "topic"
    last_versions: int = 10

    fact_name = "tombstones"
    fact_arguments = ("of", "last_versions")
    success_keys: ClassVar[tuple[str, ...]] = ("max_ratio", "min_ratio", "of", "last_versions")
    args_keys = ("max_ratio", "min_ratio", "of", "last_versions")

    @pydantic.validator("max_ratio", "min_ratio")
    def _between_0_and_1(cls, ratio: float) -> float:
        if not 0 <= ratio <= 1:
            raise ValueError("must be between 0 and 1")
        return ratio

    _versions = pydantic.validator("last_versions", allow_reuse=True)(_one_version)

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        low, high = (percent(100 * kwargs.get(f"{side}_ratio", of)) for side, of in (("min", 0), ("max", 1)))
        what = "records of the topic" if kwargs.get("of", "topic") == "topic" else "changes of the table"
        return f"Between $low and $high of the {what} are deletes.", {"low": low, "high": high}

    def judge(self, metrics: Mapping[str, Any]) -> _Result:
        deletes = self.fact(metrics, Ratio)
        ratio = deletes.part / deletes.whole if deletes.whole else 0.0
        noun = "record" if self.of == "topic" else "change"
        observed = f"{percent(100 * ratio)} ({deletes.part:,} of {counted(deletes.whole, noun)})"
        return {"success": self.min_ratio <= ratio <= self.max_ratio, "result": {"observed_value": observed}}
