"""The bridge's own expectations, as classes of Great Expectations: they load, run and render like its own.

Importing this module imports Great Expectations (seconds) and registers the classes: import it in functions.
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

__all__ = ["ExpectKeyToBeUnique", "ExpectTableToBeFresh"]


class ExpectKeyToBeUnique(SentenceExpectation):
    """No two rows of the whole table have the same values in `column_list`; null equals null.

    Exact, also for compound keys. The result counts the rows that share their key with another row
    (`unexpected_count`) and names up to five such keys, those with most rows first.
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
    """The newest value of `column` is at most `max_age_seconds` old when the check runs.

    An empty table, or a column of nulls, is not fresh. A newest value more than `max_ahead_seconds` in the
    future fails as well, for it would hide that nothing arrives any more. TIMESTAMP without zone is read in
    the session's zone, which is UTC in the bridge.
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
        words = {"column": kwargs["column"], "age": age(kwargs["max_age_seconds"])}
        return "The newest $column is at most $age old.", words

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
