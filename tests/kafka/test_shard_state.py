"""The cursor of a shard follows from its offset metadata."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.errors import GapError, KafkaError
from bridge.kafka.shard_state import Cursor, ShardSpec

SPEC = ShardSpec(
    "tx", "run", ("t",), 3, first=7, producer={}, consumer={}, plan_fingerprint="m", cursors_recorded=True
)
OTHER_PLAN = replace(SPEC, shards=5, plan_fingerprint="n")


def test_a_cursor_that_was_recorded_must_be_there() -> None:
    """Not so in a range that an older bridge opened."""
    with pytest.raises(GapError, match=r"group 'tx-1' has no cursor for the range from version 7 on"):
        SPEC.cursor_from([], SPEC.group(1))
    assert replace(SPEC, cursors_recorded=False).cursor_from([], "tx-1") == Cursor()


def test_a_cursor_from_before_a_resync_is_ignored() -> None:
    resynced = replace(SPEC, resync="one")
    with pytest.raises(GapError, match="has no cursor for the range"):
        resynced.cursor_from([SPEC.offset_metadata(Cursor(9, 0, 4))], "tx-1")
    assert resynced.cursor_from(
        [resynced.initial_offset_metadata(), SPEC.offset_metadata(Cursor(9))], "tx-1"
    ) == Cursor(6)


def test_the_initial_cursor_is_before_the_range() -> None:
    """It is also valid for other numbers of shards and other plans, since it counts no record of the range."""
    assert SPEC.cursor_from([SPEC.initial_offset_metadata()], "tx-1") == Cursor(6) < Cursor(7)
    assert SPEC.cursor_from([OTHER_PLAN.initial_offset_metadata()], "tx-1") == Cursor(6)
    assert replace(SPEC, first=0).cursor_from(
        [replace(SPEC, first=0).initial_offset_metadata()], "tx-1"
    ) == Cursor(-1)
    with pytest.raises(KafkaError, match="with 5 shards"):
        SPEC.cursor_from([OTHER_PLAN.offset_metadata(Cursor(7, 0, 1))], "tx-1")
