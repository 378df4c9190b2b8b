"""Defines the bridge's expectations on a table, as subclasses of Great Expectations' Expectation.

Importing this module registers the classes and imports Great Expectations, which takes seconds: import it in functions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bridge.quality.gx import quiet
from bridge.quality.wording import age, counted

with quiet():
    from great_expectations.compatibility import pydantic
    from great_expectations.execution_engine.execution_engine import ExecutionEngine

    from bridge.quality.base_expectation import SentenceExpectation
    from bridge.quality.gx_metrics import DuplicateKeys, Newest


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
