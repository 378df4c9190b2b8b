"""Why a way refuses a job, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from bridge.ways import NotThisWay

_Given = ParamSpec("_Given")
_Done = TypeVar("_Done")


def refusal(work: Callable[[], object]) -> str | None:
    """The reason of the NotThisWay that this raises; None where it raises none."""
    try:
        work()
    except NotThisWay as reason:
        return str(reason) or "a refusal without a reason"
    return None


def optional(work: Callable[_Given, _Done]) -> Callable[_Given, _Done | None]:
    """The same function, whose result is None where it raises NotThisWay."""

    def asked(*given: _Given.args, **named: _Given.kwargs) -> _Done | None:
        try:
            return work(*given, **named)
        except NotThisWay as reason:
            if not str(reason):
                raise
            return None

    return asked
