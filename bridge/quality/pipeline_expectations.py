"""Defines expectations about a table's topic, its change data feed and its latest arrivals.

They evaluate facts, which `bridge check` provides. An expectation whose fact is `Unknown` fails with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from bridge.quality.expectations import FactExpectation
from bridge.quality.facts import KeySplit, Moment, Ratio, RowDifferences
from bridge.quality.gx import quiet
from bridge.quality.wording import age, counted, percent

with quiet():
    from great_expectations.compatibility import pydantic


_Result = dict[str, Any]


class _Comparison(FactExpectation):
    """Expects that two sides have the same rows."""

    sides: ClassVar[tuple[str, str]]

    def _validate(
        self, metrics: dict[str, Any], runtime_configuration: Any = None, execution_engine: Any = None
    ) -> _Result:
        difference = self.fact(metrics, RowDifferences)
        one, other = self.sides
        observed = (
            f"{counted(difference.rows, 'row')} on both sides, checksum {difference.checksum}"
            if not difference.differing
            else f"{counted(difference.differing, 'key')} {'differs' if difference.differing == 1 else 'differ'}: "
            f"{one} {counted(difference.rows, 'row')}, checksum {difference.checksum}; "
            f"{other} {counted(difference.other_rows, 'row')}, checksum {difference.other_checksum}"
        )
        return {
            "success": not difference.differing,
            "result": {
                "observed_value": f"{observed} ({difference.positions})",
                "element_count": max(difference.rows, difference.other_rows),
                "unexpected_count": difference.differing,
                "partial_unexpected_index_list": list(difference.examples),
            },
        }


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

    @pydantic.validator("last_versions")
    def _at_least_one(cls, number: int) -> int:
        if number < 1:
            raise ValueError("must be 1 version or more")
        return number

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

    def _validate(
        self, metrics: dict[str, Any], runtime_configuration: Any = None, execution_engine: Any = None
    ) -> _Result:
        keys = self.fact(metrics, KeySplit)
        observed = (
            f"{counted(keys.split, 'key')} in more than one partition"
            if keys.split
            else "each key in one partition"
        )
        return {
            "success": not keys.split,
            "result": {
                "observed_value": observed,
                "element_count": keys.keys,
                "unexpected_count": keys.split,
                "unexpected_percent": 100 * keys.split / keys.keys if keys.keys else 0.0,
                "partial_unexpected_index_list": list(keys.examples),
            },
        }


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

    @pydantic.validator("max_age_seconds", "max_ahead_seconds")
    def _not_negative(cls, seconds: float) -> float:
        if not seconds >= 0:
            raise ValueError("must be 0 seconds or more")
        return seconds

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        params = {"of": kwargs.get("of", "record"), "age": age(kwargs["max_age_seconds"])}
        return "The newest $of is at most $age old.", params

    def _validate(
        self, metrics: dict[str, Any], runtime_configuration: Any = None, execution_engine: Any = None
    ) -> _Result:
        ms = self.fact(metrics, Moment).ms
        if ms is None:
            return {"success": False, "result": {"observed_value": f"no {self.of}"}}
        old = time.time() - ms / 1000
        fresh = -self.max_ahead_seconds <= old <= self.max_age_seconds
        observed = f"{age(old)} old" if old >= 0 else f"{age(-old)} in the future"
        return {"success": fresh, "result": {"observed_value": observed}}


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

    @pydantic.validator("last_versions")
    def _at_least_one(cls, number: int) -> int:
        if number < 1:
            raise ValueError("must be 1 version or more")
        return number

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        low, high = (percent(100 * kwargs.get(f"{side}_ratio", of)) for side, of in (("min", 0), ("max", 1)))
        what = "records of the topic" if kwargs.get("of", "topic") == "topic" else "changes of the table"
        return f"Between $low and $high of the {what} are deletes.", {"low": low, "high": high}

    def _validate(
        self, metrics: dict[str, Any], runtime_configuration: Any = None, execution_engine: Any = None
    ) -> _Result:
        deletes = self.fact(metrics, Ratio)
        ratio = deletes.part / deletes.whole if deletes.whole else 0.0
        noun = "record" if self.of == "topic" else "change"
        observed = f"{percent(100 * ratio)} ({deletes.part:,} of {counted(deletes.whole, noun)})"
        return {"success": self.min_ratio <= ratio <= self.max_ratio, "result": {"observed_value": observed}}
