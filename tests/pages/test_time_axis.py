"""A time is divided into parts that begin at round times."""

from __future__ import annotations

import pytest

from bridge.pages.time_axis import TimeAxis, utc

NOON = 1_769_860_800_000  # 31 January 2026, 12:00:00 UTC
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("span", "width", "parts", "labels"),
    [
        (0, "1 second", 1, ["12:00:00", "12:00:01"]),
        (25 * MINUTE, "30 seconds", 51, ["12:00:00", "12:06:30", "12:13:00", "12:19:00", "12:25:30"]),
        (50 * MINUTE, "1 minute", 51, ["12:00", "12:13", "12:26", "12:38", "12:51"]),
        (10 * HOUR, "15 minutes", 41, ["12:00", "14:30", "17:00", "19:45", "22:15"]),
        (2 * DAY, "1 hour", 49, ["31 Jan 12:00", "1 Feb 12:00", "2 Feb 13:00"]),
        (30 * DAY, "1 day", 31, ["31 Jan", "8 Feb", "16 Feb", "23 Feb", "3 Mar"]),
        (400 * DAY, "7 days", 58, ["Jan 2026", "May 2026", "Aug 2026", "Dec 2026", "Mar 2027"]),
    ],
)
def test_parts_and_labels(span: int, width: str, parts: int, labels: list[str]) -> None:
    axis = TimeAxis.of(NOON, NOON + span)
    assert (axis.width, axis.parts) == (width, parts)
    assert [label for label, _ in axis.labels()] == labels
    places = [place for _, place in axis.labels()]
    assert (places[0], places[-1], places) == (0, 100, sorted(places))


def test_any_time_has_at_most_sixty_parts() -> None:
    """A writer whose clock is wrong by centuries."""
    axis = TimeAxis.of(0, NOON * 50)
    assert axis.parts == 60
    assert (axis.place(0), axis.place(NOON * 50)) == (0, 59)


def test_each_item_is_in_the_part_of_its_time() -> None:
    axis = TimeAxis(NOON // 1000, 60, 3)
    at = [NOON, NOON + MINUTE - 1, NOON + MINUTE, NOON + 2 * MINUTE, NOON + HOUR]
    assert axis.sums(at, lambda ms: ms, lambda ms: 1) == [2, 1, 2]
    assert (axis.each, TimeAxis(0, 120, 1).each) == ("minute", "2 minutes")


def test_utc() -> None:
    assert utc(NOON).isoformat() == "2026-01-31T12:00:00+00:00"
