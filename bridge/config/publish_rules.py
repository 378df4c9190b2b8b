"""Checks the `publish` section against what the topic's formats can do."""

from __future__ import annotations

from bridge.definition import Publish, Topic
from bridge.errors import DefinitionError
from bridge.options import FORMATS

__all__ = ["check_publication"]


def check_publication(publish: Publish, topic: Topic) -> None:
    """Raise DefinitionError for settings without effect, or whose records no reader could make sense of."""
    format = FORMATS[topic.value.name]
    if publish.net_changes and topic.appends:
        raise DefinitionError(
            "publish.net-changes: true needs a PRIMARY KEY: without one no two changes are of the same row"
        )
    if publish.pair and format.insert_only:
        able = ", ".join(f.name for f in FORMATS.values() if not f.insert_only)
        raise DefinitionError(
            f"publish.update-messages: pair needs a CDC format ({able}); '{format.name}' writes an update as one record"
        )
    if publish.carry and format.fixed_fields:
        raise DefinitionError(
            f"publish.added-columns: carry cannot be with format '{format.name}', whose readers take every field for "
            "one they know; add the column to the DDL, or choose a format that names its fields"
        )
