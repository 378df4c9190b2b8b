"""Where the windows of a window table function begin and end, by its arguments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WindowSpan:
    """Windows of `size_ms`; each `step_ms` another one begins (those of CUMULATE are taken as the largest of them)."""

    size_ms: int
    step_ms: int
    offset_ms: int = 0

    def last_end_ms(self, time_ms: int) -> int:
        """The end, exclusive, of the last window that has rows of this time; epoch milliseconds."""
        return time_ms - (time_ms - self.offset_ms) % self.step_ms + self.size_ms
