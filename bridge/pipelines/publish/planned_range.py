"""A publish range with the decisions about its rows: made once by the range planner, then carried."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from bridge.publish_progress import PublishRange


class Compaction(Enum):
    """How the rows of a range become the changes that are encoded."""

    NONE = "none"
    """The rows of a snapshot are sent as they are read."""
    INSERTS_ONLY = "inserts only"
    """Rows without a PRIMARY KEY in an insert-only format: sent as they are read; updates and deletes are refused."""
    EACH = "each"
    """Every change is sent with its row before or after; see compact.each."""
    WITHOUT_BEFORE_IMAGES = "without before images"
    """+I, +U and -D are sent as they are read, -U are left out: each key has one change in each version."""
    NET_OF_VERSION = "net of version"
    """The net change of each key in each version; see compact.net."""
    NET_OF_RANGE = "net of range"
    """The net change of each key over all versions of the range (`publish.net-changes`)."""


@dataclass(frozen=True)
class PlannedRange:
    """What a publish sends next, in memory only; `recorded` is the part of it that progress records."""

    recorded: PublishRange
    compaction: Compaction

    def continued(self, open_range: PublishRange | None) -> PlannedRange | None:
        """The same plan for `open_range` of the progress: the range itself, once opened, or the next chunk of its
        snapshot. None when no range is open."""
        return None if open_range is None else replace(self, recorded=open_range)
