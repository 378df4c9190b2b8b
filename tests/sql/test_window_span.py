"""The last window of a time, compared with all windows around it."""

from __future__ import annotations

import pytest

from bridge.sql.window import WindowSpan


@pytest.mark.parametrize(
    ("size", "step", "offset"), [(30, 30, 0), (30, 30, -7), (45, 15, 0), (45, 15, 4), (10, 10, 95)]
)
def test_the_end_of_the_last_window(size: int, step: int, offset: int) -> None:
    span = WindowSpan(size, step, offset)
    for time in range(-100, 100):
        starts = (s for s in range(-300, 300) if (s - offset) % step == 0 and s <= time < s + size)
        assert span.last_end_ms(time) == max(starts) + size
