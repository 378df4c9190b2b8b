"""Divides a time into equal parts that begin at round times in UTC."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeVar

from bridge.quality.wording import age

_T = TypeVar("_T")
_MOST = 60
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_WIDTHS = (
    *(1, 2, 5, 10, 15, 30),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 91, 364)),
)


def utc(at_ms: float) -> datetime:
    """Return epoch milliseconds as a time with its zone, UTC."""
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc)


@dataclass(frozen=True)
class TimeAxis:
    """Parts of `seconds` each, the first of which begins at `begin` (epoch seconds)."""

    begin: int
    seconds: int
    parts: int

    @classmethod
    def of(cls, first_ms: int, last_ms: int) -> TimeAxis:
        """Return the narrowest one that has both times and at most sixty parts."""
        for seconds in _WIDTHS:
            begin = first_ms // 1000 // seconds * seconds
            parts = (last_ms // 1000 - begin) // seconds + 1
            if parts <= _MOST:
                return cls(begin, seconds, parts)
        return cls(begin, -(-(last_ms // 1000 - begin + 1) // _MOST), _MOST)

    @property
    def width(self) -> str:
        """How long a part is: `10 minutes`."""
        return age(self.seconds)

    @property
    def each(self) -> str:
        """The same after `per` and `each`: `hour`, `10 minutes`."""
        return self.width.removeprefix("1 ")

    def place(self, at_ms: int) -> int:
        """Return the part of a time; the nearest one for others."""
        return max(0, min(self.parts - 1, (at_ms // 1000 - self.begin) // self.seconds))

    def sums(self, items: Iterable[_T], at_ms: Callable[[_T], int], value: Callable[[_T], int]) -> list[int]:
        """Return the sum of the values in each part."""
        found = [0] * self.parts
        for item in items:
            found[self.place(at_ms(item))] += value(item)
        return found

    def labels(self) -> list[tuple[str, float]]:
        """Return five times or fewer, and where on the axis they are, in percent. Long ones are fewer."""
        span = self.parts * self.seconds
        steps = 1 if self.parts < 4 else 2 if _DAY < span <= 4 * _DAY else 4
        places = [round(self.parts * n / steps) for n in range(steps + 1)]
        return [
            (
                _label(utc(1000 * (self.begin + n * self.seconds)), self.seconds, span),
                round(100 * n / self.parts, 2),
            )
            for n in places
        ]


def _label(at: datetime, seconds: int, span: int) -> str:
    if seconds < _MINUTE:
        return f"{at:%H:%M:%S}"
    if span <= _DAY:
        return f"{at:%H:%M}"
    if span <= 4 * _DAY:
        return f"{at.day} {at:%b %H:%M}"
    return f"{at.day} {at:%b}" if span <= 300 * _DAY else f"{at:%b %Y}"
