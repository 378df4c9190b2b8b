"""A gap names the offset of the progress and the topic's."""

from __future__ import annotations

import pytest

from bridge.errors import REBUILD, GapError
from bridge.kafka import admin
from bridge.kafka.offset_availability import check_offsets_available
from bridge.offsets import Offsets


@pytest.mark.parametrize(
    ("wanted", "ids", "message"),
    [
        ({("t", 0): 4}, None, r"t-0 is to be read from offset 4, but begins at 5: 1 offsets have expired"),
        ({("t", 0): 10}, None, r"t-0 is to be read from offset 10, but ends at 9"),
        ({("t", 1): 0}, None, r"t-1 is to be read from offset 0, but no longer exists"),
        ({}, {"t": "new"}, r"t-0 is to be read from offset 0, but begins at 5: 5 offsets have expired"),
        ({("t", 0): 6}, {"t": "old"}, r"topic 't' was deleted and created anew \(id old, now new\)"),
    ],
)
def test_a_gap_names_both_offsets(
    wanted: dict[tuple[str, int], int], ids: dict[str, str] | None, message: str
) -> None:
    state = admin.TopicState({"t": "new"}, Offsets({("t", 0): 5}), Offsets({("t", 0): 9}))
    check_offsets_available(Offsets({("t", 0): 5}), state, {"t": "new"})
    check_offsets_available(Offsets({("t", 0): 9}), state)
    check_offsets_available(Offsets(), state)
    with pytest.raises(GapError, match=message) as gap:
        check_offsets_available(Offsets(wanted), state, ids)
    assert str(gap.value).endswith(REBUILD)
