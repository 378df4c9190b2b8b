"""What the `publish` section asks for, against what the topic's formats can do."""

from __future__ import annotations

from bridge.definition import Publish, Topic
from bridge.errors import DefinitionError
from bridge.options import FORMATS

__all__ = ["check_publication"]

_BY_POSITION = ("avro", "csv", "raw")
"""Formats whose readers must know every field in advance."""


def check_publication(publish: Publish, topic: Topic) -> None:
    """Raise DefinitionError for settings that would have no effect, or none that a reader could make sense of."""
    name = topic.value.name
    if publish.net_changes and topic.appends:
        raise DefinitionError(
            "publish.net-changes: true needs a PRIMARY KEY: without one no two changes are of the same row"
        )
    if publish.pair and FORMATS[name].insert_only:
        able = ", ".join(f.name for f in FORMATS.values() if not f.insert_only)
        raise DefinitionError(
            f"publish.update-messages: pair needs a CDC format ({able}); '{name}' writes an update as one record"
        )
    if publish.carry and name in _BY_POSITION:
        raise DefinitionError(
            f"publish.added-columns: carry cannot be with format '{name}', whose readers take every field for one they "
            "know; add the column to the DDL, or choose a format that names its fields"
        )
