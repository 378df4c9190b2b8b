"""Rules for a publish: its section against the formats of the topic, and tables that are published.

`load` does not apply the rules for tables, since the pipeline may only be ingested.
"""

from __future__ import annotations

from bridge.definition import Definition, Publish, Topic
from bridge.errors import DefinitionError, OptionError
from bridge.options import FORMATS, METADATA


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


def check_current_rows(definition: Definition) -> None:
    """Raises DefinitionError for `publish.history: current` without a PRIMARY KEY, and in the pipeline of an ingest."""
    if not definition.publish.current_rows:
        return
    if not definition.topic.identity:
        raise DefinitionError(
            "publish.history: current requires a PRIMARY KEY, by which a row takes the place of the one before it; "
            "declare one, or remove the setting"
        )
    if semantics := definition.delta.change_semantics:
        raise DefinitionError(
            "publish.history: current is of a pipeline that publishes the table of a history, and "
            f"delta.{min(semantics)} is not; remove one of them"
        )


def refuse_unpublishable(topic: Topic) -> None:
    """Raises OptionError for a topic that Flink supports as a source but not as a sink. Every publish checks it."""
    writable = [key for key, metadata in METADATA.items() if metadata.writable]
    written = {column.key: column.name for column in topic.schema.metadata if not column.virtual}
    for key, name in written.items():
        if key not in writable:
            raise OptionError(
                f"metadata '{key}' of column '{name}' is read-only; declare the column VIRTUAL to publish this table. "
                f"Writable keys are {', '.join(writable)}"
            )
    if "headers" in written and "header-list" in written:
        raise OptionError(
            f"columns '{written['headers']}' and '{written['header-list']}' both write the headers of the record; "
            "declare one of them VIRTUAL"
        )
    if "topic" not in written and (topic.pattern is not None or len(topic.names) > 1):
        named = "'topic-pattern'" if topic.pattern is not None else "a list of topics"
        raise OptionError(
            f"with {named} the 'topic' metadata column must be specified in a table that is published; declare a "
            "column STRING METADATA FROM 'topic', which names the topic of each row"
        )
    for part, spec in (("key", topic.key), ("value", topic.value)):
        if spec and "url" in spec.options and "subject" not in spec.options:
            raise OptionError(
                f"Option '{spec.name}.subject' is required for serialization: with several topics there is no default "
                f"subject of the {part}; set it"
            )
    if topic.value.options.get("schema-include") is True:
        raise OptionError(
            f"Debezium JSON serialization doesn't support '{topic.value.name}.schema-include' option been "
            f"set to true."
        )
