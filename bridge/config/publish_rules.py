"""Checks the `publish` section against the formats of the topic."""

from __future__ import annotations

from bridge.definition import Publish, Topic
from bridge.errors import DefinitionError
from bridge.options import FORMATS


def check_publication(publish: Publish, topic: Topic) -> None:
    """Raises DefinitionError for settings that have no effect or that the format of the topic does not support."""
    format = FORMATS[topic.value.name]
    if publish.net_changes and topic.appends:
        raise DefinitionError(
            "publish.net-changes: true requires a PRIMARY KEY, which identifies the changes of a row; declare one, or "
            "remove the setting"
        )
    if publish.pair and format.insert_only:
        cdc_formats = ", ".join(f.name for f in FORMATS.values() if not f.insert_only)
        raise DefinitionError(
            f"publish.update-messages: pair requires a CDC format ({cdc_formats}); '{format.name}' encodes an update "
            "as one record. Set single, or use one of these formats"
        )
    if publish.carry and format.fixed_fields:
        raise DefinitionError(
            f"publish.added-columns: carry cannot be combined with format '{format.name}', whose readers must know all "
            "fields in advance; add the columns to the DDL, or use a format with field names"
        )
