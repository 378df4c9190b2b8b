"""What a slot makes of the notes it finds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.errors import GapError, KafkaError
from bridge.kafka.shard_state import Cursor, Share

OURS = Share("tx", "run", ("t",), 3, first=7, producer={}, consumer={}, manner="m", noted=True)
OTHERS = replace(OURS, slots=5, manner="n")


def test_a_note_that_must_be_there() -> None:
    """Not so in a stretch that an older bridge opened."""
    with pytest.raises(
        GapError, match=r"group 'tx-1' no longer says how much of its share .* from version 7 on"
    ):
        OURS.stands_at([], OURS.group(1))
    assert replace(OURS, noted=False).stands_at([], "tx-1") == Cursor()


def test_a_note_of_before_a_resync_is_none() -> None:
    again = replace(OURS, resync="one")
    with pytest.raises(GapError, match="no longer says"):
        again.stands_at([OURS.note(Cursor(9, 0, 4))], "tx-1")
    assert again.stands_at([again.first_note(), OURS.note(Cursor(9))], "tx-1") == Cursor(6)


def test_the_first_note_lies_before_the_stretch() -> None:
    """Also before those with other slots or files, which may come next: nothing of them was counted in another way."""
    assert OURS.stands_at([OURS.first_note()], "tx-1") == Cursor(6) < Cursor(7)
    assert OURS.stands_at([OTHERS.first_note()], "tx-1") == Cursor(6)
    assert replace(OURS, first=0).stands_at([replace(OURS, first=0).first_note()], "tx-1") == Cursor(-1)
    with pytest.raises(KafkaError, match="with 5 slots"):
        OURS.stands_at([OTHERS.note(Cursor(7, 0, 1))], "tx-1")
