"""What a shard makes of the notes it finds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.errors import GapError, KafkaError
from bridge.kafka.shard_state import Cursor, ShardSpec

OURS = ShardSpec(
    "tx", "run", ("t",), 3, first=7, producer={}, consumer={}, plan_fingerprint="m", cursors_recorded=True
)
OTHERS = replace(OURS, shards=5, plan_fingerprint="n")


def test_a_note_that_must_be_there() -> None:
    """Not so in a range that an older bridge opened."""
    with pytest.raises(
        GapError, match=r"group 'tx-1' no longer says how much of its share .* from version 7 on"
    ):
        OURS.cursor_from([], OURS.group(1))
    assert replace(OURS, cursors_recorded=False).cursor_from([], "tx-1") == Cursor()


def test_a_note_of_before_a_resync_is_none() -> None:
    again = replace(OURS, resync="one")
    with pytest.raises(GapError, match="no longer says"):
        again.cursor_from([OURS.offset_metadata(Cursor(9, 0, 4))], "tx-1")
    assert again.cursor_from(
        [again.initial_offset_metadata(), OURS.offset_metadata(Cursor(9))], "tx-1"
    ) == Cursor(6)


def test_the_first_note_lies_before_the_stretch() -> None:
    """Also before those with other shards or files, which may come next: nothing of them was counted in another way."""
    assert OURS.cursor_from([OURS.initial_offset_metadata()], "tx-1") == Cursor(6) < Cursor(7)
    assert OURS.cursor_from([OTHERS.initial_offset_metadata()], "tx-1") == Cursor(6)
    assert replace(OURS, first=0).cursor_from(
        [replace(OURS, first=0).initial_offset_metadata()], "tx-1"
    ) == Cursor(-1)
    with pytest.raises(KafkaError, match="with 5 shards"):
        OURS.cursor_from([OTHERS.offset_metadata(Cursor(7, 0, 1))], "tx-1")
