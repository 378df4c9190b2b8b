"""Resolves the start position and the end position of reading (`scan.startup.*`, `scan.bounded.*`)."""

from __future__ import annotations

from typing import Any

from bridge.definition import Bounded, Startup
from bridge.errors import OptionError
from bridge.offsets import Offsets
from bridge.options import UPSERT, Option, TableOptions
from bridge.options.general import GROUP_ID
from bridge.options.scan import (
    BOUNDED_MODE,
    BOUNDED_OFFSETS,
    BOUNDED_TIMESTAMP,
    STARTUP_MODE,
    STARTUP_OFFSETS,
    STARTUP_TIMESTAMP,
    UPSERT_STARTUP_MODE,
)

__all__ = ["bounded", "startup"]


def startup(options: TableOptions, topics: tuple[str, ...], *, base_is_existing: bool) -> Startup:
    """Returns the start position. Raises OptionError, as Flink does, for a missing or superfluous companion option.

    Raises it also for `scan.startup.*` options of an upsert-kafka table unless `base_is_existing` (ADR 028, rule 12).
    """
    option = STARTUP_MODE
    if options.connector == UPSERT:
        option = UPSERT_STARTUP_MODE
        named = [o.key for o in (option, STARTUP_OFFSETS, STARTUP_TIMESTAMP) if options.has(o)]
        if named and not base_is_existing:
            raise OptionError(
                f"'{named[0]}' is refused: 'upsert-kafka' always starts at the earliest offset, since a changelog "
                "without its beginning does not define a table. If the Delta table already contains the changes before "
                "the start position, set 'ingest.base: existing'"
            )
    mode = options.get(option) or ""
    _check_companions(options, "startup", option, STARTUP_OFFSETS, STARTUP_TIMESTAMP)
    _check_single_topic(mode, topics)
    return Startup(
        mode,
        _offsets(options, topics, STARTUP_OFFSETS),
        options.get(STARTUP_TIMESTAMP),
    )


def bounded(options: TableOptions, topics: tuple[str, ...]) -> Bounded:
    """Returns the end position. Raises OptionError, as Flink does, for a missing or superfluous companion option."""
    mode = options.get(BOUNDED_MODE) or ""
    _check_companions(options, "bounded", BOUNDED_MODE, BOUNDED_OFFSETS, BOUNDED_TIMESTAMP)
    _check_single_topic(mode, topics)
    if mode == "group-offsets" and not options.has(GROUP_ID):
        raise OptionError(f"'{GROUP_ID.key}' is required in 'group-offsets' bounded mode but missing.")
    return Bounded(mode, _offsets(options, topics, BOUNDED_OFFSETS), options.get(BOUNDED_TIMESTAMP))


def _check_companions(
    options: TableOptions,
    name: str,
    option: Option[str],
    offsets: Option[dict[int, int]],
    timestamp: Option[int],
) -> None:
    mode = options.get(option)
    companions: tuple[tuple[Option[Any], str], ...] = (
        (timestamp, "timestamp"),
        (offsets, "specific-offsets"),
    )
    for companion, its_mode in companions:
        if mode == its_mode and not options.has(companion):
            raise OptionError(f"'{companion.key}' is required in '{mode}' {name} mode but missing.")
        # Flink ignores it, and would then read more or less than the option suggests.
        if mode != its_mode and options.has(companion):
            raise OptionError(
                f"'{companion.key}' has no effect unless '{option.key}' = '{its_mode}'; the mode is '{mode}'. Set the "
                "mode, or remove the option"
            )


def _check_single_topic(mode: str, topics: tuple[str, ...]) -> None:
    if mode == "specific-offsets" and len(topics) != 1:
        raise OptionError("Currently Kafka source only supports specific offset for single topic.")


def _offsets(
    options: TableOptions, topics: tuple[str, ...], option: Option[dict[int, int]]
) -> Offsets | None:
    partition_offsets = options.get(option)
    return (
        None
        if partition_offsets is None
        else Offsets({(topics[0], p): o for p, o in partition_offsets.items()})
    )
