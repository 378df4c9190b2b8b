"""Resolves `delta.merge-columns`: the columns of a table that one of several pipelines writes."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.definition import Topic
from bridge.errors import DefinitionError

__all__ = ["own_columns"]

_KEY = "delta.merge-columns"


def own_columns(given: str | Sequence[str] | None, topic: Topic) -> tuple[str, ...]:
    """Returns the columns of the DDL outside the PRIMARY KEY, in its order; none where the key is not set.

    Raises DefinitionError without a PRIMARY KEY, for a DDL of key columns only, and for a list of other columns than
    these: a column that is read and not written would be lost without a word.
    """
    if given is None:
        return ()
    key = topic.schema.primary_key
    own = tuple(name for name in topic.schema.names if name not in key)
    if not key:
        raise DefinitionError(
            f"{_KEY}: the DDL has no PRIMARY KEY, by which the rows of several topics become one; declare one, or "
            f"remove {_KEY}"
        )
    if not own:
        raise DefinitionError(
            f"{_KEY}: the DDL has no column outside the PRIMARY KEY, so there is nothing to merge; declare one, for "
            "example `changed_at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL`"
        )
    if isinstance(given, str):
        return own
    for name in given:
        if name in key:
            raise DefinitionError(
                f"{_KEY}: {name!r} is in the PRIMARY KEY, which all pipelines of the table share; leave it out"
            )
        if name not in own:
            raise DefinitionError(
                f"{_KEY}: {name!r} is not a column of the DDL; its columns outside the PRIMARY KEY are {', '.join(own)}"
            )
    if missing := [name for name in own if name not in given]:
        raise DefinitionError(
            f"{_KEY}: {missing[0]!r} is a column of the DDL, but not in the list, so it would not be written; add it, "
            "remove it from the DDL, or set `merge-columns: all`"
        )
    return own
